"""GPT-2 in miniature, each layer with its causal mask in another of the forms that older exports store it in: for kv_cache.py."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, HIDDEN, HEADS, CONTEXT, WINDOW = 96, 32, 4, 64, 6
LOWEST = float(np.finfo(np.float32).min)


def triangle(band=False):
    q, k = np.indices((CONTEXT, CONTEXT))
    return ((k <= q) & (k > q - WINDOW) if band else k <= q)[None, None]


def hidden(mask, low):
    return np.where(mask, 0, low).astype(np.float32)


class Builder:
    def __init__(self):
        self.rng = np.random.default_rng(17)
        self.nodes, self.weights, self.made = [], [], 0

    def constant(self, value):
        self.weights.append(numpy_helper.from_array(np.asarray(value), f"c{len(self.weights)}"))
        return self.weights[-1].name

    def random(self, *shape, scale=0.3):
        return self.constant(self.rng.normal(0, scale, shape).astype(np.float32))

    def op(self, kind, *inputs, name=None, **attrs):
        self.made += 1
        output = name or f"t{self.made}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=f"/{output}", **attrs))
        return output

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def sliced(self, mask):
        """mask[:, :, :n, :n], the ends from a shape."""
        rows = self.op("Slice", mask, self.ints(0), self.length, self.ints(2))
        return self.op("Slice", rows, self.ints(0), self.length, self.ints(3))

    def hide(self, form, scores):
        """Scores of later keys as low as can be."""
        low = self.constant(np.float32(LOWEST))
        if form in ("bool", "band"):
            return self.op("Where", self.sliced(self.constant(triangle(form == "band"))), scores, low)
        if form == "u8":
            mask = self.op("Cast", self.sliced(self.constant(triangle().astype(np.uint8))), to=TensorProto.BOOL)
            return self.op("Where", mask, scores, low)
        if form == "hidden":
            return self.op("Where", self.sliced(self.constant(~triangle())), low, scores)
        if form in ("infinite", "lowest", "added-band"):
            mask = hidden(triangle(form == "added-band"), LOWEST if form == "lowest" else -np.inf)
            return self.op("Add", scores, self.sliced(self.constant(mask)))
        if form == "ten-thousand":
            return self.op("Where", self.sliced(self.constant(triangle())), scores, self.constant(np.float32(-1e4)))
        assert form == "later"
        return self.op("Where", self.sliced(self.constant(triangle().swapaxes(2, 3))), scores, low)

    def norm(self, x):
        return self.op("LayerNormalization", x, self.random(HIDDEN, scale=1), self.random(HIDDEN), axis=-1)

    def heads(self, x, perm):
        return self.op("Transpose", self.op("Reshape", x, self.ints(0, 0, HEADS, HIDDEN // HEADS)), perm=perm)

    def layer(self, x, form):
        h = self.op("Add", self.op("MatMul", self.norm(x), self.random(HIDDEN, 3 * HIDDEN)), self.random(3 * HIDDEN))
        parts = [f"{h}.{i}" for i in range(3)]
        self.nodes.append(helper.make_node("Split", [h], parts, axis=2, num_outputs=3))
        q, k, v = self.heads(parts[0], [0, 2, 1, 3]), self.heads(parts[1], [0, 2, 3, 1]), self.heads(parts[2], [0, 2, 1, 3])
        scores = self.op("Div", self.op("MatMul", q, k), self.constant(np.float32((HIDDEN // HEADS) ** 0.5)))
        y = self.op("MatMul", self.op("Softmax", self.hide(form, scores), axis=-1), v)
        y = self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1, 3]), self.ints(0, 0, HIDDEN))
        x = self.op("Add", x, self.op("MatMul", y, self.random(HIDDEN, HIDDEN)))
        y = self.op("Gelu", self.op("MatMul", self.norm(x), self.random(HIDDEN, 2 * HIDDEN)))
        return self.op("Add", x, self.op("MatMul", y, self.random(2 * HIDDEN, HIDDEN)))


FORMS = ["bool", "u8", "hidden", "infinite", "lowest", "ten-thousand", "band", "added-band"]


def make(forms):
    b = Builder()
    shape = b.op("Shape", "input_ids")
    b.length = b.op("Gather", shape, b.ints(1))
    words = b.random(VOCABULARY, HIDDEN)
    places = b.op("Slice", b.random(CONTEXT, HIDDEN), b.ints(0), b.length, b.ints(0))
    x = b.op("Add", b.op("Gather", words, "input_ids"), places)
    for form in forms:
        x = b.layer(x, form)
    b.op("MatMul", b.norm(x), b.op("Transpose", words, perm=[1, 0]), name="logits")
    info = helper.make_tensor_value_info
    graph = helper.make_graph(b.nodes, "masks", [info("input_ids", TensorProto.INT64, ["batch", "sequence"])],
                              [info("logits", TensorProto.FLOAT, ["batch", "sequence", VOCABULARY])], b.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
