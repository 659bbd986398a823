#!/usr/bin/env python3
"""Rows of different lengths side by side: ragged_batches.py TENON [NAME...]

Through the C interface of compiled models: short texts are padded, before or behind; prefill and decode of all rows must
give the logits that each row has alone, within 1e-4, with caches as inputs and outputs and as state, also derived ones.
Then rows go on at different speeds. The plan must say where the model takes padding; where it does not, rows are computed
one after another.
"""
import sys
import tempfile
from pathlib import Path

import genai_model
import numpy as np
import onnx
import stored_masks
from language_models import Library
from models import ROOT, Report, compile_model

STATE, DERIVED = "--max-context=40", "--kv-cache"
# Where padding changes nothing, as the plan says it: windows see distances between slots, tables of positions the slots
# themselves. GroupQueryAttention ("genai") and models without caches have it behind all tokens and do not ask.
CASES = [("llama-tiny-kv-ts", [], "anywhere"), ("gpt2-tiny-kv-dynamo", [STATE], "anywhere"),
         ("qwen3-tiny-kv-dynamo23", [STATE], "anywhere"), ("mistral-tiny-kv-dynamo", [STATE], "in_front"),
         ("llama-tiny-dynamo", [DERIVED, STATE], "in_front"), ("gemma3-tiny-dynamo23", [], None),
         ("gemma2-tiny-kv-ts", [], "in_front"), ("gpt2-tiny-dynamo", [], None), ("genai-gemma2", [STATE], None),
         ("gpt2-tiny-ts", [DERIVED], "nowhere"), ("gpt2-tiny-dynamo", [DERIVED, STATE], "nowhere"),
         ("llama-tiny-kv-ts", ["--dim=batch=1", STATE], "anywhere"), ("masks", [DERIVED, STATE], "nowhere"), ("genai", [STATE], None)]
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
    more = [list(rng.integers(3, alone.vocabulary, 7)) for _ in LENGTHS]
    for i, text in enumerate(texts):
        alone.reset()
        alone.feed(text)
        first = 2 - i  # 2, 1 and 0 tokens, then 1, 2 and 3 of them
        want[i] += [alone.feed(more[i][:first])] if first else [want[i][-1]]
        want[i].append(alone.feed(more[i][first:3]))
    got.append(together.feed_rows(*padded([m[:2 - i] for i, m in enumerate(more)], where, 2)))
    got.append(together.feed_rows(*padded([m[2 - i:3] for i, m in enumerate(more)], where, 3)))
    # And all over again, as if nothing had been.
    together.reset()
    want = [w + w[:1] for w in want]
    got.append(together.feed_rows(tokens, real))
    worst = max(float(np.abs(got[step][row] - want[row][step]).max()) for step in range(len(got)) for row in range(len(LENGTHS)))
    return [] if worst <= 1e-4 else [f"padding {where}: differs by {worst:.3g}"]


def wrong_place(tenon, model, flags, place, out):
    compile_model(tenon, model, out, "--stop-after=selected", *flags)
    found = next((line.split()[1] for line in out.read_text().splitlines() if line.startswith("padding ")), "nowhere")
    return [] if found == place else [f"padding may stand {found}, expected {place}"]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    report = Report()
    with tempfile.TemporaryDirectory() as scratch:
        made = {name: Path(scratch) / f"{name}.onnx" for name in ("genai", "masks")}
        onnx.save(genai_model.make(), made["genai"])
        onnx.save(stored_masks.make(stored_masks.FORMS), made["masks"])
        for name, flags, place in CASES:
            if sys.argv[2:] and name not in sys.argv[2:]:
                continue
            model = made.get(name, ROOT / "test/models/tiny" / name / "model.onnx")
            path = Path(scratch) / f"{name}{''.join(flags).replace('=', '')}.so"
            compile_model(sys.argv[1], model, path, *flags)
            problems = [p for where in ("before", "behind") for p in check(path, where)]
            problems += [] if place is None else wrong_place(sys.argv[1], model, flags, place, path.with_suffix(".tnk"))
            report.add(f"{name} {' '.join(flags)}", problems)
    report.end()


if __name__ == "__main__":
    main()
