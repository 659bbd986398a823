#!/usr/bin/env python3
"""Peak memory of language models with caches: cache_memory.py TENON

Artifacts run prompts that fill their caches, as state (--max-context) or as inputs and outputs, so that every byte of them
is touched. What the process needs at its peak must be within 5 % or 8 MB of the formula that it prints before it runs
(weights once, caches, activations), and the caches must be most of what the formula says to grow with the tokens.
"""
import sys
import tempfile
from pathlib import Path

import numpy as np
from models import ROOT, Report, compile_model, peak_memory, printed_bytes, run_stderr

ROWS, TOKENS = 512, 128
CACHE = 2 * 2 * 4 * 16 * 4 * ROWS * TOKENS  # two layers, keys and values, four heads of 16 floats
CASES = [("gpt2-tiny-kv-ts", ["--max-context=128"]), ("gpt2-tiny-kv-dynamo", []), ("gpt2-tiny-ts", ["--kv-cache", "--max-context=128"])]


def check(tenon, name, flags, scratch):
    artifact, given, got = scratch / name, scratch / "in.npz", scratch / "out.npz"
    compile_model(tenon, ROOT / "test/models/tiny" / name / "model.onnx", artifact, "--last-logits-only", *flags)
    feeds = {"input_ids": np.ones((ROWS, TOKENS), np.int64), "attention_mask": np.ones((ROWS, TOKENS), np.int64)}
    if "kv" in name:
        feeds["position_ids"] = np.tile(np.arange(TOKENS), (ROWS, 1))
    if not flags:  # state need not be given
        feeds |= {f"past_key_values.{i}.{kind}": np.zeros((ROWS, 4, 0, 16), np.float32) for i in (0, 1) for kind in ("key", "value")}
    np.savez(given, **feeds)
    command = [artifact, "--run", f"--inputs={given}", f"--outputs={got}", "--pages=huge"]
    printed, peak = printed_bytes(run_stderr(command)), peak_memory(*command)
    text = f"{name} {' '.join(flags)}: {peak / 1e6:.1f} MB of {printed / 1e6:.1f} MB printed, caches {CACHE / 1e6:.1f} MB"
    wrong = abs(peak - printed) > max(0.05 * printed, 8e6) or printed < CACHE
    return text, ["the peak is not what was printed"] * wrong


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    report = Report()
    with tempfile.TemporaryDirectory() as scratch:
        for name, flags in CASES:
            report.add(*check(sys.argv[1], name, flags, Path(scratch)))
    report.end()


if __name__ == "__main__":
    main()
