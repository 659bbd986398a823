#!/usr/bin/env python3
"""DequantizeLinear, MatMulInteger and QLinearMatMul with constant matrices: integer_weights.py TENON

One model with a node for each case (i4, u4, i8 and u8; one scale, one for each column or for blocks; zero points or none;
transposed for Gemm; few and many rows) is compiled, run in every CPU form and compared with ONNX Runtime, whose
optimisations are off. Every product must use a kernel that reads packed weights.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from models import compile_model
from onnx import TensorProto, helper, numpy_helper

TYPES = {"i4": TensorProto.INT4, "u4": TensorProto.UINT4, "i8": TensorProto.INT8, "u8": TensorProto.UINT8}
# kind of product, type of the matrix, rows, K, N, layout of scales (None: one; "column"; a block), zero points
CASES = [("matmul", "i8", 1, 96, 80, None, False), ("matmul", "u8", 3, 100, 64, "column", True), ("matmul", "i8", 40, 128, 48, "column", False),
         ("matmul", "i8", 2, 128, 40, 32, True), ("matmul", "u8", 5, 160, 64, 64, False), ("matmul", "i4", 1, 128, 64, 32, False),
         ("matmul", "u4", 9, 96, 64, 16, True), ("matmul", "i4", 3, 64, 72, "column", False), ("gemm", "i8", 4, 96, 64, "column", True),
         ("gemm", "u4", 2, 128, 48, 32, True), ("gemm", "u8", 20, 64, 64, None, True), ("integer", "i8", 7, 96, 64, None, False),
         ("integer", "u8", 2, 600, 48, "column", True), ("integer", "i8", 1, 64, 64, None, True), ("qlinear", "i8", 6, 96, 64, None, True)]
FORMS = ["x86-64-v4-vnni", "x86-64-v4", "x86-64-v3", "x86-64"]


class Cases:
    def __init__(self):
        self.rng = np.random.default_rng(23)
        self.nodes, self.inputs, self.outputs, self.weights, self.feeds = [], [], [], [], {}

    def op(self, kind, inputs, *outputs, **attrs):
        self.nodes.append(helper.make_node(kind, inputs, list(outputs), name=f"/{outputs[0]}", **attrs))
        return outputs[0]

    def f32(self, name, value):
        self.weights.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def codes(self, name, kind, shape):
        low, high = {"i4": (-8, 7), "u4": (0, 15), "i8": (-128, 127), "u8": (0, 255)}[kind]
        value = self.rng.integers(low, high + 1, shape)
        self.weights.append(helper.make_tensor(name, TYPES[kind], shape, value.flatten().tolist()))
        return name

    def add(self, i, kind, of, rows, k, n, layout, zeros):
        x = f"x{i}"
        self.feeds[x] = self.rng.uniform(-1, 1, (2, rows, k) if kind != "gemm" else (rows, k)).astype(np.float32)
        self.inputs.append(helper.make_tensor_value_info(x, TensorProto.FLOAT, [*self.feeds[x].shape[:-2], f"rows{i}", k]))
        self.outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None))
        shape = [n, k] if kind == "gemm" else [k, n]
        axis = shape.index(k) if isinstance(layout, int) else shape.index(n)
        grid = [] if layout is None else [n] if layout == "column" else [-(-k // layout) if d == axis else n for d in (0, 1)]
        w, scale = self.codes(f"w{i}", of, shape), self.f32(f"s{i}", self.rng.uniform(0.01, 0.05, grid))
        zero = self.codes(f"z{i}", of, grid) if zeros else ""
        if kind == "integer":
            self.op("DynamicQuantizeLinear", [x], f"q{i}", f"qs{i}", f"qz{i}")
            self.op("MatMulInteger", [f"q{i}", w, f"qz{i}", zero], f"sums{i}")
            self.op("Cast", [f"sums{i}"], f"floats{i}", to=TensorProto.FLOAT)
            self.op("Mul", [f"floats{i}", self.op("Mul", [f"qs{i}", scale], f"both{i}")], f"y{i}")
            return
        if kind == "qlinear":
            steps, zx = [self.f32(f"{p}s{i}", v) for p, v in (("a", 0.01), ("y", 0.1))], self.codes(f"az{i}", "i8", [])
            q = self.op("QuantizeLinear", [x, steps[0], zx], f"q{i}")
            y = self.op("QLinearMatMul", [q, steps[0], zx, w, scale, zero, steps[1], zx], f"qy{i}")
            self.op("DequantizeLinear", [y, steps[1], zx], f"y{i}")
            return
        attrs = {} if layout is None else dict(axis=axis) if layout == "column" else dict(axis=axis, block_size=layout)
        m = self.op("DequantizeLinear", [w, scale] + [zero] * zeros, f"m{i}", **attrs)
        self.op("MatMul" if kind == "matmul" else "Gemm", [x, m], f"y{i}", **(dict(transB=1) if kind == "gemm" else {}))

    def model(self):
        for i, case in enumerate(CASES):
            self.add(i, *case)
        graph = helper.make_graph(self.nodes, "cases", self.inputs, self.outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def unsigned(model):
    """The same model with u8 matrices in MatMulInteger: ONNX Runtime's products of u8 by i8 saturate at 16 bits without VNNI."""
    same = onnx.ModelProto()
    same.CopyFrom(model)
    weights = {w.name: w for w in same.graph.initializer}
    for node in same.graph.node:
        given = [*node.input, "", ""][:4]
        if node.op_type != "MatMulInteger" or weights[given[1]].data_type != TensorProto.INT8:
            continue
        zero = numpy_helper.to_array(weights[given[3]]) if given[3] else np.int8(0)
        for i, value in ((1, numpy_helper.to_array(weights[given[1]])), (3, zero)):
            given[i] = f"{node.name}/unsigned{i}"
            same.graph.initializer.append(numpy_helper.from_array((value.astype(np.int16) + 128).astype(np.uint8), given[i]))
        del node.input[:]
        node.input.extend(given)
    return same


