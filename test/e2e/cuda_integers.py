#!/usr/bin/env python3
"""Products of bytes on the CUDA target: cuda_integers.py TENON

What DynamicQuantizeLinear and MatMulInteger make: rows of u8 and i8, matrices of i8 and u8, of sizes that divide and that do
not, with zero points and without, one row and many, two products of the same rows, and what comes behind them. Every
product must be one launch that multiplies bytes, on tensor cores, and none may widen an operand. Run by the emulator on
three generations of GPUs, on sm_90a with the form for bulk copies; against ONNX Runtime. Then the products of
integer_weights.py, among them those with differences of nine bits, which have other forms.
"""
import re
import sys
import tempfile
from pathlib import Path

import integer_weights
import numpy as np
import onnx
from cuda_support import compile_cuda, run_emulated, skips
from models import Report
from onnx import TensorProto, helper, numpy_helper

# Rows of two, K, N of a product; where its bytes come from: DynamicQuantizeLinear, else the type of the input and its zero
# point; the matrix: its type, and its zero points: one, or one for each column. All of its differences fit into i8.
CASES = [(1, 544, 512, "dynamic", "i8", None), (7, 1001, 301, "dynamic", "i8", None), (300, 512, 520, "dynamic", "i8", None),
         (5, 1033, 261, ("u8", None), "i8", None), (0, 512, 544, "dynamic", "i8", None), (33, 96, 64, "dynamic", "u8", "one"),
         (3, 47, 33, ("u8", 131), "u8", "column"), (2, 1, 9, ("i8", -7), "i8", "column"), (9, 600, 1, ("i8", None), "u8", "column"),
         (1, 17, 1, ("u8", 255), "u8", "one")]
BYTES = r"launch gemm #\d+ \(%\w+ : u8\[[^]]*\], %\w+ : i8\["
TOLERANCE = 2e-6  # of the largest: whole sums are rounded once, then scaled


def make_model(rng):
    """The model and its inputs."""
    nodes, weights, inputs, outputs, feeds = [], [], [], [], {}

    def op(kind, given, *made, **attrs):
        nodes.append(helper.make_node(kind, given, list(made), name=f"/{made[0]}", **attrs))
        return made[0]

    def constant(name, value):
        weights.append(numpy_helper.from_array(value, name))
        return name

    def matrix(name, of, k, n, zeros):
        """The inputs of MatMulInteger for it: values whose differences from their zero points fit into i8."""
        dtype = np.int8 if of == "i8" else np.uint8
        if zeros is None:
            return constant(f"w_{name}", rng.integers(-128, 128, (k, n)).astype(dtype)), ""
        middle = 0 if of == "i8" else 128
        zero = np.array(middle) if zeros == "one" else middle + rng.integers(-60, 61, n)
        low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max)
        values = rng.integers(np.maximum(low, zero - 128), np.minimum(high, zero + 127) + 1, (k, n))
        return constant(f"w_{name}", values.astype(dtype)), constant(f"wz_{name}", zero.astype(dtype))

    def product(codes, zero, scale, shape, name):
        (k, n, of, zeros) = shape
        weight, point = matrix(name, of, k, n, zeros)
        given = [codes, weight, zero, point]
        while not given[-1]:
            given.pop()
        op("MatMulInteger", given, f"sums_{name}")
        op("Cast", [f"sums_{name}"], f"floats_{name}", to=TensorProto.FLOAT)
        op("Mul", [f"floats_{name}", scale], f"scaled_{name}")
        return op("Add", [f"scaled_{name}", constant(f"b_{name}", rng.standard_normal(n).astype(np.float32))], f"y_{name}")

    for i, (rows, k, n, source, of, zeros) in enumerate(CASES):
        x, dims = f"x{i}", ["batch", f"rows{i}", k]
        if source == "dynamic":
            numbers = rng.integers(0, 256, (2, rows, k))
            numbers.reshape(-1)[:2] = (0, 255)[:numbers.size]  # so that scale and zero point are known, and nothing is near a tie
            feeds[x] = ((numbers - 64) * (4 / 255)).astype(np.float32)
            op("DynamicQuantizeLinear", [x], f"q{i}", f"s{i}", f"z{i}")
            codes, point, scale, element = f"q{i}", f"z{i}", f"s{i}", TensorProto.FLOAT
        else:
            dtype = np.int8 if source[0] == "i8" else np.uint8
            feeds[x] = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, (2, rows, k)).astype(dtype)
            codes, scale, element = x, constant(f"s{i}", np.float32(0.01)), helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            point = "" if source[1] is None else constant(f"z{i}", np.array(source[1], dtype))
        inputs.append(helper.make_tensor_value_info(x, element, dims))
        first = product(codes, point, scale, (k, n, of, zeros), f"{i}a")
        second = op("Relu", [product(codes, point, scale, (k, n, of, zeros), f"{i}b")], f"relu{i}")
        outputs.append(op("Add", [first, second], f"out{i}"))
    graph = helper.make_graph(nodes, "bytes", inputs,
                              [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), feeds


def check_launches(tenon, path, scratch, *flags):
    """Each product is a launch on bytes."""
    compile_cuda(tenon, path, scratch / "plan.tnk", "--arch=sm_80", "--stop-after=planned", *flags)
    lines = [line for line in (scratch / "plan.tnk").read_text().splitlines() if "launch " in line]
    products = [line for line in lines if "launch gemm" in line or "launch matmul" in line]
    problems = [] if len(products) == 2 * len(CASES) else [f"{len(products)} products, expected {2 * len(CASES)}"]
    return problems + [f"multiplies no bytes: {line.strip()}" for line in products if not re.search(BYTES, line)]


def compare(want, got):
    problems = []
    for name, w in want.items():
        g = got[name]
        if g.shape != w.shape or not (np.abs(g - w) <= TOLERANCE * np.abs(w).max(initial=1)).all():
            problems.append(f"{name}: shape {g.shape}, expected {w.shape}" if g.shape != w.shape else
                            f"{name} {CASES[int(name[3:])]}: differs by {np.abs(g - w).max():.3g} of {np.abs(w).max():.3g}")
    return problems


@skips
def main():
    tenon, report = str(Path(sys.argv[1]).resolve()), Report()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        model, feeds = make_model(np.random.default_rng(29))
        onnx.save(model, scratch / "bytes.onnx")
        want = integer_weights.reference(model, feeds)
        report.add("launches", check_launches(tenon, scratch / "bytes.onnx", scratch))
        report.add("launches in f16", check_launches(tenon, scratch / "bytes.onnx", scratch, "--precision=f16"))
        compile_cuda(tenon, scratch / "bytes.onnx", scratch / "bytes", "--arch=sm_75,sm_80,sm_90a")
        for arch in ("sm_75", "sm_80", "sm_90a"):
            report.add(arch, compare(want, run_emulated(tenon, scratch / "bytes", feeds, scratch, arch=arch)[0]))
        cases = integer_weights.Cases()
        model = cases.model()
        onnx.save(model, scratch / "weights.onnx")
        compile_cuda(tenon, scratch / "weights.onnx", scratch / "weights", "--arch=sm_80")
        got, _ = run_emulated(tenon, scratch / "weights", cases.feeds, scratch, arch="sm_80")
        report.add("integer_weights.py", integer_weights.compare(got, integer_weights.reference(model, cases.feeds)))
    report.end()


if __name__ == "__main__":
    main()
