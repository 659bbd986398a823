#!/usr/bin/env python3
"""Reductions, contractions and normalisations for random graphs; as ops.py."""
import math

from graphs import MOST_ELEMENTS, USUAL, broadcast, elements, fixed, least

# Reductions

def reduction(g):
    op = g.r.choice(("ReduceSum", "ReduceMean", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
                     "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceLogSum"))
    x = g.pick_float(lambda v: v.rank >= 1)
    if x is None:
        return None
    x = g.tamed(x, *((0.2, 6) if op == "ReduceLogSum" else (-2, 2) if op == "ReduceProd" else (-20, 20)))
    if g.wild and op in ("ReduceMax", "ReduceMin"):
        return None
    axes = sorted(g.r.sample(range(x.rank), g.r.randint(1, min(2, x.rank))))
    keep = g.r.randint(0, 1)
    written = [a - x.rank if g.maybe(0.4) else a for a in axes]
    if g.maybe(0.1):
        axes = list(range(x.rank))
        inputs = [x]
    else:
        inputs = [x, g.ints(written)]
    if any(least(x.shape[a]) == 0 for a in axes) and op in ("ReduceMax", "ReduceMin", "ReduceMean"):
        return None
    n = elements([x.shape[a] for a in axes])
    bound = {"ReduceMean": x.magnitude, "ReduceMax": x.magnitude, "ReduceMin": x.magnitude}.get(
        op, max(1, n) * x.magnitude ** 2 + 30)
    shape = [1 if i in axes else d for i, d in enumerate(x.shape) if keep or i not in axes]
    return g.node(op, inputs, x.type, shape, -bound, bound, keepdims=keep)


def arg_reduce(g):
    x = g.pick_float(lambda v: v.rank >= 1 and least(v.shape[-1]) >= 1)
    # Runtimes differ in what is the largest where one is NaN; so below.
    if x is None or g.wild:
        return None
    keep = g.r.randint(0, 1)
    return g.node(g.r.choice(("ArgMax", "ArgMin")), [x], "i64", [*x.shape[:-1], *([1] if keep else [])], 0, 10,
                  axis=-1, keepdims=keep, select_last_index=g.r.choice((0, 0, 1)))


def softmax(g):
    x = g.pick_float(lambda v: v.rank >= 1)
    if x is None:
        return None
    op = g.r.choice(("Softmax", "Softmax", "LogSoftmax"))
    axis = g.r.choice((-1, -1, g.r.randrange(x.rank)))
    return g.like(op, x, *((0, 1) if op == "Softmax" else (-2 * x.magnitude - 10, 0)), axis=axis)


# Contractions

def matmul(g):
    x = g.pick_float(lambda v: v.rank >= 1 and elements(v.shape[-1:]) <= 64)
    if x is None:
        return None
    x = g.tamed(x)
    inner = x.shape[-1]
    kind = g.r.choice(("weight", "weight", "weight", "values", "square"))
    if kind == "weight" and isinstance(inner, int):
        outer = g.r.choice((1, 2, 3, 4, 8, 16))
        y = g.weight((inner, outer) if g.maybe(0.9) else (inner,))
    elif kind == "square" and x.rank >= 2:
        perm = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
        y = g.node("Transpose", [x], x.type, [x.shape[i] for i in perm], x.low, x.high, perm=perm)
    else:
        y = g.pick(lambda v: v.type == x.type and v.rank >= 2 and v.shape[-2] == inner and
                   broadcast(v.shape[:-2], x.shape[:-2]) is not None)
        if y is None:
            y = g.input(x.type, (*x.shape[:-2], inner, g.dim()))
        y = g.tamed(y)
    if x.rank == 1 and y.rank == 1:
        shape = ()
    elif y.rank == 1:
        shape = x.shape[:-1]
    elif x.rank == 1:
        shape = (*y.shape[:-2], y.shape[-1])
    else:
        shape = (*broadcast(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])
    if elements(shape) > MOST_ELEMENTS:
        return None
    bound = max(1, elements([inner])) * x.magnitude * max(1, y.magnitude)
    return g.node("MatMul", [x, y], x.type, shape, -bound, bound)


