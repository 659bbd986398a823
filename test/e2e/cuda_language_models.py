#!/usr/bin/env python3
"""Language models with their memory on the CUDA target, executed by the emulator:
cuda_language_models.py TENON [--all-samples]

Tiny models with caches, and one with 4-bit weights as the GenAI builder writes them, are compiled with --max-context for
both targets and fed alike: a prefill that takes the forms for many rows, single tokens and three at once that take those
for few. The logits must be the CPU target's, within 1e-4 in f32 and a relative rms error of 5e-3 in f16. A decode step
launches at most seven kernels for a layer of Qwen2, a layer of BERT takes at most eight. The Shakespeare model's program
must write the greedy text of its samples, its first tokens here; --all-samples tests all four texts to their end, and
nothing else. Without NVRTC or emulator there is nothing to test, which is said.
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
from cuda_support import compile_cuda, emulator_beside, skips
from language_models import Library, far
from models import ROOT, Report, compile_model

MODELS = {"llama-tiny-kv-ts": ["f32"], "gpt2-tiny-kv-dynamo": ["f32"], "qwen2-micro-dynamo23": ["f32", "f16"], "genai": ["f32", "f16"]}
CAPACITY, WORDS, FEW_WORDS = 24, 40, 6
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


def launches_of_a_layer(tenon, model, scratch, attention, most, *flags):
    """Kernels between the attention of one layer and that of the next, in a step of one token."""
    compile_cuda(tenon, model, scratch / "p.tnk", "--stop-after=planned", *flags)
    sizes = {"batch": 1, "sequence": 1, "past": 5, "floordiv": lambda a, b: a // b, "min": min, "max": max}
    taken = []
    for line in (scratch / "p.tnk").read_text().splitlines():
        if m := re.match(r"\s+launch (\w+) .*?grid \[(.*?)\] threads", line):
            grid = re.sub(r"\b(?!floordiv|min|max)[A-Za-z_]\w*\b", lambda s: s[0] if s[0] in sizes else "1", m[2])
            if all(n > 0 for n in eval(f"[{grid}]", {"__builtins__": {}}, sizes)):
                taken.append(m[1])
    at = [i for i, kernel in enumerate(taken) if kernel == attention]
    if len(at) != 2:
        return [f"{len(at)} launches of {attention} in two layers: {taken}"]
    count = at[1] - at[0]
    print(f"     {count} launches of a layer: {taken[at[0]:at[1]]}")
    return [] if count <= most else [f"{count} launches of a layer: {taken[at[0]:at[1]]}"]


def check_texts(tenon, scratch, report, everything):
    folder = ROOT / "test/models/shakespeare"
    compile_cuda(tenon, folder / "model.onnx", scratch / "play", f"--tokenizer={folder / 'tokenizer.json'}", "--arch=sm_80",
                 "--max-context=256")
    for i, sample in enumerate(json.loads((folder / "samples.json").read_text())["samples"]):
        want = sample["ids"][len(sample["prompt_ids"]):]
        if not everything:
            want = want[:FEW_WORDS if i else WORDS]
        done = subprocess.run([tenon, "run", scratch / "play", "--generate", "--device=emulated", f"--prompt={sample['prompt']}",
                               "--temperature=0", f"--max-tokens={len(want)}", "--json"], capture_output=True, text=True)
        problems = [done.stderr] if done.returncode else []
        if not problems and (made := json.loads(done.stdout))["ids"] != want:
            problems = [f"{made['ids']} ({made['text']!r}), expected {want}"]
        report.add(f"{len(want)} tokens behind {sample['prompt']!r}", problems)


def check_models(tenon, scratch, report):
    onnx.save(genai_model.make(), scratch / "genai.onnx")
    for name, precisions in MODELS.items():
        model = scratch / "genai.onnx" if name == "genai" else ROOT / "test/models/tiny" / name / "model.onnx"
        compile_model(tenon, model, scratch / f"{name}.so", f"--max-context={CAPACITY}")
        cpu = Library(scratch / f"{name}.so")
        for precision in precisions:
            out = scratch / f"{name}-{precision}.so"
            compile_cuda(tenon, model, out, f"--max-context={CAPACITY}", "--arch=sm_80", f"--precision={precision}")
            report.add(f"{name} {precision}", compare(cpu, Library(out), precision))
    tiny = ROOT / "test/models/tiny"
    report.add("launches of Qwen2's layer", launches_of_a_layer(tenon, tiny / "qwen2-micro-dynamo23/model.onnx", scratch, "attention_decode",
                                                                7, f"--max-context={CAPACITY}"))
    report.add("launches of BERT's layer", launches_of_a_layer(tenon, tiny / "bert-tiny-ts/model.onnx", scratch, "attention_mma", 8,
                                                               "--precision=f16"))


@skips
def main():
    everything = sys.argv[2:] == ["--all-samples"]
    if len(sys.argv) != 2 + everything:
        sys.exit(__doc__)
    tenon, report = str(Path(sys.argv[1]).resolve()), Report()
    os.environ["TENON_DEVICE"] = "emulated"
    os.environ.setdefault("TENON_CUDA_DRIVER", str(emulator_beside(tenon)))
    with tempfile.TemporaryDirectory() as folder:
        if not everything:
            check_models(tenon, Path(folder), report)
        check_texts(tenon, Path(folder), report, everything)
    report.end()


if __name__ == "__main__":
    main()
