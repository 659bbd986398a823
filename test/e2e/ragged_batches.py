#!/usr/bin/env python3
"""Rows of different lengths side by side: ragged_batches.py TENON

Through the C interface of compiled models: short texts are padded, before or behind; prefill and decode of all rows must
give the logits that each row has alone, within 1e-4, with caches as inputs and outputs and as state, also derived ones.
"""
import sys
import tempfile
from pathlib import Path

import genai_model
import numpy as np
import onnx
from language_models import Library
from models import ROOT, compile_model

# Where padding may be. Models without position_ids count it: before a text, rotary embedding does not mind; behind the
# prompt, it would stand between the prompt and what follows, and it is in a sliding window's way there.
BOTH, BEFORE, BEHIND = ("before", "behind"), ("before",), ("behind",)
CASES = [("llama-tiny-kv-ts", [], BOTH), ("gpt2-tiny-kv-dynamo", ["--max-context=40"], BOTH),
         ("qwen3-tiny-kv-dynamo23", ["--max-context=40"], BOTH), ("mistral-tiny-kv-dynamo", ["--max-context=40"], BEFORE),
         ("llama-tiny-dynamo", ["--kv-cache", "--max-context=40"], BEFORE), ("gemma3-tiny-dynamo23", [], BEFORE),
         ("gemma2-tiny-kv-ts", [], BEFORE)]
LENGTHS = [9, 5, 1]


def padded(rows, where, n):
    """Tokens and flags, [rows, n]."""
    tokens, real = np.zeros((len(rows), n), np.int64), np.zeros((len(rows), n), np.uint8)
    for i, row in enumerate(rows):
        at = slice(n - len(row), n) if where == "before" else slice(0, len(row))
        tokens[i, at], real[i, at] = row, 1
    return tokens, real


def check(path, where):
    rng = np.random.default_rng(5)
    alone, together = Library(path), Library(path, rows=len(LENGTHS))
    texts = [list(rng.integers(3, alone.vocabulary, n + 6)) for n in LENGTHS]
    want = []
    for text, n in zip(texts, LENGTHS):
        alone.reset()
        want.append([alone.feed(text[:n]), *(alone.feed([t]) for t in text[n:n + 3]), alone.feed(text[n + 3:])])
    tokens, real = padded([t[:n] for t, n in zip(texts, LENGTHS)], where, max(LENGTHS))
    got = [together.feed_rows(tokens, real)]
    for step in range(3):
        got.append(together.feed_rows([[t[n + step]] for t, n in zip(texts, LENGTHS)]))
    got.append(together.feed_rows([t[n + 3:] for t, n in zip(texts, LENGTHS)]))
    worst = max(float(np.abs(got[step][row] - want[row][step]).max()) for step in range(5) for row in range(len(LENGTHS)))
    return [] if worst <= 1e-4 else [f"padding {where}: differs by {worst:.3g}"]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        onnx.save(genai_model.make(), Path(scratch) / "genai.onnx")
        cases = [(ROOT / "test/models/tiny" / name / "model.onnx", name, flags, where) for name, flags, where in CASES]
        # GroupQueryAttention counts from the front: what is behind a row's own is overwritten.
        cases.append((Path(scratch) / "genai.onnx", "genai", ["--max-context=40"], BEHIND))
        for model, name, flags, places in cases:
            if sys.argv[2:] and name not in sys.argv[2:]:
                continue
            path = Path(scratch) / f"{name}.so"
            compile_model(sys.argv[1], model, path, *flags)
            problems = [p for where in places for p in check(path, where)]
            failed += bool(problems)
            print("\n     ".join([f"{'FAIL' if problems else 'ok  '} {name} {' '.join(flags)}", *problems]), flush=True)
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
