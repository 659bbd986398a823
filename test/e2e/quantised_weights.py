#!/usr/bin/env python3
"""com.microsoft MatMulNBits and GatherBlockQuantized in all their forms: quantised_weights.py TENON

One model with a node for each case (2, 4 and 8 bits; blocks of 16 to 256, the last one cut short; zero points absent,
packed or of floats; a bias; few and many rows; accuracy_level 0, 1 and 4) is compiled, run in every CPU form and
compared with NumPy, with its rows rounded to 8 bits for level 4. Every product must use a kernel that reads packed
weights, that for 8-bit rows where the level says so. Where ONNX Runtime has a kernel for a case it must agree. An input
g_idx must be refused by name.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from models import compile_model
from onnx import TensorProto, helper, numpy_helper

# bits, block, rows of the product, K, N, zero points (None, "packed", "float"), bias, accuracy_level
PRODUCTS = [(bits, block, rows, k, n, zeros, bias, level)
            for level in (0, 4) for bits, block, rows, k, n, zeros, bias in [
                (4, 32, 1, 64, 48, None, False), (4, 32, 3, 64, 40, "packed", True), (4, 16, 9, 48, 33, "float", False),
                (4, 128, 20, 300, 17, "packed", False), (4, 256, 2, 256, 64, None, True), (4, 32, 40, 40, 16, None, False),
                (2, 32, 3, 64, 20, "packed", False), (2, 16, 2, 32, 8, None, True), (8, 32, 3, 96, 24, "packed", True),
                (8, 64, 5, 100, 12, None, False), (8, 16, 2, 32, 9, "float", False)]] + [(4, 32, 2, 64, 16, None, False, 1)]
# bits, block, width, zero points
GATHERS = [(4, 32, 64, None), (4, 16, 48, "packed"), (8, 16, 32, None), (8, 32, 80, "packed"), (2, 16, 32, "packed")]


def pack(codes, bits):
    """[..., n] below 2^bits as bytes, the first in the low bits."""
    per = 8 // bits
    pad = -codes.shape[-1] % per
    codes = np.concatenate([codes, np.zeros(codes.shape[:-1] + (pad,), codes.dtype)], -1)
    codes = codes.reshape(*codes.shape[:-1], -1, per).astype(np.uint32)
    return (codes << (np.arange(per) * bits)).sum(-1).astype(np.uint8)


def round_rows(a, block):
    """The rows of a as 8 bits have them, with a scale for each block."""
    k = a.shape[-1]
    x = np.concatenate([a, np.zeros(a.shape[:-1] + (-k % block,), a.dtype)], -1).reshape(*a.shape[:-1], -1, block)
    most = np.abs(x).max(-1, keepdims=True)
    codes = np.round(x * (np.float32(127) / most))
    return (codes.astype(np.float64) * (most / np.float32(127))).reshape(*a.shape[:-1], -1)[..., :k]


def make_model():
    rng = np.random.default_rng(5)
    nodes, inputs, outputs, weights, feeds, want = [], [], [], [], {}, {}

    def weight(name, value):
        weights.append(numpy_helper.from_array(value, name))
        return name

    def finish(name, node, value):
        nodes.append(node)
        outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
        want[name] = value

    for i, (bits, block, rows, k, n, zeros, bias, level) in enumerate(PRODUCTS):
        name, blocks = f"y{i}", -(-k // block)
        codes = rng.integers(0, 1 << bits, (n, blocks * block))
        scales = rng.uniform(0.5, 2, (n, blocks)).astype(np.float32)
        zero = np.full((n, blocks), 1 << (bits - 1), np.float64)
        names = [f"a{i}", weight(f"b{i}", pack(codes, bits).reshape(n, blocks, -1)), weight(f"s{i}", scales.reshape(-1)), "", "", ""]
        if zeros == "packed":
            z = rng.integers(0, 1 << bits, (n, blocks))
            zero, names[3] = z.astype(np.float64), weight(f"z{i}", pack(z, bits).reshape(-1))
        elif zeros == "float":
            z = rng.uniform(0, (1 << bits) - 1, (n, blocks)).astype(np.float32)
            zero, names[3] = z.astype(np.float64), weight(f"z{i}", z)
        a = rng.uniform(-1, 1, (2, rows, k)).astype(np.float32)
        feeds[f"a{i}"] = a
        inputs.append(helper.make_tensor_value_info(f"a{i}", TensorProto.FLOAT, [2, f"rows{i}", k]))
        w = ((codes.reshape(n, blocks, block) - zero[..., None]) * scales[..., None]).reshape(n, -1)[:, :k]
        value = (round_rows(a, block) if level == 4 else a.astype(np.float64)) @ w.T
        if bias:
            v = rng.uniform(-1, 1, n).astype(np.float32)
            names[5], value = weight(f"c{i}", v), value + v
        finish(name, helper.make_node("MatMulNBits", names, [name], name=name, domain="com.microsoft", K=k, N=n, bits=bits,
                                      block_size=block, accuracy_level=level), value)

    for i, (bits, block, width, zeros) in enumerate(GATHERS):
        name, blocks, table = f"g{i}", -(-width // block), 10
        codes = rng.integers(0, 1 << bits, (table, width))
        scales = rng.uniform(0.5, 2, (table, blocks)).astype(np.float32)
        zero = np.full((table, blocks), 1 << (bits - 1))
        names = [weight(f"t{i}", pack(codes, bits)), f"ids{i}", weight(f"ts{i}", scales)]
        if zeros:
            zero = rng.integers(0, 1 << bits, (table, blocks))
            names.append(weight(f"tz{i}", pack(zero, bits)))
        ids = rng.integers(0, table, (2, 3))
        feeds[f"ids{i}"] = ids
        inputs.append(helper.make_tensor_value_info(f"ids{i}", TensorProto.INT64, [2, f"n{i}"]))
        spread = [np.repeat(t, block, axis=1)[:, :width] for t in (zero, scales)]
        finish(name, helper.make_node("GatherBlockQuantized", names, [name], name=name, domain="com.microsoft", bits=bits,
                                      block_size=block, gather_axis=0, quantize_axis=1), ((codes - spread[0]) * spread[1])[ids])

    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "cases", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds, want


def check_packed(tenon, model, scratch):
    """Each product is one launch on packed weights."""
    done = subprocess.run([tenon, "compile", model, "-o", scratch / "p.tnk", "--stop-after=planned"], capture_output=True, text=True)
    text, problems = (scratch / "p.tnk").read_text(), []
    for kernel, levels in [("gemm_codes_f32", (0, 1)), ("gemm_codes_i8", (4,))]:
        launches, wanted = text.count(f"launch {kernel} "), sum(level in levels for *_, level in PRODUCTS)
        if launches != wanted:
            problems.append(f"{launches} launches of {kernel}, expected {wanted} {done.stderr}")
    return problems


def check_against_ort(model, feeds, got):
    """The products that ONNX Runtime has a kernel for, each on its own. Its 8-bit rows round as ours do."""
    import onnxruntime as ort
    problems, compared = [], 0
    for node in [n for n in model.graph.node if n.op_type == "MatMulNBits"]:
        wanted = set(node.input) | set(node.output)
        graph = helper.make_graph([node], "one", [i for i in model.graph.input if i.name in wanted],
                                  [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None)],
                                  [i for i in model.graph.initializer if i.name in wanted])
        one = helper.make_model(graph, opset_imports=model.opset_import, ir_version=10)
        try:
            session = ort.InferenceSession(one.SerializeToString(), providers=["CPUExecutionProvider"])
            want = session.run(None, {node.input[0]: feeds[node.input[0]]})[0]
        except Exception as error:  # whatever it does not support
            print(f"not compared with ONNX Runtime: {node.name}: {str(error).splitlines()[0][:100]}")
            continue
        compared += 1
        a = {a.name: a.i for a in node.attribute}
        scale = np.abs(want).max()
        # It does not round rows in blocks of 16: half a step of 127 for each product then.
        tolerance = scale * (1e-2 if a["accuracy_level"] == 4 and a["block_size"] == 16 else 1e-5)
        worst = np.abs(got[node.output[0]] - want).max()
        if not worst <= tolerance:
            problems.append(f"{node.name}: differs from ONNX Runtime by {worst:.3g} of {scale:.3g}")
    print(f"{compared} products compared with ONNX Runtime")
    return problems


def check_refused(tenon, scratch):
    graph = helper.make_graph(
        [helper.make_node("MatMulNBits", ["a", "b", "s", "", "g"], ["y"], name="node", domain="com.microsoft", K=32, N=8, bits=4,
                          block_size=32)], "g", [helper.make_tensor_value_info("a", TensorProto.FLOAT, [1, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.zeros((8, 1, 16), np.uint8), "b"), numpy_helper.from_array(np.ones(8, np.float32), "s"),
         numpy_helper.from_array(np.zeros(32, np.int32), "g")])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), scratch / "g.onnx")
    done = subprocess.run([tenon, "compile", scratch / "g.onnx", "-o", scratch / "g"], capture_output=True, text=True)
    good = done.returncode == 1 and "'g_idx'" in done.stderr and "'node'" in done.stderr
    return [] if good else [f"g_idx: exit {done.returncode}, {done.stderr}"]


def run_form(scratch, form):
    (scratch / "out.npz").unlink(missing_ok=True)
    chosen = [] if form == "best" else [f"--cpu={form}"]
    return subprocess.run([scratch / "m", "--run", f"--inputs={scratch / 'in.npz'}", f"--outputs={scratch / 'out.npz'}", *chosen],
                          capture_output=True, text=True)


def compare(got, want):
    problems = []
    for name, w in want.items():
        # Sums of at most 300 products below 512 in f32.
        g, tolerance = got.get(name, np.zeros(0)), 1e-6 * (1 + np.abs(w)) * 300
        if g.shape != w.shape or not (np.abs(g - w) <= tolerance).all():
            problems.append(f"{name}: shape {g.shape} for {w.shape}" if g.shape != w.shape else
                            f"{name}: differs by {np.abs(g - w).max():.3g}")
    return problems


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    model, feeds, want = make_model()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        onnx.save(model, scratch / "m.onnx")
        np.savez(scratch / "in.npz", **feeds)
        forms = ["x86-64-v4-vnni", "x86-64-v4", "x86-64-v3", "x86-64"]
        compile_model(sys.argv[1], scratch / "m.onnx", scratch / "m", f"--cpu={','.join(forms)}")
        problems = check_packed(sys.argv[1], scratch / "m.onnx", scratch) + check_refused(sys.argv[1], scratch)
        for form in ["best"] + forms:
            done = run_form(scratch, form)
            if "needs" in done.stderr and form != "best":
                print(f"this CPU has no {form}")
                continue
            got = dict(np.load(scratch / "out.npz")) if done.returncode == 0 else {}
            problems += [f"{form}: {problem}" for problem in compare(got, want)] + [done.stderr] * (done.returncode != 0)
            if form == "best" and got:
                problems += check_against_ort(model, feeds, got)
    for problem in problems:
        print("FAIL", problem)
    print(f"{len(want)} tensors, {len(problems)} problems")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
