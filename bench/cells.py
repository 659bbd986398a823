"""What is measured: models, shapes, precisions, and the figure that each cell is to reach.

A cell is a model at one size in one mode. A mode says how Tenon compiles the model, which peers do the same work, and how
far outputs may be from ONNX Runtime's in f32 (relative rms error), for all of them alike.
"""
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Mode:
    flags: tuple  # of `tenon compile`
    peers: tuple  # names in worker.py
    limit: str  # what bounds arithmetic: a key of machine-peak's
    divisor: float  # products of that unit in one of f32
    tolerance: float


F32 = ("onnxruntime", "openvino-f32")
MODES = {
    "f32": Mode(("--precision=f32",), F32, "amx_bf16_gflops", 6, 1e-3),
    "f32-fma": Mode(("--precision=f32-fma",), F32, "fma_gflops", 1, 1e-3),
    "f32-fast": Mode(("--precision=f32-fast",), F32, "amx_bf16_gflops", 3, 1e-3),
    "bf16": Mode(("--precision=bf16",), ("openvino-bf16",), "amx_bf16_gflops", 1, 0.1),
    # The model rounds products itself, and each runtime takes its own liberties about it.
    "int8-dynamic": Mode((), ("onnxruntime", "openvino-f32"), "amx_int8_gops", 1, 0.1),
    "int8-weights": Mode(("--weights=int8",), ("openvino-bf16",), "fma_gflops", 1, 0.1),
    "int4-weights": Mode((), ("onnxruntime", "openvino-bf16"), "fma_gflops", 1, 0.1),
}


@dataclass(frozen=True)
class Cell:
    name: str
    model: str  # a folder with model.onnx
    mode: str
    batch: int = 1
    tokens: int = 0  # 0: images
    past: int = -1  # -1: a model without caches
    figure: float = 0.0  # Tenon / best peer, to be reached
    pages: str = "map"

    @property
    def how(self):
        return MODES[self.mode]


def _cells():
    encoders = {
        "bert-1x128": ("bert-base-ts", 1, 128), "bert-1x384": ("bert-base-ts", 1, 384), "bert-8x128": ("bert-base-ts", 8, 128),
        "minilm-1x16": ("minilm", 1, 16), "minilm-32x128": ("minilm", 32, 128), "gpt2-1x128": ("gpt2-ts", 1, 128),
        "vit-1": ("vit-base", 1, 0),
    }
    for name, (model, batch, tokens) in encoders.items():
        yield Cell(f"{name}/f32-fma", model, "f32-fma", batch, tokens, figure=0.85)
        yield Cell(f"{name}/f32", model, "f32", batch, tokens, figure=0.75 if name == "minilm-1x16" else 0.45)
        yield Cell(f"{name}/bf16", model, "bf16", batch, tokens, figure=0.45)
    yield Cell("bert-1x128/int8-dynamic", "bert-base-int8", "int8-dynamic", 1, 128, figure=0.3)
    qwen = "qwen2-0.5b"
    yield Cell("qwen-prefill128/f32", qwen, "f32", 1, 128, 0, 0.45)
    yield Cell("qwen-prefill128/bf16", qwen, "bf16", 1, 128, 0, 0.45)
    for past in (128, 1024):
        yield Cell(f"qwen-decode{past}/f32", qwen, "f32", 1, 1, past, 0.97)
        yield Cell(f"qwen-decode{past}/f32-huge", qwen, "f32", 1, 1, past, 0.97, "huge")
        yield Cell(f"qwen-decode{past}/bf16", qwen, "bf16", 1, 1, past, 0.75)
        yield Cell(f"qwen-decode{past}/int8-weights", qwen, "int8-weights", 1, 1, past, 0.5)
        yield Cell(f"qwen-decode{past}/int4-weights", "qwen2-0.5b-int4", "int4-weights", 1, 1, past, 0.5)


CELLS = {cell.name: cell for cell in _cells()}


def make_inputs(ports, cell):
    """Arrays for `ports`, (name, dtype, dimensions) each, a name or a number for each dimension: ids, masks of ones,
    positions, pixels, caches of unit normal numbers."""
    rng = np.random.default_rng(7)
    past = max(cell.past, 0)
    sizes = {"batch": cell.batch, "sequence": cell.tokens, "past": past, "total": past + cell.tokens}
    feeds = {}
    for name, dtype, dims in ports:
        shape = [d if isinstance(d, int) else sizes.get(d, cell.batch) for d in dims]
        if "mask" in name:
            feeds[name] = np.ones(shape, np.int64)
        elif "type" in name:
            feeds[name] = np.zeros(shape, np.int64)
        elif "position" in name:
            feeds[name] = np.broadcast_to(np.arange(past, past + cell.tokens), shape).astype(np.int64)
        elif "ids" in name:
            feeds[name] = rng.integers(1000, 20000, shape, np.int64)
        else:
            feeds[name] = rng.standard_normal(shape).astype(dtype)
    return feeds
