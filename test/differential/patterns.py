#!/usr/bin/env python3
"""What passes look for, spelt out as exporters do, for random graphs. With
`Graph.twist` something in it is not quite so: another constant, another axis, a
value inside that is used elsewhere. A pass must then leave it alone, or be right
all the same."""
import math

import numpy as np

from graphs import MOST_ELEMENTS, NUMPY, ONNX, Dim, elements, least
from ops import INTEGERS, reshaped


def hidden(g, widths=(4, 6, 8, 16)):
    """[batch, seq, width], what transformers work on."""
    x = g.pick(lambda v: v.type == g.float and v.rank == 3 and v.shape[-1] in widths)
    if x is not None and g.maybe(0.8):
        return g.tamed(x, -6, 6)
    dims = [g.r.choice([*g.symbols, 1, 2, 3]) for _ in range(2)]
    return g.input(g.float, (*dims, g.r.choice(widths)), -3, 3)


def odd(g, usual, *others):
    """`usual`, or what a pass may not take for it."""
    return g.r.choice(others) if g.twisted() else usual


def two(g, op, a, b):
    """A commutative op with its operands in either order."""
    return g.binary(op, *((b, a) if g.maybe(0.4) else (a, b)))


def linear(g, x, width, bias=None):
    y = g.node("MatMul", [x, g.weight((x.shape[-1], width))], x.type, (*x.shape[:-1], width), -12, 12)
    if g.maybe(0.6) if bias is None else bias:
        y = two(g, "Add", y, g.weight((width,)))
    return g.leak(y)


def mean(g, x, axis=-1, keep=1):
    if least(x.shape[axis]) == 0:
        axis = -1  # of nothing, runtimes give NaN or 0
    return g.node("ReduceMean", [x, g.ints([axis])], x.type, [*x.shape[:-1], 1] if axis == -1 else
                  [*x.shape[:axis], 1, *x.shape[x.rank + axis + 1:]], x.low, x.high, keepdims=keep)


def layer_norm(g):
    x = hidden(g)
    axis = odd(g, -1, -2)
    center = mean(g, x, axis)
    d = g.leak(g.binary("Sub", x, center))
    again = g.binary("Sub", x, center) if g.maybe(0.2) else d
    squares = g.binary("Mul", d, again) if g.maybe(0.4) else g.power(d, odd(g, 2.0, 3.0))
    variance = mean(g, squares, odd(g, axis, -2))
    epsilon = g.scalar(g.r.choice((1e-5, 1e-3)) if x.type != "f16" else 1e-3)
    variance = two(g, "Add", variance, epsilon)
    deviation = g.like("Sqrt", g.like("Abs", variance, 1e-3, 200) if g.twist else variance, 1e-2, 15)
    if g.maybe(0.3):
        y = two(g, "Mul", d, g.like("Reciprocal", deviation, 0, 60))
    else:
        y = g.binary("Div", d, deviation)
    y.low, y.high = -8, 8
    width = (x.shape[-1],)
    if g.maybe(0.8):
        y = two(g, "Mul", y, g.weight(width if not g.twisted() else (1,), 0.5, 1.5))
    if g.maybe(0.8):
        y = two(g, "Add", y, g.weight(width))
    return y


def rms_norm(g):
    x = hidden(g)
    given = x.type
    if given in ("f16", "bf16") or g.maybe(0.1):
        x = g.node("Cast", [x], "f32", x.shape, x.low, x.high, to=ONNX["f32"])
    squares = g.power(x, 2.0) if g.maybe(0.6) else g.binary("Mul", x, x)
    average = two(g, "Add", mean(g, squares, odd(g, -1, -2)), g.scalar(g.r.choice((1e-6, 1e-5)), x.type))
    root = g.leak(g.like("Sqrt", average, 1e-3, 8))
    if g.maybe(0.5):
        y = two(g, "Mul", x, g.like("Reciprocal", root, 0, 1000))
    else:
        y = g.binary("Div", x, root) if g.maybe(0.6) else two(g, "Mul", x, g.binary(
            "Div", g.scalar(1.0, x.type), root))
    y.low, y.high = -8, 8
    if y.type != given:
        y = g.node("Cast", [y], given, y.shape, y.low, y.high, to=ONNX[given])
    return two(g, "Mul", y, g.weight((x.shape[-1],), 0.5, 1.5)) if g.maybe(0.9) else y


