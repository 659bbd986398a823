#!/usr/bin/env python3
"""Writes a model with two ops that nobody knows: unknown_ops.py FILE.onnx"""
import sys

from onnx import TensorProto, helper

f32 = TensorProto.FLOAT
graph = helper.make_graph(
    [
        helper.make_node("Frobnicate", ["x"], ["a"], name="first"),
        helper.make_node("Twiddle", ["a"], ["b"], name="second", domain="com.example"),
        helper.make_node("Relu", ["b"], ["y"], name="third"),
    ],
    "unknown",
    [helper.make_tensor_value_info("x", f32, ["n"])],
    [helper.make_tensor_value_info("y", f32, ["n"])],
)
imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
with open(sys.argv[1], "wb") as f:
    f.write(helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())
