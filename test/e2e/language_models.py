#!/usr/bin/env python3
"""Language models with their memory: language_models.py TENON

Tiny models with caches (test/models/tiny, and one as the GenAI builder writes them) are compiled as libraries, with the caches as inputs and outputs and as
state (--max-context), and fed through the C interface: a prefill must give the logits of the reference's model run in
one go, and prefill and decode those of a longer prefill, within 1e-4. The context's end must be an error that says so.
The greedy samples of test/models/shakespeare must come out id by id.
"""
import ctypes
import json
import sys
import tempfile
from pathlib import Path

import genai_model
import numpy as np
import onnx
import onnxruntime
from models import ROOT, Report, compile_model

MODELS = ["llama-tiny-kv-ts", "llama-tiny-kv-dynamo", "gpt2-tiny-kv-ts", "gpt2-tiny-kv-dynamo", "qwen2-micro-dynamo23"]
CAPACITY = 24


class Library:
    """A compiled language model through its C interface."""

    def __init__(self, path, rows=1):
        lib = self.lib = ctypes.CDLL(str(path))
        for name in ("tenon_open", "tenon_lm_create_rows"):
            getattr(lib, name).restype = ctypes.c_void_p
        for name in ("tenon_open_error", "tenon_lm_error"):
            getattr(lib, name).restype = ctypes.c_char_p
        for name in ("logits", "logits_row"):
            getattr(lib, "tenon_lm_" + name).restype = ctypes.POINTER(ctypes.c_float)
        for name in ("vocabulary", "capacity", "position"):
            getattr(lib, "tenon_lm_" + name).restype = ctypes.c_int64
        model = lib.tenon_open()
        if not model:
            raise RuntimeError(lib.tenon_open_error().decode())
        lm = lib.tenon_lm_create_rows(ctypes.c_void_p(model), 2, ctypes.c_size_t(rows))
        if not lm:
            raise RuntimeError(lib.tenon_open_error().decode())
        self.lm = ctypes.c_void_p(lm)
        self.vocabulary = lib.tenon_lm_vocabulary(self.lm)
        self.capacity = lib.tenon_lm_capacity(self.lm)

    def feed(self, tokens):
        data = (ctypes.c_int64 * len(tokens))(*tokens)
        if self.lib.tenon_lm_feed(self.lm, data, ctypes.c_size_t(len(tokens))):
            raise RuntimeError(self.lib.tenon_lm_error(self.lm).decode())
        return np.ctypeslib.as_array(self.lib.tenon_lm_logits(self.lm), (self.vocabulary,)).copy()

    def feed_rows(self, tokens, real=None):
        """Logits of each row's last token."""
        tokens = np.ascontiguousarray(tokens, np.int64)
        if real is not None:
            real = np.ascontiguousarray(real, np.uint8)
        flags = None if real is None else real.ctypes.data_as(ctypes.c_void_p)
        if self.lib.tenon_lm_feed_rows(self.lm, tokens.ctypes.data_as(ctypes.c_void_p), flags, ctypes.c_size_t(tokens.size)):
            raise RuntimeError(self.lib.tenon_lm_error(self.lm).decode())
        return [np.ctypeslib.as_array(self.lib.tenon_lm_logits_row(self.lm, ctypes.c_size_t(row)), (self.vocabulary,)).copy()
                for row in range(len(tokens))]

    def position(self):
        return self.lib.tenon_lm_position(self.lm)

    def reset(self):
        self.lib.tenon_lm_reset(self.lm)


def refused(lm, tokens, text):
    try:
        lm.feed(tokens)
    except RuntimeError as e:
        return [] if text in str(e) else [f"the message is '{e}', expected '{text}'"]
    return [f"no error, expected '{text}'"]


def far(what, a, b):
    worst = float(np.abs(a - b).max())
    return [] if worst <= 1e-4 else [f"{what}: differs by {worst:.3g}"]


def check_tiny(plain, state):
    problems, tokens = [], [int(t) for t in np.random.default_rng(7).integers(0, plain.vocabulary, CAPACITY)]
    state.reset()
    if state.capacity != CAPACITY:
        problems.append(f"the capacity is {state.capacity}")
    whole = plain.feed(tokens)
    problems += far("prefill as state", whole, state.feed(tokens))
    for lm, name in ((plain, "caches"), (state, "state")):
        lm.reset()
        lm.feed(tokens[:11])
        for token in tokens[11:-3]:
            lm.feed([token])
        problems += far(f"prefill, decode, and three at once with {name}", whole, lm.feed(tokens[-3:]))
        if lm.position() != CAPACITY:
            problems.append(f"the position is {lm.position()}")
    problems += refused(state, [0], "the context is full")
    problems += refused(state, [-1], "outside the vocabulary")
    problems += refused(state, [], "0 tokens")
    state.reset()
    problems += refused(state, tokens + [0], "the context is full")
    problems += far("after refusals", whole, state.feed(tokens))
    return problems


def against_onnxruntime(model, lm):
    """The logits of a prompt from an empty cache."""
    session = onnxruntime.InferenceSession(model)
    tokens = [5, 80, 3, 41, 7, 7, 19, 2, 66]
    feeds = {i.name: np.zeros([1, i.shape[1], 0, i.shape[3]], np.float32) for i in session.get_inputs() if i.name.startswith("past")}
    feeds |= {"input_ids": np.array([tokens]), "attention_mask": np.ones((1, len(tokens)), np.int64)}
    lm.reset()
    want = session.run(["logits"], feeds)[0][0, -1]
    return far("against ONNX Runtime", want, lm.feed(tokens))


def check_samples(lm, samples):
    problems = []
    for sample in samples:
        lm.reset()
        got = list(sample["prompt_ids"])
        logits = lm.feed(got)
        while len(got) < len(sample["ids"]):
            got.append(int(logits.argmax()))
            logits = lm.feed(got[-1:])
        if got != sample["ids"]:
            at = next(i for i, (a, b) in enumerate(zip(got, sample["ids"])) if a != b)
            problems.append(f"{sample['prompt']!r}: token {at} is {got[at]}, expected {sample['ids'][at]}")
    return problems


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    report = Report()
    with tempfile.TemporaryDirectory() as scratch:
        def library(model, out, *flags):
            compile_model(sys.argv[1], model, Path(scratch) / out, *flags)
            return Library(Path(scratch) / out)

        for name in MODELS:
            model = ROOT / "test/models/tiny" / name / "model.onnx"
            report.add(name, check_tiny(library(model, f"{name}.so"),
                                        library(model, f"{name}-state.so", f"--max-context={CAPACITY}")))
        model = Path(scratch) / "genai.onnx"
        onnx.save(genai_model.make(), model)
        plain, state = library(model, "g.so"), library(model, "g-state.so", f"--max-context={CAPACITY}")
        report.add("genai", check_tiny(plain, state) + against_onnxruntime(model, plain) + against_onnxruntime(model, state))
        folder = ROOT / "test/models/shakespeare"
        samples = json.loads((folder / "samples.json").read_text())["samples"]
        report.add("shakespeare", check_samples(library(folder / "model.onnx", "s.so", "--max-context=256"), samples))
    report.end()


if __name__ == "__main__":
    main()
