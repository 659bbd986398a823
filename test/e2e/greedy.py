#!/usr/bin/env python3
"""Greedy text against ONNX Runtime's: greedy.py TENON [--large | FOLDER...]

200 tokens, one by one, from models with caches: Tenon's choice must be that of ONNX Runtime for as long as the two best
logits of ONNX Runtime differ by more than 1e-3; nearer ones are a draw, and both go on from ONNX Runtime's token. Logits
must agree within 3e-4 all along. By default tiny models; --large is Qwen2 of 0.5 billion weights, from $TENON_MODELS or filled
in for this (exit status 77 without either); a folder holds model.onnx.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
from language_models import Library
from models import ROOT, SHARED, compile_model

TINY = ["qwen3-tiny-kv-ts", "mistral-tiny-kv-dynamo", "gemma2-tiny-kv-ts", "gemma3-tiny-kv-dynamo", "phi3-tiny-kv-dynamo",
        "llama-tiny-kv-dynamo"]
TOKENS, DRAW, TOLERANCE = 200, 1e-3, 3e-4


def empty(shape, window, head):
    """Of a cache before the first token: without rows, or as many as its window has; the batch is 1."""
    return [1, shape[1], window if "sliding" in str(shape[2]) else 0, shape[3] if isinstance(shape[3], int) else head]


class Reference:
    """`window` and `head` are the sizes of what the GenAI builder leaves open."""

    def __init__(self, model, window=0, head=0):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self.pasts = [i for i in self.session.get_inputs() if i.name.startswith("past")]
        self.names = {i.name for i in self.session.get_inputs()}
        self.caches = {i.name: np.zeros(empty(i.shape, window, head), np.float32) for i in self.pasts}
        self.fed = 0

    def feed(self, tokens):
        feeds = {"input_ids": np.array([tokens]), "attention_mask": np.ones((1, self.fed + len(tokens)), np.int64),
                 "position_ids": np.arange(self.fed, self.fed + len(tokens))[None]}
        outputs = [o.name for o in self.session.get_outputs()]
        made = dict(zip(outputs, self.session.run(None, {k: v for k, v in feeds.items() if k in self.names} | self.caches)))
        self.caches = {i.name: made[i.name.replace("past_key_values", "present")] for i in self.pasts}
        self.fed += len(tokens)
        return made["logits"][0, -1]


def check(tenon, model, scratch, window=0, head=0):
    # Tiny models know 96 tokens and more, and positions up to 128.
    library = Path(scratch) / "model.so"
    compile_model(tenon, model, library, f"--max-context={TOKENS + 8}")
    lm, reference = Library(library), Reference(model, window, head)
    step, draws, worst = [7, 42, 3, 19], 0, 0.0
    for n in range(TOKENS):
        got, want = lm.feed(step), reference.feed(step)
        worst = max(worst, float(np.abs(got - want).max()))
        best = int(want.argmax())
        two = np.partition(want, -2)[-2:]
        if two[1] - two[0] <= DRAW:
            draws += 1
        elif int(got.argmax()) != best:
            return [f"token {n} is {int(got.argmax())}, ONNX Runtime's {best}, which leads by {two[1] - two[0]:.3g}"], ""
        step = [best]
    problems = [] if worst <= TOLERANCE else [f"logits differ by {worst:.3g}"]
    return problems, f"{TOKENS} tokens, {draws} draws, logits within {worst:.2e}"


def large(scratch):
    if named := os.environ.get("TENON_MODELS"):
        return Path(named) / "qwen2-0.5b"
    fill = SHARED / "models" / "fill.py"
    if not fill.exists():
        print("no models of real sizes: name their folder in $TENON_MODELS")
        sys.exit(77)
    subprocess.run([sys.executable, fill, "qwen2-0.5b", "--out", scratch], check=True, stdout=subprocess.DEVNULL)
    return Path(scratch) / "qwen2-0.5b"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[2:] == ["--large"]:
        with tempfile.TemporaryDirectory() as scratch:
            sys.exit(check_all([large(scratch)]))
    sys.exit(check_all([Path(f) for f in sys.argv[2:]] or [ROOT / "test/models/tiny" / name for name in TINY]))


def check_all(folders):
    failed = 0
    for folder in folders:
        with tempfile.TemporaryDirectory() as scratch:
            problems, text = check(sys.argv[1], folder / "model.onnx", scratch)
        failed += bool(problems)
        print("\n     ".join([f"{'FAIL' if problems else 'ok  '} {folder.name:26} {text}", *problems]), flush=True)
    return failed != 0


if __name__ == "__main__":
    main()
