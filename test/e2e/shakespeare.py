#!/usr/bin/env python3
"""From text to text with the small language model of test/models/shakespeare: shakespeare.py TENON SCRATCH

All greedy continuations of samples.json, token for token; sampling that repeats with its seed; stop strings; the chat;
what is printed of the steps; and what happens with bad input.
"""
import ctypes
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MODEL = ROOT / "test" / "models" / "shakespeare"
problems = []


def expect(truth, what):
    if not truth:
        problems.append(what)


def compile_with(tenon, tokenizer, out):
    return subprocess.run([tenon, "compile", MODEL / "model.onnx", f"--tokenizer={tokenizer}", "--max-context=1024", "-o", out], capture_output=True, text=True)


def run(artifact, *flags, text=None):
    return subprocess.run([artifact, *flags], capture_output=True, input=text, encoding="utf-8")


def generate(artifact, prompt, *flags):
    done = run(artifact, "--generate", f"--prompt={prompt}", "--json", *flags)
    if done.returncode:
        sys.exit(f"generate {prompt!r}: {done.stderr}")
    return json.loads(done.stdout)


def check_samples(artifact):
    for sample in json.loads((MODEL / "samples.json").read_text())["samples"]:
        prompt, ids = sample["prompt"], sample["ids"]
        for threads in ("1", "2"):
            made = generate(artifact, prompt, "--max-tokens=200", "--temperature=0", f"--threads={threads}")
            expect(made["prompt_ids"] == sample["prompt_ids"], f"{prompt!r}: prompt ids {made['prompt_ids']}")
            expect(made["prompt_ids"] + made["ids"] == ids, f"{prompt!r}: other ids with {threads} threads: {made['text']!r}")
            expect(prompt + made["text"] == sample["text"], f"{prompt!r}: other text: {made['text']!r}")


def check_generation(artifact):
    plain = run(artifact, "--generate", "--prompt=ROMEO:\n", "--max-tokens=20")
    greedy = generate(artifact, "ROMEO:\n", "--max-tokens=20")
    expect(plain.stdout == greedy["text"] + "\n", f"streamed text differs: {plain.stdout!r}")
    expect("prefill: 3 tokens" in plain.stderr and "decode:  19 tokens" in plain.stderr, f"figures: {plain.stderr}")
    flags = ["--max-tokens=60", "--temperature=0.8", "--top-k=40", "--top-p=0.95", "--min-p=0.01", "--repetition-penalty=1.1"]
    a, b, c = (generate(artifact, "JULIET:\n", *flags, f"--seed={seed}") for seed in (7, 7, 8))
    expect(a["ids"] == b["ids"], "the same seed gave another text")
    expect(a["ids"] != c["ids"], "another seed gave the same text")
    expect(generate(artifact, "ROMEO:\n", "--max-tokens=20", "--temperature=1", "--top-k=1")["ids"] == greedy["ids"], "top-k 1 is not greedy")
    stopped = generate(artifact, "ROMEO:\n", "--stop=malice of", "--max-tokens=200")
    expect(stopped["ended_by"] == "--stop" and stopped["text"].endswith("be a\n"), f"stop: {stopped['text']!r}")
    expect(generate(artifact, "ROMEO:\n", "--max-tokens=0")["text"] == "", "no tokens asked for, some given")
    odd = generate(artifact, "naïve ☃ 😀", "--max-tokens=5")
    expect(len(odd["ids"]) == 5, "a prompt of bytes")


def check_context(artifact):
    words = "word " * 2000
    done = run(artifact, "--generate", f"--prompt={words}")
    expect(done.returncode == 1 and "the context, which holds 1024" in done.stderr, f"long prompt: {done.stderr}")
    made = generate(artifact, "word " * 200, "--max-tokens=2000")
    expect(made["ended_by"] in ("the full context", "the model's end of text"), f"ended by {made['ended_by']}")
    expect(len(made["prompt_ids"]) + len(made["ids"]) <= 1025, "more tokens than the context holds")


def check_steps_and_chat(artifact):
    steps = run(artifact, "--show-steps", "--prompt=O Romeo, Romeo")
    order = ["is id", "embedding", "layer 0 norm", "layer 0 attention", "layer 0 feed-forward", "layers 1 to 5", "residual and norm",
             "output head", "softmax", "next token"]
    places = [steps.stdout.find(word) for word in order]
    expect(-1 not in places and places == sorted(places), f"steps: {steps.stdout}{steps.stderr}")
    expect(steps.stdout.count(" %  id ") == 5, "not five next tokens")
    talk = run(artifact, "--interactive", "--max-tokens=10", text="Good morrow.\nFarewell.\n")
    expect(talk.returncode == 0 and talk.stdout.strip(), f"chat: {talk.stderr}")