def gemm(g):
    x = g.pick_float(lambda v: v.rank == 2 and fixed(v.shape[1:]) or v.rank == 2 and fixed(v.shape[:1]))
    if x is None:
        return None
    x = g.tamed(x)
    turned = not isinstance(x.shape[1], int) or isinstance(x.shape[0], int) and g.maybe(0.3)
    inner, rows = (x.shape[0], x.shape[1]) if turned else (x.shape[1], x.shape[0])
    outer, other = g.r.choice((1, 3, 4, 8)), g.r.randint(0, 1)
    inputs = [x, g.weight((outer, inner) if other else (inner, outer))]
    if g.maybe(0.7):
        inputs.append(g.weight(g.r.choice(((outer,), (1, outer), (1,), ()))))
    attributes = {"alpha": 0.5} if g.maybe(0.2) else {}
    if g.maybe(0.2):
        attributes["beta"] = 0.25
    bound = max(inner, 1) * x.magnitude + 1
    return g.node("Gemm", inputs, x.type, (rows, outer), -bound, bound, transA=int(turned), transB=other, **attributes)


def conv(g):
    x = g.pick_float(lambda v: v.rank in (3, 4) and isinstance(v.shape[1], int) and v.shape[1] >= 1 and
                     all(least(d) >= 1 and isinstance(d, int) for d in v.shape[2:]))
    if x is None:
        x = g.input(None, (g.dim(), g.r.choice((1, 2, 4)), *(g.r.choice((3, 4, 5)) for _ in range(g.r.choice((1, 2))))))
    x = g.tamed(x)
    channels, spatial = x.shape[1], x.shape[2:]
    groups = g.r.choice([d for d in (1, 1, 2, channels) if channels % d == 0])
    out = groups * g.r.choice((1, 2, 3))
    kernel = [g.r.randint(1, min(3, d + 1)) for d in spatial]
    pads = [g.r.randint(0, 1) for _ in range(2 * len(spatial))]
    strides = [g.r.choice((1, 1, 2)) for _ in spatial]
    n = len(spatial)
    places = [(d + pads[i] + pads[i + n] - kernel[i]) // strides[i] + 1 for i, d in enumerate(spatial)]
    if min(places) < 1:
        return None
    inputs = [x, g.weight((out, channels // groups, *kernel))]
    if g.maybe(0.6):
        inputs.append(g.weight((out,)))
    bound = math.prod(kernel) * channels * x.magnitude + 1
    return g.node("Conv", inputs, x.type, (x.shape[0], out, *places), -bound, bound, group=groups, pads=pads,
                  strides=strides)


def pool(g):
    x = g.pick_float(lambda v: v.rank == 4 and all(isinstance(d, int) and d >= 2 for d in v.shape[2:]))
    if x is None:
        return None
    if g.wild or g.maybe(0.3):
        return g.node("GlobalAveragePool", [x], x.type, (*x.shape[:2], 1, 1), x.low, x.high)
    shape = (*x.shape[:2], *((d - 2) // 1 + 1 for d in x.shape[2:]))
    return g.node(g.r.choice(("MaxPool", "AveragePool")), [x], x.type, shape, x.low, x.high, kernel_shape=[2, 2])


def norm(g):
    x = g.pick_float(lambda v: v.rank >= 2 and isinstance(v.shape[-1], int) and v.shape[-1] >= 1)
    if x is None:
        return None
    x = g.tamed(x)
    width = (x.shape[-1],)
    if g.opset >= 23 and g.maybe(0.4):
        return g.like("RMSNormalization", x, -USUAL, USUAL, [g.weight(width, 0.5, 1.5)], axis=-1)
    inputs = [g.weight(width, 0.5, 1.5)] + ([g.weight(width)] if g.maybe(0.7) else [])
    return g.like("LayerNormalization", x, -USUAL, USUAL, inputs, axis=-1, epsilon=g.r.choice((1e-5, 1e-12, 1e-3)))


def batch_norm(g):
    x = g.pick_float(lambda v: v.rank >= 3 and isinstance(v.shape[1], int))
    if x is None or x.type == "bf16":
        return None
    x = g.tamed(x)
    width = (x.shape[1],)
    return g.like("BatchNormalization", x, -40, 40, [g.weight(width, 0.5, 1.5), g.weight(width), g.weight(width),
                                                      g.weight(width, 0.3, 2)])


def einsum(g):
    x = g.pick_float(lambda v: v.rank == 3)
    if x is None:
        return None
    x = g.tamed(x)
    b, s, d = x.shape
    equation, shape, y = g.r.choice((("bsd,btd->bst", (b, s, s), x), ("bsd,bse->bde", (b, d, d), x),
                                     ("bsd->bds", (b, d, s), None), ("bsd,bsd->bs", (b, s), x),
                                     ("bsd->sd", (s, d), None)))
    if elements(shape) > MOST_ELEMENTS:
        return None
    bound = max(1, elements(x.shape)) * max(1, x.magnitude ** 2)
    return g.node("Einsum", [x] + ([y] if y else []), x.type, shape, -bound, bound, equation=equation)
