#!/usr/bin/env python3
"""Models of 4-bit weights whose rows are rounded to 8 bits, beside ONNX Runtime: int4_models.py TENON [FOLDER]

The law of accuracy_level 4 (docs/small-weights.md) leaves no choice but the order of sums: each product, on the rows that
it was given, must be within 1e-6 of the greatest element of the law in double. Two implementations then differ where one
number before rounding lies so near the middle of two codes that the last bits of sums decide. So of many random texts
those with the same codes everywhere must have the same logits, within 1e-5 of the greatest, and those that differ must
have had inputs that agree, within 1e-5 of the greatest, up to the first code that differs. FOLDER holds another model.onnx.
"""
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from models import ROOT, Report, compile_model, run_artifact
from onnx import TensorProto, helper, numpy_helper
from quantised_weights import round_rows

TEXTS, TOKENS, HEAD = 48, 12, 16


def with_products(model):
    """The model with operands and results of MatMulNBits as outputs; and those nodes."""
    nodes = [n for n in model.graph.node if n.op_type == "MatMulNBits"]
    names = {t for n in nodes for t in (n.input[0], n.output[0])} - {o.name for o in model.graph.output}
    model.graph.output.extend(helper.make_tensor_value_info(t, TensorProto.FLOAT, None) for t in sorted(names))
    return nodes


def weights(node, stored):
    """[N, K] in double, and the size of a block; zero points in the middle."""
    a = {a.name: a.i for a in node.attribute}
    bits, block = a["bits"], a["block_size"]
    packed = stored[node.input[1]].reshape(a["N"], -1)
    codes = np.stack([(packed >> (bits * i)) & ((1 << bits) - 1) for i in range(8 // bits)], -1).reshape(a["N"], -1, block)
    scales = stored[node.input[2]].reshape(a["N"], -1, 1).astype(np.float64)
    assert a["accuracy_level"] == 4 and not any(node.input[3:4])
    return ((codes - float(1 << (bits - 1))) * scales).reshape(a["N"], -1)[:, :a["K"]], block


def codes(a, block):
    x = a.reshape(*a.shape[:-1], -1, block)
    most = np.abs(x).max(-1, keepdims=True)
    return np.round(x * (np.float32(127) / np.where(most > 0, most, 1))).reshape(a.shape)


def feeds_of(model):
    rng = np.random.default_rng(23)
    all_ids = rng.integers(3, 90, (TEXTS, TOKENS))
    feeds = {"input_ids": all_ids, "attention_mask": np.ones_like(all_ids), "position_ids": np.tile(np.arange(TOKENS), (TEXTS, 1))}
    for i in model.graph.input:
        if i.name.startswith("past"):
            d = i.type.tensor_type.shape.dim
            feeds[i.name] = np.zeros((TEXTS, d[1].dim_value, 0, d[3].dim_value or HEAD), np.float32)
    return {i.name: feeds[i.name] for i in model.graph.input}


def check(tenon, path, scratch):
    model = onnx.load(path)
    stored = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    nodes, feeds = with_products(model), feeds_of(model)
    onnx.save(model, scratch / "m.onnx")
    np.savez(scratch / "in.npz", **feeds)
    compile_model(tenon, scratch / "m.onnx", scratch / "m")
    compile_model(tenon, path, scratch / "plain")
    got = run_artifact(scratch / "m", scratch / "in.npz", scratch / "out.npz")
    plain = run_artifact(scratch / "plain", scratch / "in.npz", scratch / "out.npz")["logits"]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(scratch / "m.onnx"), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    want = dict(zip(names, session.run(names, feeds)))
    problems, same, worst_law, apart, flips = [], np.ones(TEXTS, bool), 0.0, 0.0, 0
    for n in nodes:
        a, b = got[n.input[0]], want[n.input[0]]
        apart = max(apart, float((np.abs(a - b).max((1, 2)) * same).max() / np.abs(b).max()))
        matrix, block = weights(n, stored)
        law = round_rows(a, block) @ matrix.T
        if len(n.input) > 5 and n.input[5]:
            law = law + stored[n.input[5]]
        worst_law = max(worst_law, float(np.abs(got[n.output[0]] - law).max() / np.abs(law).max()))
        differ = codes(a, block) != codes(b, block)
        flips += int(differ[same].sum())
        same &= ~differ.any((1, 2))
    d = np.abs(plain - want["logits"]).max((1, 2)) / np.abs(want["logits"]).max()
    if not worst_law <= 1e-6:
        problems.append(f"products differ from the law by {worst_law:.2e} of their greatest element")
    if not apart <= 1e-5:
        problems.append(f"before any code differs, inputs differ by {apart:.2e} of the greatest")
    if not (same.any() and d[same].max() <= 1e-5):
        problems.append(f"{same.sum()} texts have the same codes, logits differ by {d[same].max(initial=0):.2e} of the greatest")
    rest = f"others {d[~same].max():.1e}" if (~same).any() else "no others"
    return problems, (f"products within {worst_law:.1e} of the law; {same.sum()} of {TEXTS} texts have the same codes and logits within "
                      f"{d[same].max(initial=0):.1e}, {rest} ({flips} codes were first to differ)")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    report = Report()
    for folder in map(Path, sys.argv[2:] or [ROOT / "test/models/tiny" / name for name in ("genai-llama-int4", "genai-qwen3-int4")]):
        with tempfile.TemporaryDirectory() as scratch:
            problems, text = check(sys.argv[1], folder / "model.onnx", Path(scratch))
            report.add(f"{folder.name}: {text}", problems)
    report.end()


if __name__ == "__main__":
    main()