def check_library(tenon, scratch):
    """The same through the C interface of a shared library."""
    path = scratch / "libshakespeare.so"
    done = compile_with(tenon, MODEL / "tokenizer.json", path)
    if done.returncode:
        return problems.append(done.stderr)
    lib = ctypes.CDLL(str(path.resolve()))
    lib.tenon_open.restype = lib.tenon_lm_create.restype = ctypes.c_void_p
    lib.tenon_lm_logits.restype = ctypes.POINTER(ctypes.c_float)
    lib.tenon_lm_encode.restype = lib.tenon_lm_decode.restype = lib.tenon_lm_vocabulary.restype = lib.tenon_lm_position.restype = ctypes.c_int64
    lib.tenon_lm_error.restype = ctypes.c_char_p
    model = ctypes.c_void_p(lib.tenon_open())
    lm = ctypes.c_void_p(lib.tenon_lm_create(model, 2))
    sample = json.loads((MODEL / "samples.json").read_text())["samples"][0]
    prompt, ids = sample["prompt"].encode(), (ctypes.c_int64 * 32)()
    count = lib.tenon_lm_encode(lm, prompt, ctypes.c_size_t(len(prompt)), 1, ids, ctypes.c_size_t(32))
    expect(list(ids[:count]) == sample["prompt_ids"], f"library: prompt ids {list(ids[:count])}")
    words = lib.tenon_lm_vocabulary(lm)
    for _ in range(2):
        made, step = [], list(ids[:count])
        for _ in range(20):
            fed = (ctypes.c_int64 * len(step))(*step)
            expect(lib.tenon_lm_feed(lm, fed, ctypes.c_size_t(len(step))) == 0, f"library: {lib.tenon_lm_error(lm)}")
            logits = lib.tenon_lm_logits(lm)[:words]
            step = [max(range(words), key=logits.__getitem__)]
            made += step
        expect(sample["prompt_ids"] + made == sample["ids"][:count + 20], f"library: other ids {made}")
        expect(lib.tenon_lm_position(lm) == count + 19, "library: position")
        lib.tenon_lm_reset(lm)  # and all over again
    text = ctypes.create_string_buffer(500)
    fed = (ctypes.c_int64 * len(made))(*made)
    size = lib.tenon_lm_decode(lm, fed, ctypes.c_size_t(len(made)), 0, text, ctypes.c_size_t(500))
    expect(sample["text"].encode().startswith(prompt + text.raw[:size]), f"library: other text {text.raw[:size]}")
    bad = (ctypes.c_int64 * 1)(1024)
    expect(lib.tenon_lm_feed(lm, bad, ctypes.c_size_t(1)) != 0 and b"outside the vocabulary" in lib.tenon_lm_error(lm), "library: a bad id")
    lib.tenon_lm_destroy(lm)
    lib.tenon_close(model)


def check_bad_input(tenon, artifact, scratch):
    for flags, message in [
            (["--generate"], "need --prompt"), (["--generate", "--prompt="], "the prompt is empty"),
            (["--generate", "--prompt=a", "--temperature=warm"], "--temperature: found 'warm'"),
            (["--generate", "--prompt=a", "--top-p=2", "--temperature=1"], "--top-p: found 2"),
            (["--generate", "--prompt=a", "--stop="], "--stop"), (["--generate", "--prompt=a", "--max-tokens=-1"], "--max-tokens")]:
        done = run(artifact, *flags)
        expect(done.returncode in (1, 2) and message in done.stderr, f"{flags}: {done.stderr}")
    good = json.loads((MODEL / "tokenizer.json").read_text())

    def refused(change, message):
        broken = json.loads(json.dumps(good))
        change(broken)
        (scratch / "broken.json").write_text(json.dumps(broken))
        done = compile_with(tenon, scratch / "broken.json", scratch / "broken")
        expect(done.returncode == 1 and message in done.stderr, f"expected {message!r}, found {done.stderr!r}")

    def add_token(t):
        t["added_tokens"] += [{"id": 1024, "content": "<more>", "special": True}]

    refused(add_token, "its ids go up to 1024, but the model's vocabulary has 1024")
    few = json.loads(json.dumps(good)) | {"added_tokens": []}
    few["model"].update(merges=[], vocab={"a": 0, "b": 1})
    (scratch / "few.json").write_text(json.dumps(few))
    done = compile_with(tenon, scratch / "few.json", scratch / "few")
    expect("it has 2 ids, but the model's vocabulary has 1024" in done.stderr, f"a small tokenizer: {done.stderr}")
    refused(lambda t: t["model"].update(type="GPT"), "model.type: found 'GPT', expected BPE")
    refused(lambda t: t["model"]["merges"].insert(3, ["no", "such"]), "merge 3: token 'no' is not in the vocabulary")
    refused(lambda t: t["model"]["vocab"].update({"x" * 3: -1}), "expected a whole number")
    refused(lambda t: t["model"].update(dropout=0.1), "found a dropout")
    refused(lambda t: t.update(pre_tokenizer={"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated", "invert": False}), "pattern '(a'")
    refused(lambda t: t.update(decoder={"type": "CTC"}), "found 'CTC', which is not a decoder")
    (scratch / "broken.json").write_text('{"model": ')
    done = compile_with(tenon, scratch / "broken.json", scratch / "broken")
    expect("not valid JSON" in done.stderr, f"half a file: {done.stderr}")
    (scratch / "broken.json").write_text("[" * 100000)
    done = compile_with(tenon, scratch / "broken.json", scratch / "broken")
    expect("levels deep" in done.stderr, f"deep nesting: {done.stderr}")


def main():
    tenon, scratch = sys.argv[1], Path(sys.argv[2])
    scratch.mkdir(parents=True, exist_ok=True)
    artifact = scratch / "shakespeare"
    done = compile_with(tenon, MODEL / "tokenizer.json", artifact)
    if done.returncode:
        sys.exit(done.stderr)
    check_samples(artifact)
    check_generation(artifact)
    check_context(artifact)
    check_steps_and_chat(artifact)
    check_library(tenon, scratch)
    check_bad_input(tenon, artifact, scratch)
    print("\n".join(problems) or "shakespeare: right")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
