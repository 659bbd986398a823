#!/usr/bin/env python3
"""Tenon on a GPU: gpu.py TENON [--device=cuda|emulated] [--small] [--models=DIR] [--out=FILE.json] [NAME...]

Each measurement compiles a model for the GPU that is there, runs it and takes the kernels' own times from the profile
(events of the driver), the median of ROUNDS runs. Printed, and written as JSON with the card's name:

  gemm-4096, gemm-8192     one product of halves, against cuBLAS on the same GPU where it is installed (the Toolkit's or
                           the Python package nvidia-cublas), and as a share of the card's published peak
  attention-N              causal attention of 16 heads of 128, N tokens: as a share of the peak
  bert-base                1x128 and 8x128: latency of a run with its copies, and the kernels' part of it
  qwen2-decode             one token behind 512: the kernels' bytes over their time, as a share of the card's bandwidth

Peaks are those of codegen/target/Devices.def. Models of real sizes come from --models or $TENON_MODELS; without them
those two are left out. --small takes sizes that the emulator can do and the repository's tiny models, whose times mean
nothing: so a machine without a GPU can test that all of this works.
"""
import argparse
import ctypes
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 5


def cards():
    """Published peaks by the short name of the card."""
    fields = ("arch", "f32", "tf32", "half", "bandwidth", "memory")
    found = re.findall(r'^TN_DEVICE\((\w+), "[^"]*", ([^)]*)\)', (ROOT / "codegen/target/Devices.def").read_text(), re.M)
    return {name: dict(zip(fields, map(float, rest.split(",")))) for name, rest in found}


def card_of(device):
    """The peaks of a card by the driver's name for it; None: unknown."""
    plain = device.lower().replace(" ", "")
    return next((peaks for name, peaks in cards().items() if name in plain), None)


class Bench:
    def __init__(self, options, scratch):
        self.options, self.scratch, self.device = options, Path(scratch), None
        self.flags = [f"--device={options.device}"]
        self.env = dict(os.environ)
        if options.device == "emulated":
            self.env.setdefault("TENON_CUDA_DRIVER", str(Path(options.tenon).parent / "libtenon_emulator.so"))

    def compile(self, model, name):
        """The artifact of a model: a file, or one of onnx's."""
        path, artifact = self.scratch / f"{name}.onnx", self.scratch / name
        if isinstance(model, onnx.ModelProto):
            onnx.save(model, path)
            model = path
        subprocess.run([self.options.tenon, "compile", model, "-o", artifact, "--target=cuda", f"--arch={self.options.arch}",
                        f"--precision={self.options.precision}"], check=True, stderr=subprocess.DEVNULL)
        return artifact

    def measure(self, artifact, feeds):
        """What --bench says, and for each kernel of the profile its name and median milliseconds."""
        given, trace = self.scratch / "in.npz", self.scratch / "trace.json"
        np.savez(given, **feeds)
        rounds, result = [], None
        for _ in range(1 if self.options.small else ROUNDS):
            done = subprocess.run([artifact, "--bench", f"--inputs={given}", "--json", f"--profile={trace}",
                                   f"--seconds={0.01 if self.options.small else 1}", *self.flags],
                                  capture_output=True, text=True, env=self.env)
            if done.returncode:
                raise RuntimeError(done.stderr.strip())
            result = json.loads(done.stdout)
            events = json.loads(trace.read_text())["traceEvents"]
            rounds.append([(e["args"]["kernel"], e["dur"] / 1e3) for e in events if e["ph"] == "X"])
        self.device = result["device"]
        names = [name for name, _ in rounds[0]]
        return result, [(n, statistics.median(r[i][1] for r in rounds)) for i, n in enumerate(names)]

    def share(self, value, peak):
        """Of a peak of the card; None where the card is not known."""
        card = card_of(self.device)
        return value / card[peak] if card and not self.options.small else None


# --- models ----------------------------------------------------------------------------------------------------------

