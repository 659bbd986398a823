#!/usr/bin/env python3
"""Writes if.onnx, y = c ? x[i] : x[j] with an own row for each case, and inputs for it.

Only the branch that is taken may complain of its indices.
"""
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper


def branch(name, indices):
    node = helper.make_node("Gather", ["x", indices], [name], name=name, axis=0)
    return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, T.FLOAT, None)])


node = helper.make_node("If", ["c"], ["y"], name="choose", then_branch=branch("first", "i"), else_branch=branch("second", "j"))
inputs = [
    helper.make_tensor_value_info("x", T.FLOAT, ["n", 2]),
    helper.make_tensor_value_info("c", T.BOOL, []),
    helper.make_tensor_value_info("i", T.INT64, ["m"]),
    helper.make_tensor_value_info("j", T.INT64, ["m"]),
]
graph = helper.make_graph([node], "if", inputs, [helper.make_tensor_value_info("y", T.FLOAT, ["m", 2])])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "if.onnx")

x = np.arange(6, dtype=np.float32).reshape(3, 2)
for name, c, i, j in [("then", True, [2, -3], [3, 7]), ("else", False, [9, 9], [0, 1]), ("wrong", True, [0, 3], [0, 0])]:
    np.savez(f"{name}.npz", x=x, c=np.array(c), i=np.array(i), j=np.array(j))