def reference(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(unsigned(model).SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))


def compare(got, want):
    problems = []
    for name, w in want.items():
        # f32 sums of at most 600 products; of quantised results one step of 0.1 where a sum is next to a tie.
        kind = CASES[int(name[1:])][0]
        tolerance = 0.1001 if kind == "qlinear" else 1e-5 * np.abs(w).max()
        g = got.get(name, np.zeros(0))
        if g.shape != w.shape or not (np.abs(g - w) <= tolerance).all() or (kind == "qlinear" and (g != w).mean() > 0.01):
            problems.append(f"{name} {CASES[int(name[1:])]}: " + (f"shape {g.shape} for {w.shape}" if g.shape != w.shape else
                                                                 f"differs by {np.abs(g - w).max():.3g} of {np.abs(w).max():.3g}"))
    return problems


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cases = Cases()
    model = cases.model()
    want, problems = reference(model, cases.feeds), []
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        onnx.save(model, scratch / "m.onnx")
        np.savez(scratch / "in.npz", **cases.feeds)
        compile_model(sys.argv[1], scratch / "m.onnx", scratch / "p.tnk", "--stop-after=planned")
        text = (scratch / "p.tnk").read_text()
        packed = text.count("launch gemm_codes_f32 ") + text.count("launch gemm_bytes")
        if packed != len(CASES):
            problems.append(f"{packed} launches on packed weights, expected {len(CASES)}")
        compile_model(sys.argv[1], scratch / "m.onnx", scratch / "m", f"--cpu={','.join(FORMS)}")
        for form in FORMS:
            done = subprocess.run([scratch / "m", "--run", f"--inputs={scratch / 'in.npz'}", f"--outputs={scratch / 'out.npz'}",
                                   f"--cpu={form}"], capture_output=True, text=True)
            if "needs" in done.stderr:
                print(f"this CPU has no {form}")
            elif done.returncode:
                problems.append(f"{form}: {done.stderr}")
            else:
                problems += [f"{form}: {problem}" for problem in compare(dict(np.load(scratch / "out.npz")), want)]
    print("\n".join([*("FAIL " + problem for problem in problems), f"{len(want)} products, {len(problems)} problems"]))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
