#!/usr/bin/env python3
"""Language models with their memory on the CUDA target, executed by the emulator: cuda_language_models.py TENON

Tiny models with caches, and one with 4-bit weights as the GenAI builder writes them, are compiled with --max-context for
both targets and fed alike: a prefill that takes the forms for many rows, single tokens and three at once that take those
for few. The logits must be the CPU target's, within 1e-4 in f32 and a relative rms error of 5e-3 in f16. The Shakespeare
model's program must write the greedy text of its samples. A decode step launches at most seven kernels for a layer of
Qwen2. Without NVRTC or emulator there is nothing to test, which is said.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import genai_model
import numpy as np
import onnx
from language_models import Library, far
from models import ROOT, compile_model

MODELS = {"llama-tiny-kv-ts": ["f32"], "gpt2-tiny-kv-dynamo": ["f32"], "qwen2-micro-dynamo23": ["f32", "f16"], "genai": ["f32", "f16"]}
CAPACITY, WORDS = 24, 12
F16_LIMIT = 5e-3


def near(what, want, got, precision):
    if precision == "f32":
        return far(what, want, got)
    error = float(np.sqrt(((want - got) ** 2).mean() / (want ** 2).mean()))
    return [] if error <= F16_LIMIT else [f"{what}: relative rms error {error:.2e}"]


def compare(cpu, gpu, precision):
    tokens = [int(t) for t in np.random.default_rng(7).integers(0, cpu.vocabulary, 17)]
    problems = []
    for again in ("", ", after a reset"):
        for part in (tokens[:11], tokens[11:12], tokens[12:13], tokens[13:14], tokens[14:]):
            problems += near(f"{len(part)} tokens{again}", cpu.feed(part), gpu.feed(part), precision)
        cpu.reset()
        gpu.reset()
        tokens = tokens[::-1]
    return problems


def launches_of_a_layer(tenon, model, scratch):
    """Kernels between the attention of one layer and that of the next, in a decode step."""
    compile_model(tenon, model, scratch / "p.tnk", "--target=cuda", f"--max-context={CAPACITY}", "--stop-after=planned")
    sizes = {"batch": 1, "sequence": 1, "past": 5, "floordiv": lambda a, b: a // b, "min": min, "max": max}
    taken = []
    for line in (scratch / "p.tnk").read_text().splitlines():
        if m := re.match(r"\s+launch (\w+) .*?grid \[(.*?)\] threads", line):
            grid = re.sub(r"\b(?!floordiv|min|max)[A-Za-z_]\w*\b", lambda s: s[0] if s[0] in sizes else "1", m[2])
            if all(n > 0 for n in eval(f"[{grid}]", {"__builtins__": {}}, sizes)):
                taken.append(m[1])
    at = [i for i, kernel in enumerate(taken) if kernel == "attention_decode"]
    if len(at) != 2:
        return [f"{len(at)} launches of attention_decode in a decode step of two layers: {taken}"]
    count = at[1] - at[0]
    print(f"     {count} launches of a layer: {taken[at[0]:at[1]]}")
    return [] if count <= 7 else [f"{count} launches of a layer: {taken[at[0]:at[1]]}"]


def check_text(tenon, scratch):
    folder = ROOT / "test/models/shakespeare"
    compile_model(tenon, folder / "model.onnx", scratch / "play", f"--tokenizer={folder / 'tokenizer.json'}", "--target=cuda",
                  "--arch=sm_80", "--max-context=256")
    sample = json.loads((folder / "samples.json").read_text())["samples"][0]
    done = subprocess.run([tenon, "run", scratch / "play", "--generate", "--device=emulated", f"--prompt={sample['prompt']}",
                           "--temperature=0", f"--max-tokens={WORDS}", "--json"], capture_output=True, text=True)
    if done.returncode:
        return [done.stderr]
    made = json.loads(done.stdout)
    want = sample["ids"][len(sample["prompt_ids"]):][:WORDS]
    return [] if made["ids"] == want else [f"{made['ids']} ({made['text']!r}), expected {want}"]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tenon, failed = str(Path(sys.argv[1]).resolve()), 0
    emulator = Path(tenon).parent / "libtenon_emulator.so"
    if not emulator.exists():
        print("skipped: no emulator in this build")
        return
    os.environ["TENON_DEVICE"] = "emulated"
    os.environ.setdefault("TENON_CUDA_DRIVER", str(emulator))

    def report(name, problems):
        nonlocal failed
        failed += bool(problems)
        print(f"{'FAIL' if problems else 'ok  '} {name}", flush=True)
        for problem in problems:
            print(f"     {problem}")

    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        onnx.save(genai_model.make(), scratch / "genai.onnx")

        def library(model, out, *flags):
            compile_model(tenon, model, scratch / out, f"--max-context={CAPACITY}", *flags)
            return Library(scratch / out)

        try:
            for name, precisions in MODELS.items():
                model = scratch / "genai.onnx" if name == "genai" else ROOT / "test/models/tiny" / name / "model.onnx"
                cpu = library(model, f"{name}.so")
                for precision in precisions:
                    gpu = library(model, f"{name}-{precision}.so", "--target=cuda", "--arch=sm_80", f"--precision={precision}")
                    report(f"{name} {precision}", compare(cpu, gpu, precision))
            report("launches", launches_of_a_layer(tenon, ROOT / "test/models/tiny/qwen2-micro-dynamo23/model.onnx", scratch))
            report("shakespeare", check_text(tenon, scratch))
        except RuntimeError as e:
            if "no NVRTC found" not in str(e):
                raise
            print("skipped: no NVRTC on this machine")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
