#!/usr/bin/env python3
"""--kv-cache: models exported without caches get some: kv_cache.py TENON

Each is compiled as it is, with --kv-cache, and with --kv-cache --max-context: prefill and decode in any pieces must give
the logits of the model run on the whole text, within 1e-4, also for batches with padding, and --generate the same text
token by token. Masks that are stored as constants count as what they say. What is not causal is refused with the reason.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import stored_masks
from language_models import CAPACITY, Library, check_tiny, far
from models import ROOT, Report, compile_model

TINY = ROOT / "test/models/tiny"
MODELS = ["gpt2-tiny-ts", "gpt2-tiny-ts14", "gpt2-tiny-dynamo", "llama-tiny-ts", "llama-tiny-ts-sdpa", "llama-tiny-dynamo",
          "llama-tiny-dynamo23", "qwen3-tiny-dynamo", "mistral-tiny-ts", "gemma2-tiny-ts", "gemma3-tiny-dynamo23", "phi-tiny-dynamo",
          "phi3-tiny-dynamo"]
REFUSED = {"bert-tiny-ts": "has no row for each token", "distilbert-tiny-ts": "tokens see later ones: no causal mask was found",
           "vit-tiny-ts": "has no input 'input_ids'", "gpt2-tiny-kv-ts": "the model has caches already: input 'past_key_values.0.key'",
           "t5-tiny-ts": "tokens see later ones"}


def byte_tokenizer(path):
    """Each byte is a token; the tiny models know 256 tokens and more."""
    vocabulary = {f"<0x{b:02X}>": b for b in range(256)}
    path.write_text(json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": [], "byte_fallback": True, "unk_token": None}}))


def generate(artifact, *flags):
    done = subprocess.run([str(artifact), "--generate", "--prompt=Hello, world", "--json", "--temperature=0", *flags], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{artifact}: {done.stderr}")
    return json.loads(done.stdout)


def check_text(tenon, scratch, name):
    """The same ids as without caches, in steps of one token."""
    problems = []
    tokenizer = scratch / "tokenizer.json"
    byte_tokenizer(tokenizer)
    made = {}
    for how, flags in (("plain", []), ("cached", ["--kv-cache"]), ("state", ["--kv-cache", "--max-context=100"])):
        artifact = scratch / f"{name}-{how}-text"
        compile_model(tenon, TINY / name / "model.onnx", artifact, f"--tokenizer={tokenizer}", *flags)
        made[how] = generate(artifact, "--max-tokens=60")
    for how in ("cached", "state"):
        if made[how]["ids"] != made["plain"]["ids"]:
            problems.append(f"{how}: ids {made[how]['ids']}, expected {made['plain']['ids']}")
        # A step reads the weights and what one token needs, not what all do.
        if made[how]["decode_bytes"] * 4 > made["plain"]["decode_bytes"] * 3:
            problems.append(f"{how}: {made[how]['decode_bytes']} bytes to decode, {made['plain']['decode_bytes']} without a cache")
    return problems


def check_faults(tenon, scratch):
    """What can go wrong while a program writes, each with its message."""
    problems = []
    tokenizer = scratch / "tokenizer.json"
    byte_tokenizer(tokenizer)

    def fails(artifact, message, *flags):
        done = subprocess.run([str(artifact), "--generate", *flags], capture_output=True, text=True)
        if done.returncode != 1 or message not in done.stderr or "nan" in done.stdout:
            problems.append(f"{flags}: exit {done.returncode}, {done.stderr!r}, expected {message!r}")

    model = onnx.load(TINY / "gpt2-tiny-ts/model.onnx")
    compile_model(tenon, TINY / "gpt2-tiny-ts/model.onnx", scratch / "short", f"--tokenizer={tokenizer}", "--kv-cache", "--max-context=16")
    fails(scratch / "short", "the context, which holds 16", "--prompt=" + "x" * 17)
    made = json.loads(subprocess.run([scratch / "short", "--generate", "--prompt=" + "x" * 10, "--max-tokens=50", "--json"],
                                     capture_output=True, text=True).stdout)
    if made["ended_by"] != "the full context" or len(made["ids"]) != 7:
        problems.append(f"capacity reached: {made}")
    compile_model(tenon, TINY / "gpt2-tiny-ts/model.onnx", scratch / "plain", f"--tokenizer={tokenizer}")
    fails(scratch / "plain", "the context, which holds 128", "--prompt=" + "x" * 129)
    for weight in model.graph.initializer:
        if weight.name.endswith("ln_f.weight"):
            weight.CopyFrom(onnx.numpy_helper.from_array(np.full(weight.dims, np.nan, np.float32), weight.name))
    onnx.save(model, scratch / "nan.onnx")
    compile_model(tenon, scratch / "nan.onnx", scratch / "nan", f"--tokenizer={tokenizer}")
    for flags in (["--temperature=0"], ["--temperature=1", "--seed=3"]):
        fails(scratch / "nan", "NaN", "--prompt=abc", *flags)
    return problems


def check_stored_masks(tenon, scratch):
    """One layer with each form of mask; a layer with one that lets tokens see later ones is refused."""
    model, tokens = scratch / "masks.onnx", [int(t) for t in np.random.default_rng(9).integers(0, stored_masks.VOCABULARY, CAPACITY)]
    onnx.save(stored_masks.make(stored_masks.FORMS), model)
    compile_model(tenon, model, scratch / "masks.so", f"--require-fused=attention:{len(stored_masks.FORMS)}")
    compile_model(tenon, model, scratch / "masks-state.so", "--kv-cache", f"--max-context={CAPACITY}")
    plain = Library(scratch / "masks.so")
    problems = check_tiny(plain, Library(scratch / "masks-state.so"))
    plain.reset()
    want = onnxruntime.InferenceSession(model).run(None, {"input_ids": np.array([tokens])})[0][0, -1]
    problems += far("against ONNX Runtime", want, plain.feed(tokens))
    onnx.save(stored_masks.make(["bool", "later"]), scratch / "later.onnx")
    done = subprocess.run([tenon, "compile", scratch / "later.onnx", "-o", scratch / "no", "--kv-cache"], capture_output=True, text=True)
    if done.returncode != 1 or "tokens see later ones" not in done.stderr:
        problems.append(f"later tokens: {done.stderr}")
    return problems


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tenon, report = sys.argv[1], Report()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        for name in sys.argv[2:] or MODELS:
            def library(how, *flags):
                out = scratch / f"{name}-{how}.so"
                compile_model(tenon, TINY / name / "model.onnx", out, *flags)
                return Library(out)
            state = library("state", "--kv-cache", f"--max-context={CAPACITY}")
            report.add(name, check_tiny(library("plain"), state) + check_tiny(library("cached", "--kv-cache"), state))
        if sys.argv[2:]:
            report.end()
        for name in ("gpt2-tiny-dynamo", "llama-tiny-ts"):
            report.add(f"text of {name}", check_text(tenon, scratch, name))
        report.add("stored masks", check_stored_masks(tenon, scratch))
        report.add("faults", check_faults(tenon, scratch))
        for name, reason in REFUSED.items():
            done = subprocess.run([tenon, "compile", TINY / name / "model.onnx", "-o", scratch / "no", "--kv-cache"], capture_output=True, text=True)
            right = done.returncode == 1 and reason in done.stderr
            report.add(f"{name} is refused", [] if right else [f"exit {done.returncode}: {done.stderr}"])
        done = subprocess.run([tenon, "compile", TINY / "gpt2-tiny-ts/model.onnx", "-o", scratch / "no", "--kv-cache", "--max-context=200"],
                              capture_output=True, text=True)
        report.add("a context beyond the positions", [] if done.returncode == 1 and "128" in done.stderr else [done.stderr])
    report.end()


if __name__ == "__main__":
    main()
