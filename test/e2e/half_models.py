#!/usr/bin/env python3
"""Models in f16 and bf16 on the CPU, and f32 models stored so: half_models.py TENON

A tiny BERT and a tiny GPT-2 are turned into models of halves (weights, constants, casts and outputs). Compiled, they
must have as many launches as the f32 model and casts at their ends, half its weights' bytes, and give what the f32 model
with the same rounded weights gives, rounded once. The f32 model with --precision must give that too; in bf16, where CPUs
with AMX round what is multiplied, within one rounding.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from models import run_artifact
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
MODELS = ["bert-tiny-ts", "gpt2-tiny-ts"]
# Relative error of one rounding.
KINDS = {"f16": (TensorProto.FLOAT16, 2.0**-11), "bf16": (TensorProto.BFLOAT16, 2.0**-8)}


def rounded(value, kind):
    """f32 values as halves have them, in f32."""
    if kind == "f16":
        return value.astype(np.float16).astype(np.float32)
    bits = np.ascontiguousarray(value, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32).reshape(value.shape)


def half_tensor(tensor, kind):
    value = rounded(numpy_helper.to_array(tensor), kind)
    if kind == "f16":
        return numpy_helper.from_array(value.astype(np.float16), tensor.name)
    raw = (value.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return helper.make_tensor(tensor.name, TensorProto.BFLOAT16, tensor.dims, raw, raw=True)


def make_half(model, kind):
    """The model in halves, and in f32 with the same matrices."""
    half, single = onnx.ModelProto(), onnx.ModelProto()
    half.CopyFrom(model)
    single.CopyFrom(model)
    element = KINDS[kind][0]
    for target, tensors in [(half, half.graph.initializer), (single, single.graph.initializer)]:
        for tensor in tensors:
            if tensor.data_type != TensorProto.FLOAT:
                continue
            new = half_tensor(tensor, kind) if target is half else numpy_helper.from_array(
                rounded(numpy_helper.to_array(tensor), kind), tensor.name)
            tensor.CopyFrom(new)
    for node in half.graph.node:
        for attribute in node.attribute:
            if node.op_type in ("Constant", "ConstantOfShape") and attribute.name == "value" and attribute.t.data_type == TensorProto.FLOAT:
                attribute.t.CopyFrom(half_tensor(attribute.t, kind))
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = element
    for value in list(half.graph.input) + list(half.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = element
    del half.graph.value_info[:]
    return half, single


def compile_and_run(tenon, model, inputs, scratch, *flags):
    """The outputs, in f32, the number of launches and the megabytes of weights."""
    done = subprocess.run([tenon, "compile", model, "-o", scratch / "m", *flags], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"tenon compile {model} {flags}: {done.stderr}")
    run_artifact(scratch / "m", inputs, scratch / "out.npz")
    outputs = {}
    for name, value in np.load(scratch / "out.npz").items():
        if value.dtype.itemsize == 2 and value.dtype.kind in "Vu":  # bf16, which NumPy has not
            value = (value.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        outputs[name] = value.astype(np.float32)
    return outputs, int(re.search(r"(\d+) launches", done.stderr)[1]), float(re.search(r"weights: +([\d.]+) MB", done.stderr)[1])


def check(tenon, name, kind, scratch):
    model = onnx.load(ROOT / "test/models/tiny" / name / "model.onnx")
    inputs = ROOT / "test/models/tiny" / name / "inputs.npz"
    half, single = make_half(model, kind)
    onnx.save(half, scratch / "half.onnx")
    onnx.save(single, scratch / "single.onnx")
    want, launches, megabytes = compile_and_run(tenon, scratch / "single.onnx", inputs, scratch)
    got, half_launches, half_megabytes = compile_and_run(tenon, scratch / "half.onnx", inputs, scratch)
    stored, stored_launches, stored_megabytes = compile_and_run(tenon, scratch / "single.onnx", inputs, scratch, f"--precision={kind}")
    problems, error = [], KINDS[kind][1]
    # A cast of each output, and of what an embedding gives.
    if half_launches > launches + len(want) + 3:
        problems.append(f"{half_launches} launches, the f32 model has {launches}")
    for what, found in [("in halves", half_megabytes), ("stored in halves", stored_megabytes)]:
        if not found < 0.75 * megabytes:
            problems.append(f"{what}: {found} MB of weights, the f32 model has {megabytes}")
    for output, w in want.items():
        scale = np.abs(w).max()
        # Constants of the model in halves are rounded too: a few roundings.
        for what, found, tolerance in [("in halves", got[output], 8 * error * scale), ("stored", stored[output], (error if kind == "bf16" else 1e-5) * scale)]:
            worst = np.abs(found - w).max()
            if found.shape != w.shape or not worst <= tolerance:
                problems.append(f"{output} {what}: differs by {worst:.3g}, allowed {tolerance:.3g}")
    print(f"{name} {kind}: {launches} launches, in halves {half_launches}; weights {megabytes} MB, {half_megabytes} MB")
    return [f"{name} {kind}: {problem}" for problem in problems]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS:
            for kind in KINDS:
                problems += check(sys.argv[1], name, kind, Path(folder))
    for problem in problems:
        print("FAIL", problem)
    print(f"{len(problems)} problems")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
