#!/usr/bin/env python3
"""Rows of different lengths side by side: ragged_batches.py TENON [NAME...]

Through the C interface of compiled models: short texts are padded, before or behind; prefill and decode of all rows must
give the logits that each row has alone, within 1e-4, with caches as inputs and outputs and as state, also derived ones.
Then rows go on at different speeds, where the model's caches let them.
"""
import sys
import tempfile
from pathlib import Path

import genai_model
import numpy as np
import onnx
from language_models import Library
from models import ROOT, compile_model

# Whether rows may go on at different speeds: caches that keep a slot for padding count it in windows, and as positions
# where the model has no position_ids; caches that drop old tokens want all rows to go on alike.
CASES = [("llama-tiny-kv-ts", [], True), ("gpt2-tiny-kv-dynamo", ["--max-context=40"], True),
         ("qwen3-tiny-kv-dynamo23", ["--max-context=40"], True), ("mistral-tiny-kv-dynamo", ["--max-context=40"], False),
         ("llama-tiny-dynamo", ["--kv-cache", "--max-context=40"], False), ("gemma3-tiny-dynamo23", [], True),
         ("gemma2-tiny-kv-ts", [], False), ("gpt2-tiny-dynamo", [], True), ("genai-gemma2", ["--max-context=40"], False)]
LENGTHS = [9, 5, 1]


def padded(rows, where, n):
    """Tokens and flags, [rows, n]."""
    tokens, real = np.zeros((len(rows), n), np.int64), np.zeros((len(rows), n), np.uint8)
    for i, row in enumerate(rows):
        at = slice(n - len(row), n) if where == "before" else slice(0, len(row))
        tokens[i, at], real[i, at] = row, 1
    return tokens, real


def check(path, where, uneven):
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
    if uneven:
        more = [list(rng.integers(3, alone.vocabulary, 7)) for _ in LENGTHS]
        for i, (text, n) in enumerate(zip(texts, LENGTHS)):
            alone.reset()
            alone.feed(text)
            first = 2 - i  # 2, 1 and 0 tokens, then 1, 2 and 3 of them
            want[i] += [alone.feed(more[i][:first])] if first else [want[i][-1]]
            want[i].append(alone.feed(more[i][first:3]))
        got.append(together.feed_rows(*padded([m[:2 - i] for i, m in enumerate(more)], where, 2)))
        got.append(together.feed_rows(*padded([m[2 - i:3] for i, m in enumerate(more)], where, 3)))
    worst = max(float(np.abs(got[step][row] - want[row][step]).max()) for step in range(len(got)) for row in range(len(LENGTHS)))
    return [] if worst <= 1e-4 else [f"padding {where}: differs by {worst:.3g}"]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        onnx.save(genai_model.make(), Path(scratch) / "genai.onnx")
        cases = [(ROOT / "test/models/tiny" / name / "model.onnx", name, flags, uneven) for name, flags, uneven in CASES]
        cases.append((Path(scratch) / "genai.onnx", "genai", ["--max-context=40"], True))
        for model, name, flags, uneven in cases:
            if sys.argv[2:] and name not in sys.argv[2:]:
                continue
            path = Path(scratch) / f"{name}.so"
            compile_model(sys.argv[1], model, path, *flags)
            problems = [p for where in ("before", "behind") for p in check(path, where, uneven)]
            failed += bool(problems)
            print("\n     ".join([f"{'FAIL' if problems else 'ok  '} {name} {' '.join(flags)}", *problems]), flush=True)
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