def gelu(g):
    x = hidden(g) if g.maybe(0.6) else g.tamed(g.pick_float(), -6, 6)
    if g.maybe(0.5):
        inner = g.leak(g.like("Erf", g.binary("Div", x, g.scalar(odd(g, math.sqrt(2), 1.5))) if g.maybe(0.6) else
                              two(g, "Mul", x, g.scalar(odd(g, math.sqrt(0.5), 0.7))), -1, 1))
    else:
        cube = g.power(x, odd(g, 3.0, 2.0)) if g.maybe(0.6) else g.binary("Mul", x, g.binary("Mul", x, x))
        cube.low, cube.high = -250, 250
        polynomial = two(g, "Add", x, two(g, "Mul", cube, g.scalar(odd(g, 0.044715, 0.05))))
        inner = g.leak(g.like("Tanh", two(g, "Mul", polynomial, g.scalar(odd(g, math.sqrt(2 / math.pi), 0.8))), -1, 1))
    one = two(g, "Add", inner, g.scalar(odd(g, 1.0, 2.0)))
    half = g.scalar(odd(g, 0.5, 0.4))
    way = g.r.randrange(3)
    if way == 0:
        return two(g, "Mul", two(g, "Mul", x, one), half)
    if way == 1:
        return two(g, "Mul", two(g, "Mul", x, half), one)
    return two(g, "Mul", x, two(g, "Mul", one, half))


def silu(g, x):
    s = x if not g.maybe(0.2) else two(g, "Mul", x, g.scalar(odd(g, 1.702, 1.0)))
    return two(g, "Mul", x, g.leak(g.like("Sigmoid", s, 0, 1)))


def feed_forward(g):
    x = hidden(g)
    width = g.r.choice((4, 8, 12))
    kind = g.r.choice(("swiglu", "joined", "relu", "quick"))
    if kind == "swiglu":
        gate, up = linear(g, x, width), linear(g, odd(g, x, hidden(g)) if g.twist else x, width)
        if gate.shape != up.shape:
            return up
        h = two(g, "Mul", silu(g, gate), up)
    elif kind == "joined":
        both = linear(g, x, 2 * width)
        halves = g.node("Split", [both], x.type, [[*x.shape[:-1], width]] * 2, both.low, both.high, outputs=2,
                        axis=-1, num_outputs=2)
        h = two(g, "Mul", silu(g, halves[0]), halves[1])
    else:
        h = linear(g, x, width)
        h = g.like("Relu", h, 0, h.high) if kind == "relu" else silu(g, h)
    h = g.tamed(h, -20, 20)
    y = linear(g, h, x.shape[-1])
    return two(g, "Add", y, x) if g.maybe(0.7) else y


