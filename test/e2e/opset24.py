#!/usr/bin/env python3
"""A language model of opset 24 with caches of fixed length: opset24.py TENON

RMSNormalization, RotaryEmbedding, TensorScatter into caches [batch, heads, room, size], Attention over what is filled of
them (nonpad_kv_seqlen) and Swish: a ragged prefill and two steps of decoding, whose caches go from outputs to inputs, are
compared with ONNX's own reference implementation.
"""
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from models import compile_model, run_artifact
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

VOCABULARY, HIDDEN, HEADS, KEY_HEADS, HEAD, ROOM, LAYERS = 50, 32, 4, 2, 8, 12, 2


class Model:
    def __init__(self):
        self.rng = np.random.default_rng(31)
        self.nodes, self.weights, self.made = [], [], 0

    def weight(self, value):
        self.weights.append(numpy_helper.from_array(value, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def random(self, *shape, scale=0.3, middle=0.0):
        return self.weight(self.rng.normal(middle, scale, shape).astype(np.float32))

    def op(self, kind, *inputs, name=None, **attrs):
        self.made += 1
        name = name or f"t{self.made}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=f"/{name}", **attrs))
        return name

    def norm(self, x):
        return self.op("RMSNormalization", x, self.random(HIDDEN, middle=1.0), axis=-1, epsilon=1e-5)

    def heads(self, x, n, bias=0.0):
        y = self.op("MatMul", x, self.random(HIDDEN, n * HEAD))
        y = self.op("Reshape", y, self.weight(np.array([0, 0, n, HEAD])))
        return self.op("Transpose", y, perm=[0, 2, 1, 3])

    def layer(self, i, x):
        h = self.norm(x)
        turn = [self.cos, self.sin, "position_ids"]
        q = self.op("RotaryEmbedding", self.heads(h, HEADS), *turn)
        k = self.op("RotaryEmbedding", self.heads(h, KEY_HEADS), *turn)
        v = self.heads(h, KEY_HEADS)
        k, v = (self.op("TensorScatter", f"past.{i}.{kind}", new, "write_indices", axis=2, name=f"present.{i}.{kind}")
                for kind, new in (("key", k), ("value", v)))
        y = self.op("Attention", q, k, v, self.mask, "", "", "filled")
        y = self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1, 3]), self.weight(np.array([0, 0, HEADS * HEAD])))
        x = self.op("Add", x, self.op("MatMul", y, self.random(HEADS * HEAD, HIDDEN)))
        h = self.norm(x)
        gate = self.op("Swish", self.op("MatMul", h, self.random(HIDDEN, 2 * HIDDEN)))
        inner = self.op("Mul", gate, self.op("MatMul", h, self.random(HIDDEN, 2 * HIDDEN)))
        return self.op("Add", x, self.op("MatMul", inner, self.random(2 * HIDDEN, HIDDEN)))

    def build(self):
        angles = np.arange(ROOM)[:, None] / 50.0 ** (np.arange(HEAD // 2) / (HEAD // 2))
        self.cos, self.sin = (self.weight(f(angles).astype(np.float32)) for f in (np.cos, np.sin))
        # Keys up to the query's own position.
        places = self.op("Unsqueeze", "position_ids", self.weight(np.array([1, 3])))
        self.mask = self.op("LessOrEqual", self.weight(np.arange(ROOM)), places)
        x = self.op("Gather", self.random(VOCABULARY, HIDDEN, scale=1.0), "input_ids")
        for i in range(LAYERS):
            x = self.layer(i, x)
        self.op("MatMul", self.norm(x), self.random(HIDDEN, VOCABULARY), name="logits")
        info = helper.make_tensor_value_info
        tokens, room = ["batch", "sequence"], ["batch", KEY_HEADS, ROOM, HEAD]
        names = [f"{i}.{kind}" for i in range(LAYERS) for kind in ("key", "value")]
        inputs = [info("input_ids", TensorProto.INT64, tokens), info("position_ids", TensorProto.INT64, tokens),
                  info("write_indices", TensorProto.INT64, ["batch"]), info("filled", TensorProto.INT64, ["batch"])]
        inputs += [info(f"past.{n}", TensorProto.FLOAT, room) for n in names]
        outputs = [info("logits", TensorProto.FLOAT, [*tokens, VOCABULARY]), *(info(f"present.{n}", TensorProto.FLOAT, room) for n in names)]
        graph = helper.make_graph(self.nodes, "opset24", inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    model, rng = Model().build(), np.random.default_rng(2)
    reference, problems = ReferenceEvaluator(model), []
    names = [o.name for o in model.graph.output]
    caches = {n.replace("present", "past"): np.zeros((2, KEY_HEADS, ROOM, HEAD), np.float32) for n in names[1:]}
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        onnx.save(model, scratch / "m.onnx")
        compile_model(sys.argv[1], scratch / "m.onnx", scratch / "m", f"--require-fused=attention:{LAYERS}")
        # Rows of 5 and 3 tokens, of which the second is padded behind; then one token each, in their own places.
        for step, (n, places) in enumerate([(5, [0, 0]), (1, [5, 3]), (1, [6, 4])]):
            at = np.array(places)
            filled = np.array([5, 3]) + step
            feeds = caches | {"input_ids": rng.integers(0, VOCABULARY, (2, n)), "position_ids": at[:, None] + np.arange(n),
                              "write_indices": at, "filled": filled}
            want = dict(zip(names, reference.run(None, feeds)))
            np.savez(scratch / "in.npz", **feeds)
            got = run_artifact(scratch / "m", scratch / "in.npz", scratch / "out.npz")
            for name in names:
                # Tokens that are padding see keys that are not filled; nobody looks at them.
                rows = [(0, slice(None)), (1, slice(0, 3) if n == 5 else slice(None))] if name == "logits" else [(slice(None),)]
                worst = max(float(np.abs(got[name][r] - want[name][r]).max()) for r in rows)
                problems += [f"step {step}, {name}: differs by {worst:.3g}"] * (not worst <= 1e-4)
            caches = {n.replace("present", "past"): want[n] for n in names[1:]}
    print("\n".join([*("FAIL " + p for p in problems), f"{len(problems)} problems"]))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