def value(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def two_products(size):
    """x @ a @ b: what the first product reads and writes are halves."""
    rng = np.random.default_rng(1)
    weights = [numpy_helper.from_array(rng.standard_normal((size, size), np.float32) / np.float32(size) ** 0.5, n) for n in "ab"]
    nodes = [helper.make_node("MatMul", ["x", "a"], ["t"]), helper.make_node("MatMul", ["t", "b"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value("x", [size, size])], [value("y", [size, size])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def attention(heads, tokens, width):
    shape = [1, heads, tokens, width]
    nodes = [helper.make_node("Attention", list("qkv"), ["y"], is_causal=1)]
    graph = helper.make_graph(nodes, "g", [value(n, shape) for n in "qkv"], [value("y", shape)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def model_folder(bench, real, tiny):
    models = bench.options.models or os.environ.get("TENON_MODELS")
    folder = ROOT / "test/models/tiny" / tiny if bench.options.small else Path(models or "/nonexistent") / real
    return folder if (folder / "model.onnx").exists() else None


# --- cuBLAS ----------------------------------------------------------------------------------------------------------

def cublas_library():
    folders = [os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/lib64", *glob.glob(sys.prefix + "/lib/python3*/site-packages/nvidia/*/lib")]
    for name in [f for folder in folders for f in sorted(glob.glob(folder + "/libcublas.so*"))] + ["libcublas.so.13", "libcublas.so.12"]:
        try:
            return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
    return None


def cublas_milliseconds(size, precision):
    """cublasGemmEx with sums in f32: the median of some timed runs; None where there is no cuBLAS."""
    blas = cublas_library()
    if not blas:
        return None
    cuda = ctypes.CDLL("libcuda.so.1")

    def ok(result):
        if result:
            raise RuntimeError(f"cuBLAS or driver: error {result}")

    context, handle, pointer = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64
    ok(cuda.cuInit(0))
    ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    ok(cuda.cuCtxSetCurrent(context))
    ok(blas.cublasCreate_v2(ctypes.byref(handle)))
    buffers = [pointer() for _ in range(3)]
    for buffer in buffers:
        ok(cuda.cuMemAlloc_v2(ctypes.byref(buffer), ctypes.c_size_t(2 * size * size)))
        # Numbers near 1: zeros would need less power, and run faster.
        ok(cuda.cuMemsetD16_v2(buffer, ctypes.c_ushort(0x3F81 if precision == "bf16" else 0x3C01), ctypes.c_size_t(size * size)))
    kind = 14 if precision == "bf16" else 2  # cudaDataType
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    events = [ctypes.c_void_p(), ctypes.c_void_p()]
    for event in events:
        ok(cuda.cuEventCreate(ctypes.byref(event), 0))
    times = []
    for _ in range(4 * ROUNDS):
        ok(cuda.cuEventRecord(events[0], None))
        ok(blas.cublasGemmEx(handle, 0, 0, size, size, size, ctypes.byref(one), buffers[0], kind, size, buffers[1], kind, size,
                             ctypes.byref(zero), buffers[2], kind, size, 68, -1))  # CUBLAS_COMPUTE_32F, default algorithm
        ok(cuda.cuEventRecord(events[1], None))
        ok(cuda.cuEventSynchronize(events[1]))
        elapsed = ctypes.c_float()
        ok(cuda.cuEventElapsedTime(ctypes.byref(elapsed), events[0], events[1]))
        times.append(elapsed.value)
    for buffer in buffers:
        ok(cuda.cuMemFree_v2(buffer))
    return statistics.median(times[ROUNDS:])


# --- measurements ----------------------------------------------------------------------------------------------------

def rate(bench, milliseconds, flops):
    tflops = flops / milliseconds / 1e9
    return {"milliseconds": milliseconds, "flops": flops, "tflops": tflops, "share_of_peak": bench.share(tflops, "half")}


def gemm(bench, size):
    size = 256 if bench.options.small else size
    artifact = bench.compile(two_products(size), f"gemm-{size}")
    x = np.random.default_rng(2).standard_normal((size, size), np.float32)
    _, kernels = bench.measure(artifact, {"x": x})
    ours = next(ms for name, ms in kernels if "gemm" in name)
    out = rate(bench, ours, 2 * size**3)
    if bench.options.device == "cuda":
        theirs = cublas_milliseconds(size, bench.options.precision)
        out |= {"cublas_milliseconds": theirs, "of_cublas": theirs and theirs / ours}
    return out


def attend(bench, tokens):
    heads, tokens, width = (2, 128, 64) if bench.options.small else (16, tokens, 128)
    artifact = bench.compile(attention(heads, tokens, width), f"attention-{tokens}")
    rng = np.random.default_rng(3)
    _, kernels = bench.measure(artifact, {n: rng.standard_normal((1, heads, tokens, width), np.float32) for n in "qkv"})
    # Half of the products are behind the causal mask.
    return rate(bench, sum(ms for name, ms in kernels if "attention" in name), 2 * heads * tokens**2 * width)


def bert(bench, batch, tokens):
    folder = model_folder(bench, "bert-base-ts", "bert-tiny-ts")
    if not folder:
        return None
    artifact = bench.scratch / "bert"
    if not artifact.exists():
        bench.compile(folder / "model.onnx", "bert")
    ids = np.random.default_rng(4).integers(0, 500, (batch, tokens))
    result, kernels = bench.measure(artifact, {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)})
    return rate(bench, sum(ms for _, ms in kernels), result["flops"]) | {"latency_milliseconds": result["median_ms"]}


def decode(bench, past):
    folder = model_folder(bench, "qwen2-0.5b", "qwen2-micro-ts")
    if not folder:
        return None
    past = 16 if bench.options.small else past
    model, rng = onnx.load(folder / "model.onnx", load_external_data=False), np.random.default_rng(5)
    feeds = {"input_ids": np.array([[7]]), "attention_mask": np.ones((1, past + 1), np.int64), "position_ids": np.array([[past]])}
    for i in model.graph.input:
        if i.name.startswith("past_key_values"):
            dims = [d.dim_value for d in i.type.tensor_type.shape.dim]
            feeds[i.name] = rng.standard_normal((1, dims[1], past, dims[3]), np.float32)
    result, kernels = bench.measure(bench.compile(folder / "model.onnx", "qwen2"), feeds)
    milliseconds = sum(ms for _, ms in kernels)
    gbps = result["bytes"] / milliseconds / 1e6
    return {"milliseconds": milliseconds, "bytes": result["bytes"], "gbps": gbps, "share_of_bandwidth": bench.share(gbps, "bandwidth"),
            "tokens_per_second": 1e3 / milliseconds}


MEASUREMENTS = {
    "gemm-4096": lambda b: gemm(b, 4096), "gemm-8192": lambda b: gemm(b, 8192),
    "attention-2048": lambda b: attend(b, 2048), "attention-8192": lambda b: attend(b, 8192),
    "bert-base-1x128": lambda b: bert(b, 1, 16 if b.options.small else 128),
    "bert-base-8x128": lambda b: bert(b, 2 if b.options.small else 8, 16 if b.options.small else 128),
    "qwen2-decode": lambda b: decode(b, 512),
}


def text(key, number):
    if number is None:
        return f"{key} unknown"
    return f"{key} {number:.0%}" if key.startswith(("share", "of_")) else f"{key} {number:.4g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--device", choices=("cuda", "emulated"), default="cuda")
    parser.add_argument("--arch", default="sm_80,sm_90a")
    parser.add_argument("--precision", choices=("bf16", "f16"), default="bf16")
    parser.add_argument("--small", action="store_true", help="sizes for the emulator")
    parser.add_argument("--models", help="folder of models of real sizes")
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("names", nargs="*", help=f"what to measure: {', '.join(MEASUREMENTS)}")
    options = parser.parse_intermixed_args()
    if options.device == "cuda":
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            print("no GPU here: there is no libcuda.so.1; --device=emulated --small tests this program")
            return
    measured = {}
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options, scratch)
        for name in options.names or MEASUREMENTS:
            result = MEASUREMENTS[name](bench)
            if result is None:
                print(f"{name}: left out, its model is not here")
                continue
            measured[name] = result
            print(f"{name}: " + ", ".join(text(k, v) for k, v in result.items()), flush=True)
        whole = {"device": bench.device, "precision": options.precision, "small": options.small, "measured": measured}
    print(json.dumps(whole))
    if options.out:
        options.out.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