def heads(g, x, count, transposed=False):
    """[B, S, H * D] as [B, H, S, D], or [B, H, D, S]."""
    b, s, width = x.shape
    x = reshaped(g, x, (b, s, count, width // count))
    if x is None:
        return None
    perm = (0, 2, 3, 1) if transposed else (0, 2, 1, 3)
    return g.node("Transpose", [x], x.type, [x.shape[i] for i in perm], x.low, x.high, perm=perm)


def padding_mask(g, b, kv):
    """1 where a token is, as models make a bias of it."""
    tokens = g.input("i64", (b, kv), 0, 1)
    wide = g.node("Unsqueeze", [tokens, g.ints([1, 2])], "i64", (b, 1, 1, kv), 0, 1)
    if g.maybe(0.3):
        keep = g.node("Cast", [wide], "bool", wide.shape, to=ONNX["bool"])
        return g.node("Where", [keep, g.scalar(0.0), g.scalar(lowest(g))], g.float, wide.shape, -1, 0)
    asfloat = g.node("Cast", [wide], g.float, wide.shape, 0, 1, to=ONNX[g.float])
    away = g.binary("Sub", g.scalar(1.0), asfloat)
    return g.binary("Mul", away, g.scalar(g.r.choice((-100.0, lowest(g)))))


def lowest(g):
    return {"f16": -1e4, "bf16": -1e4}.get(g.float, g.r.choice((-1e4, -1e9)))


def causal_mask(g, s, kv):
    """A bool [s, kv], true where a token may look."""
    if isinstance(s, int) and isinstance(kv, int) and g.maybe(0.5):
        return g.constant(np.tril(np.ones((s, kv), np.bool_), kv - s))
    if not (g.knows(s) and g.knows(kv)):
        return None
    rows, columns = (g.node("Range", [g.constant(np.int64(0)),
                                      g.node("Squeeze", [g.size_of(d), g.ints([0])], "i64", ()) if isinstance(d, Dim)
                                      else g.constant(np.int64(d)), g.constant(np.int64(1))], "i64", (d,), 0, 20)
                     for d in (s, kv))
    column = g.node("Unsqueeze", [rows, g.ints([1])], "i64", (s, 1), 0, 20)
    return g.node("LessOrEqual" if not g.twisted() else "Less", [columns, column], "bool", (s, kv))


def masked(g, scores):
    b, _, s, kv = scores.shape
    kind = g.r.choice(("none", "padding", "causal", "causal", "bias", "where"))
    if kind == "padding":
        return two(g, "Add", scores, padding_mask(g, b, kv))
    if kind == "bias":
        return two(g, "Add", scores, g.input(g.float, g.r.choice(((b, 1, s, kv), (s, kv), (1, 1, 1, kv))), -3, 3))
    if kind in ("causal", "where"):
        keep = causal_mask(g, s, kv)
        if keep is None:
            return scores
        low = g.scalar(lowest(g) if kind == "causal" or g.maybe(0.7) else -np.inf)
        if kind == "where":
            hidden_scores = g.node("Where", [keep, scores, low], g.float, scores.shape, -20, 20)
            if low.low < -1e20:
                g.values.remove(hidden_scores)  # for softmax alone
            return hidden_scores
        bias = g.node("Where", [keep, g.scalar(0.0), low], g.float, (s, kv), -1, 0)
        return two(g, "Add", scores, bias)
    return scores


def attention(g):
    x = hidden(g, (4, 8, 16))
    if elements(x.shape[:2]) > 60:
        return None
    other = hidden(g, (4, 8, 16)) if g.maybe(0.25) else x
    if other.shape[0] != x.shape[0]:
        other = x
    width, count = x.shape[-1], g.r.choice((1, 2))
    shared = count == 2 and g.maybe(0.25)
    kv_width = width // 2 if shared else width
    q, k, v = linear(g, x, width), linear(g, other, kv_width), linear(g, other, kv_width)
    q, k, v = (g.tamed(t, -4, 4) for t in (q, k, v))
    direct = not shared and g.maybe(0.5)
    q, k, v = heads(g, q, count), heads(g, k, 1 if shared else count, direct), heads(g, v, 1 if shared else count)
    if q is None or k is None or v is None:
        return None
    if g.maybe(0.25):
        q = rotated(g, q)
        k = k if direct else rotated(g, k)
    if shared:
        k, v = (repeated(g, t, count) for t in (k, v))
        if k is None or v is None:
            return None
    if not direct:
        perm = odd(g, (0, 1, 3, 2), (0, 1, 3, 2)[:])
        k = g.node("Transpose", [k], k.type, [k.shape[i] for i in perm], k.low, k.high, perm=perm)
    depth = width // count
    way = g.r.choice(("after", "divide", "before", "none"))
    if way == "before":
        q = two(g, "Mul", q, g.scalar(depth ** -0.25))
        k = two(g, "Mul", k, g.scalar(depth ** -0.25))
    scores = g.node("MatMul", [q, k], g.float, (*q.shape[:3], k.shape[-1]), -20, 20)
    if elements(scores.shape) > MOST_ELEMENTS:
        return None
    if way == "after":
        scores = two(g, "Mul", scores, g.scalar(odd(g, depth ** -0.5, 0.3)))
    elif way == "divide":
        scores = g.binary("Div", scores, g.scalar(depth ** 0.5))
    if g.maybe(0.1):
        scores = two(g, "Mul", g.like("Tanh", g.binary("Div", scores, g.scalar(5.0)), -1, 1), g.scalar(5.0))
    scores = masked(g, scores)
    weights = g.leak(g.like("Softmax", scores, 0, 1, axis=odd(g, -1, 2, 1)))
    if g.twisted():
        weights = two(g, "Mul", weights, g.scalar(1.1))
    y = g.node("MatMul", [weights, v], g.float, (*weights.shape[:3], depth), -8, 8)
    y = g.node("Transpose", [y], y.type, [y.shape[i] for i in (0, 2, 1, 3)], y.low, y.high, perm=[0, 2, 1, 3])
    y = reshaped(g, y, (*y.shape[:2], width))
    if y is None or g.maybe(0.3):
        return y
    y = linear(g, y, width)
    return two(g, "Add", y, x) if g.maybe(0.6) else y


def repeated(g, x, count):
    """Each of the heads of x[B, H, S, D] `count` times."""
    b, h, s, d = x.shape
    if not (g.knows(b) and g.knows(s)):
        return None
    wide = g.node("Unsqueeze", [x, g.ints([2])], x.type, (b, h, 1, s, d), x.low, x.high)
    wide = g.node("Expand", [wide, g.shape_vector((b, h, count, s, d))], x.type, (b, h, count, s, d), x.low, x.high)
    return reshaped(g, wide, (b, Dim.of("*", (h, count)), s, d))


def rotated(g, x):
    """Rotary embedding of x[B, H, S, D]."""
    b, _, s, d = x.shape
    if not isinstance(d, int) or d % 2 or d < 2:
        return x
    if g.maybe(0.5) and g.knows(s):
        cos, sin = computed_angles(g, s, d)
    else:
        cos, sin = (g.input(g.float, g.r.choice(((s, d), (1, 1, s, d), (b, 1, s, d))), -1, 1) for _ in range(2))
    halves = []
    for start, end in ((0, d // 2), (d // 2, 2**63 - 1)):
        halves.append(g.node("Slice", [x, g.ints([start]), g.ints([end]), g.ints([odd(g, -1, 3)]), g.ints([1])],
                             x.type, (*x.shape[:-1], d // 2), x.low, x.high))
    turned = g.like("Neg", halves[1] if not g.twisted() else halves[0], -x.high, -x.low)
    rest = halves[0] if not g.twisted() else halves[1]
    other = g.node("Concat", [turned, rest], x.type, x.shape, -x.magnitude, x.magnitude, axis=-1)
    a, c = two(g, "Mul", x, cos), two(g, "Mul", g.leak(other), sin if not g.twisted() else cos)
    if a.shape != x.shape or c.shape != x.shape:
        return x
    return two(g, "Add", a, c)


def computed_angles(g, s, d):
    if isinstance(s, int):
        positions = g.constant(np.arange(s, dtype=np.int64))
    else:
        length = g.node("Squeeze", [g.size_of(s), g.ints([0])], "i64", ())
        positions = g.node("Range", [g.constant(np.int64(0)), length, g.constant(np.int64(1))], "i64", (s,), 0, 20)
    column = g.node("Unsqueeze", [positions, g.ints([1])], "i64", (s, 1), 0, 20)
    column = g.node("Cast", [column], g.float, (s, 1), 0, 20, to=ONNX[g.float])
    frequencies = g.constant((1.0 / 100 ** (np.arange(0, d, 2) / d))[None].astype(NUMPY[g.float]), g.float)
    angles = two(g, "Mul", column, frequencies)
    both = g.node("Concat", [angles, angles], g.float, (s, d), 0, 20, axis=-1)
    return g.like("Cos", both, -1, 1), g.like("Sin", both, -1, 1)


def rotary(g):
    x = g.pick(lambda v: v.type == g.float and v.rank == 4 and isinstance(v.shape[-1], int) and v.shape[-1] in (2, 4, 8))
    if x is None:
        h = hidden(g, (4, 8, 16))
        x = heads(g, h, 2)
    return None if x is None else rotated(g, x)


def quantised(g):
    """Quantised weights or activations, as tools write them."""
    x = hidden(g)
    kind = g.r.choice(("round-trip", "weights", "blocks", "integers", "dynamic"))
    if x.type not in ("f32", "f16") or (x.type == "f16" and g.opset < 19) or (kind in ("integers", "dynamic") and x.type != "f32"):
        return None
    width, out = x.shape[-1], g.r.choice((4, 8))
    code = g.r.choice(("u8", "i8"))
    low, high = {"u8": (0, 255), "i8": (-128, 127)}[code]
    zero = g.constant(NUMPY[code](g.r.choice((0, 3, 128 if code == "u8" else -4))), code)
    scale = g.scalar(g.r.choice((0.05, 0.0625, 0.031)), x.type, shape=())
    if kind == "round-trip":
        q = g.node("QuantizeLinear", [x, scale, zero], code, x.shape, low, high)
        return g.node("DequantizeLinear", [q, scale, zero], x.type, x.shape, -17, 17)
    if kind in ("weights", "blocks"):
        axis = g.r.randint(0, 1)
        codes = g.constant(g.data.integers(low, high + 1, (width, out)).astype(NUMPY[code]), code)
        if kind == "blocks" and g.opset >= 21 and width % 2 == 0:
            shape, attributes = (width // 2, out), {"axis": 0, "block_size": 2}
        else:
            shape, attributes = ((width, out)[axis],), {"axis": axis}
        scales = g.weight(shape, 0.001, 0.02, x.type)
        inputs = [codes, scales]
        if g.maybe(0.6):
            inputs.append(g.constant(g.data.integers(low, high + 1, shape).astype(NUMPY[code]), code))
        w = g.node("DequantizeLinear", inputs, x.type, (width, out), -5, 5, **attributes)
        return g.node("MatMul", [x, w], x.type, (*x.shape[:-1], out), -100, 100)
    if kind == "dynamic":
        q, scale, zero = g.node("DynamicQuantizeLinear", [x], ["u8", x.type, "u8"], [x.shape, (), ()], 0, 255, outputs=3)
    else:
        q = g.node("QuantizeLinear", [x, scale, zero], code, x.shape, low, high)
    weight_zero = g.r.choice((0, 0, 5))
    # In seven bits: without VNNI ONNX Runtime adds pairs of products in 16, where more saturates.
    weights = g.constant(g.data.integers(-64, 64, (width, out)).astype(np.int8), "i8")
    total = g.node("MatMulInteger", [q, weights, zero, g.constant(np.int8(weight_zero), "i8")], "i32",
                   (*x.shape[:-1], out), -1e6, 1e6)
    y = g.node("Cast", [total], x.type, total.shape, -1e6, 1e6, to=ONNX[x.type])
    factor = two(g, "Mul", scale, g.scalar(0.003, x.type, shape=()))
    y = two(g, "Mul", y, factor)
    y.low, y.high = -100, 100
    return two(g, "Add", y, g.weight((out,))) if g.maybe(0.6) else y


def parallel(g):
    """Several products of one input, with what follows them."""
    x = hidden(g)
    width = g.r.choice((3, 4, 8))
    parts = [linear(g, x, odd(g, width, width + 1)) for _ in range(g.r.choice((2, 3)))]
    if g.maybe(0.5) and len({p.shape for p in parts}) == 1:
        return two(g, "Add", parts[0], parts[1])
    return parts[-1]


def shared_weight(g):
    """An embedding whose matrix is the last product's too."""
    words, width = g.r.choice((5, 9)), g.r.choice((4, 8))
    table = g.weight((words, width))
    dims = [g.r.choice([*g.symbols, 1, 2, 3]) for _ in range(2)]
    tokens = g.input(g.r.choice(INTEGERS), dims, 0, words - 1)
    x = g.node("Gather", [table, tokens], g.float, (*dims, width), table.low, table.high)
    turned = g.node("Transpose", [table], g.float, (width, words), table.low, table.high, perm=[1, 0])
    source = hidden(g, (width,)) if g.maybe(0.5) else x
    return g.node("MatMul", [source, turned], g.float, (*source.shape[:-1], words), -20, 20)


# (weight, pattern)
PATTERNS = [(4, layer_norm), (3, rms_norm), (4, gelu), (4, feed_forward), (6, attention), (3, rotary), (4, quantised),
            (2, parallel), (2, shared_weight)]
