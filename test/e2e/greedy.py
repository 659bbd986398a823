#!/usr/bin/env python3
"""Greedy text against ONNX Runtime's: greedy.py TENON [--large | FOLDER...]

200 tokens, one by one, from models with caches: Tenon's choice must be that of ONNX Runtime for as long as the two best
logits of ONNX Runtime differ by more than 1e-3; nearer ones are a draw, and both go on from ONNX Runtime's token. Logits
must agree within 3e-4 all along. By default tiny models of every family, tables of positions made long enough; decoders
behind an encoder get its keys and values at random and keep their own as state; --large is Qwen2 of 0.5 billion weights, from $TENON_MODELS or filled
in for this (exit status 77 without either); a folder holds model.onnx.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from language_models import Library
from models import ROOT, SHARED, Report, compile_model

sys.path.insert(0, str(ROOT / "python"))
from tenon.library import load

TINY = ["qwen3-tiny-kv-ts", "mistral-tiny-kv-dynamo", "gemma2-tiny-kv-ts", "gemma3-tiny-kv-dynamo", "phi3-tiny-kv-dynamo",
        "llama-tiny-kv-dynamo", "gpt2-tiny-kv-ts", "gpt2-tiny-kv-dynamo", "qwen2-micro-ts", "phi-tiny-kv-ts", "t5-tiny-decoder-past-dynamo",
        "whisper-tiny-decoder-past-ts", "genai-qwen3", "genai-gemma2", "genai-gpt-oss", "genai-mistral"]
SLIDING, HEAD = 7, 16  # as test/models/genai_models.py makes them
TOKENS, DRAW, TOLERANCE = 200, 1e-3, 3e-4


def first_cache(name, shape, batch):
    """Of a cache before the first token: without rows, or as many as its window has."""
    if "encoder" in name:
        return np.random.default_rng(len(name)).normal(0, 1, [batch, shape[1], shape[2] if isinstance(shape[2], int) else 11, shape[3]])
    return np.zeros([batch, shape[1], SLIDING if "sliding" in str(shape[2]) else 0, shape[3] if isinstance(shape[3], int) else HEAD])


class Reference:
    def __init__(self, model):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self.names = {i.name: i.shape for i in self.session.get_inputs()}
        self.outputs = [o.name for o in self.session.get_outputs()]
        batch = self.names["input_ids"][0]  # some exports fix it
        self.batch = batch if isinstance(batch, int) else 1
        self.caches = {n: first_cache(n, shape, self.batch).astype(np.float32) for n, shape in self.names.items() if n.startswith("past")}
        self.fed = 0

    def others(self, tokens):
        """The inputs that are no caches."""
        feeds = {"input_ids": np.array([tokens]), "attention_mask": np.ones((1, self.fed + len(tokens)), np.int64),
                 "position_ids": np.arange(self.fed, self.fed + len(tokens))[None], "encoder_attention_mask": np.ones((1, 11), np.int64)}
        return {k: np.repeat(v, self.batch, 0) for k, v in feeds.items() if k in self.names}

    def feed(self, tokens):
        made = dict(zip(self.outputs, self.session.run(None, self.others(tokens) | self.caches)))
        self.caches |= {i: made[o] for i in self.caches if (o := i.replace("past_key_values", "present")) in made}
        self.fed += len(tokens)
        return made["logits"][0, -1]


class Decoder:
    """A decoder behind an encoder, through its library."""

    def __init__(self, path, reference):
        self.call, self.reference = load(path), reference
        self.fixed = {n: c for n, c in reference.caches.items() if "encoder" in n}

    def feed(self, tokens):
        return self.call(self.reference.others(tokens) | self.fixed)["logits"][0, -1]


def more_positions(model):
    """Tables of positions get rows for all tokens: learned ones at random, angles by going on as they do."""
    tables = {w.name: onnx.numpy_helper.to_array(w) for w in model.graph.initializer if w.name in ("cos_cache", "sin_cache")}
    if tables:
        angles = np.arange(TOKENS + 8)[:, None] * np.arctan2(tables["sin_cache"][1], tables["cos_cache"][1]).astype(np.float64)
        tables = {"cos_cache": np.cos(angles), "sin_cache": np.sin(angles)}
    for weight in model.graph.initializer:
        if weight.name in tables:
            weight.CopyFrom(onnx.numpy_helper.from_array(tables[weight.name].astype(np.float32), weight.name))
        if "wpe" in weight.name or "embed_positions" in weight.name:
            values = np.random.default_rng(4).normal(0, 0.2, [TOKENS + 8, weight.dims[1]]).astype(np.float32)
            weight.CopyFrom(onnx.numpy_helper.from_array(values, weight.name))
    return model


def check(tenon, model, scratch):
    if model.resolve().parent.parent.name == "tiny":
        onnx.save(more_positions(onnx.load(model)), Path(scratch) / "model.onnx")
        model = Path(scratch) / "model.onnx"
    library = Path(scratch) / "model.so"
    compile_model(tenon, model, library, f"--max-context={TOKENS + 8}")
    reference = Reference(model)
    encoded = any("encoder" in name for name in reference.names)
    lm = Decoder(library, reference) if encoded else Library(library)
    step, draws, worst = [7] if encoded else [7, 42, 3, 19], 0, 0.0
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
            check_all([large(scratch)])
    check_all([Path(f) for f in sys.argv[2:]] or [ROOT / "test/models/tiny" / name for name in TINY])


def check_all(folders):
    report = Report()
    for folder in folders:
        with tempfile.TemporaryDirectory() as scratch:
            problems, text = check(sys.argv[1], folder / "model.onnx", scratch)
        report.add(f"{folder.name:26} {text}", problems)
    report.end()


if __name__ == "__main__":
    main()
