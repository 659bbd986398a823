#!/usr/bin/env python3
"""Inputs and outputs of elements below a byte: packed_types.py TENON

In files they are bytes, each a number or the code of a float; the artifact packs them. Compared with the types of
ml_dtypes.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from models import Report, compile_model
from onnx import TensorProto, helper

TYPES = {"i4": (TensorProto.INT4, ml_dtypes.int4, np.arange(-8, 8)), "u4": (TensorProto.UINT4, ml_dtypes.uint4, np.arange(16)),
         "i2": (TensorProto.INT2, ml_dtypes.int2, np.arange(-2, 2)), "u2": (TensorProto.UINT2, ml_dtypes.uint2, np.arange(4)),
         "f4": (TensorProto.FLOAT4E2M1, ml_dtypes.float4_e2m1fn, np.array([-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6]))}


def model(path):
    """Of each type: what goes in as f32, in another shape, and made of f32."""
    nodes, inputs, outputs = [], [], []
    for name, (kind, _, _) in TYPES.items():
        inputs += [helper.make_tensor_value_info(name, kind, ["n"]), helper.make_tensor_value_info(f"{name}_from", 1, ["n"])]
        outputs += [helper.make_tensor_value_info(f"{name}_value", 1, ["n"]),
                    helper.make_tensor_value_info(f"{name}_moved", kind, [1, "n"]),
                    helper.make_tensor_value_info(f"{name}_made", kind, ["n"])]
        nodes += [helper.make_node("Cast", [name], [f"{name}_value"], to=1),
                  helper.make_node("Unsqueeze", [name, "axis"], [f"{name}_moved"]),
                  helper.make_node("Cast", [f"{name}_from"], [f"{name}_made"], to=kind)]
    axis = helper.make_tensor("axis", TensorProto.INT64, [1], [0])
    graph = helper.make_graph(nodes, "packed", inputs, outputs, [axis])
    onnx.save(helper.make_model(graph, ir_version=13, opset_imports=[helper.make_opsetid("", 25)]), path)


def stored(array):
    """As a file has it: numbers of integers, codes of floats."""
    return array.view(np.uint8) if array.dtype == ml_dtypes.float4_e2m1fn else \
        array.astype(np.int8 if array.dtype in (ml_dtypes.int4, ml_dtypes.int2) else np.uint8)


def run(artifact, folder, feeds):
    np.savez(folder / "in.npz", **feeds)
    return subprocess.run([artifact, "--run", f"--inputs={folder / 'in.npz'}", f"--outputs={folder / 'out.npz'}"],
                          capture_output=True, text=True)


def main():
    report = Report()
    rng = np.random.default_rng(4)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model(folder / "model.onnx")
        compile_model(sys.argv[1], folder / "model.onnx", folder / "artifact")
        for n in (0, 1, 2, 3, 4, 5, 33, 1000):
            values = {t: rng.choice(numbers, n).astype(kind) for t, (_, kind, numbers) in TYPES.items()}
            floats = {t: rng.choice(numbers, n).astype(np.float32) for t, (_, _, numbers) in TYPES.items()}
            # Both as this program and as ml_dtypes write them.
            for way in (stored, lambda array: array):
                feeds = {t: way(v) for t, v in values.items()} | {f"{t}_from": v for t, v in floats.items()}
                result = run(folder / "artifact", folder, feeds)
                if result.returncode:
                    report.add(f"{n} elements", [result.stderr])
                    continue
                got = np.load(folder / "out.npz")
                for t, (_, kind, _) in TYPES.items():
                    right = [np.array_equal(got[f"{t}_value"], values[t].astype(np.float32)),
                             np.array_equal(got[f"{t}_moved"].view(np.uint8), stored(values[t])[None].view(np.uint8)),
                             np.array_equal(got[f"{t}_made"].view(np.uint8), stored(floats[t].astype(kind)).view(np.uint8))]
                    report.add(f"{n} elements of {t}", [] if all(right) else [f"value, moved, made: {right}"])
        right = {t: np.zeros(3, np.int8 if t[0] == "i" else np.uint8) for t in TYPES} | \
                {f"{t}_from": np.zeros(3, np.float32) for t in TYPES}
        for case, feeds, message in (("out of range", {"i4": np.array([0, 7, 8], np.int8)}, "'i4': element 2 is 8, which i4 does not hold"),
                                     ("negative", {"i2": np.array([-3, 0, 0], np.int8)}, "'i2': element 0 is -3, which i2 does not hold"),
                                     ("of another sign", {"u4": np.zeros(3, np.int8)}, "u4"), ("floats", {"i4": np.zeros(3, np.float32)}, "i4")):
            result = run(folder / "artifact", folder, right | feeds)
            report.add(case, [] if result.returncode and message in result.stderr else [f"{result.returncode}: {result.stderr}"])
    report.end()


if __name__ == "__main__":
    main()
