"""A small language model as ONNX Runtime's GenAI builder writes them, with random weights: for language_models.py.

GatherBlockQuantized, SimplifiedLayerNormalization (in ONNX's domain), MatMulNBits of 4 bits, GroupQueryAttention with
rotary embedding, a packed query and a sliding window in the second layer, SkipSimplifiedLayerNormalization, SwiGLU, and
lengths computed from the attention mask.
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, HIDDEN, HEADS, KEY_HEADS, HEAD, INNER, BLOCK, LAYERS = 96, 64, 4, 2, 16, 128, 32, 2


class Builder:
    def __init__(self):
        self.rng = np.random.default_rng(11)
        self.nodes, self.weights = [], []

    def weight(self, name, value):
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def op(self, kind, inputs, output, domain="", outputs=(), **attrs):
        self.nodes.append(helper.make_node(kind, inputs, [output, *outputs], name=f"/{output}", domain=domain, **attrs))
        return output

    def codes(self, name, rows, columns):
        """[rows, columns] of random 4-bit codes with a scale for each block."""
        blocks = columns // BLOCK
        return (self.weight(f"{name}.q", self.rng.integers(0, 256, (rows, blocks, BLOCK // 2), dtype=np.uint8)),
                self.weight(f"{name}.s", self.rng.uniform(0.01, 0.03, rows * blocks).astype(np.float32)))

    def linear(self, x, name, k, n):
        q, s = self.codes(name, n, k)
        return self.op("MatMulNBits", [x, q, s], name, "com.microsoft", K=k, N=n, bits=4, block_size=BLOCK, accuracy_level=1)

    def norm_weight(self, name):
        return self.weight(name, self.rng.uniform(0.8, 1.2, HIDDEN).astype(np.float32))

    def lengths(self):
        """seqlens_k and total_sequence_length."""
        one = self.weight("one", np.array([1], np.int64))
        self.op("ReduceSum", ["attention_mask", one], "ones", keepdims=0)
        self.op("Sub", ["ones", one], "last")
        self.op("Cast", ["last"], "seqlens_k", to=TensorProto.INT32)
        self.op("Shape", ["attention_mask"], "mask_shape")
        self.op("Gather", ["mask_shape", self.weight("axis", np.array(1, np.int64))], "total64", axis=0)
        self.op("Cast", ["total64"], "total", to=TensorProto.INT32)

    def layer(self, i, x, skip):
        ms = "com.microsoft"
        h = self.op("SkipSimplifiedLayerNormalization", [x, skip, self.norm_weight(f"n{i}a")], f"h{i}", ms,
                    outputs=["", "", f"r{i}"], epsilon=1e-6) if skip else self.op(
                        "SimplifiedLayerNormalization", [x, self.norm_weight("n0")], "h0", epsilon=1e-6, axis=-1)
        residual = f"r{i}" if skip else x
        qkv = self.linear(h, f"qkv{i}", HIDDEN, (HEADS + 2 * KEY_HEADS) * HEAD)
        past = [f"past_key_values.{i}.key", f"past_key_values.{i}.value"]
        window = {"local_window_size": 6} if i else {}
        a = self.op("GroupQueryAttention", [qkv, "", "", *past, "seqlens_k", "total", "cos", "sin"], f"a{i}", ms,
                    outputs=[f"present.{i}.key", f"present.{i}.value"], num_heads=HEADS, kv_num_heads=KEY_HEADS, do_rotary=1, **window)
        o = self.linear(a, f"o{i}", HEADS * HEAD, HIDDEN)
        m = self.op("SkipSimplifiedLayerNormalization", [residual, o, self.norm_weight(f"n{i}b")], f"m{i}", ms,
                    outputs=["", "", f"s{i}"], epsilon=1e-6)
        gate, up = self.linear(m, f"gate{i}", HIDDEN, INNER), self.linear(m, f"up{i}", HIDDEN, INNER)
        self.op("Sigmoid", [gate], f"sig{i}")
        self.op("Mul", [gate, f"sig{i}"], f"silu{i}")
        self.op("Mul", [f"silu{i}", up], f"inner{i}")
        return f"s{i}", self.linear(f"inner{i}", f"down{i}", INNER, HIDDEN)


def make():
    b = Builder()
    angles = np.arange(64)[:, None] / 100.0 ** (np.arange(HEAD // 2) / (HEAD // 2))
    b.weight("cos", np.cos(angles).astype(np.float32))
    b.weight("sin", np.sin(angles).astype(np.float32))
    b.lengths()
    q, s = b.codes("embedding", VOCABULARY, HIDDEN)
    b.weights[-2] = numpy_helper.from_array(numpy_helper.to_array(b.weights[-2]).reshape(VOCABULARY, -1), q)
    b.weights[-1] = numpy_helper.from_array(numpy_helper.to_array(b.weights[-1]).reshape(VOCABULARY, -1) * 10, s)
    x = b.op("GatherBlockQuantized", [q, "input_ids", s], "x", "com.microsoft", bits=4, block_size=BLOCK, gather_axis=0,
             quantize_axis=1)
    skip = None
    for i in range(LAYERS):
        x, skip = b.layer(i, x, skip)
    b.op("SkipSimplifiedLayerNormalization", [x, skip, b.norm_weight("final")], "f", "com.microsoft", epsilon=1e-6)
    b.linear("f", "logits", HIDDEN, VOCABULARY)
    info = helper.make_tensor_value_info
    past = [KEY_HEADS, "past_sequence_length", HEAD]
    present = [KEY_HEADS, "total_sequence_length", HEAD]
    names = [f"{i}.{kind}" for i in range(LAYERS) for kind in ("key", "value")]
    inputs = [info("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]),
              info("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"])]
    inputs += [info(f"past_key_values.{n}", TensorProto.FLOAT, ["batch_size", *past]) for n in names]
    outputs = [info("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", VOCABULARY])]
    outputs += [info(f"present.{n}", TensorProto.FLOAT, ["batch_size", *present]) for n in names]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph(b.nodes, "genai", inputs, outputs, b.weights), opset_imports=opsets, ir_version=10)
