#!/usr/bin/env python3
"""Single ops for random graphs. Each function adds one op (and what brings its
operands into its range) to a graph, or gives None where nothing there fits."""
import math

import numpy as np

from graphs import FLOATS, MOST_ELEMENTS, NUMPY, ONNX, SETS, Dim, broadcast, elements, fixed, key, least
from sums import arg_reduce, batch_norm, conv, einsum, gemm, matmul, norm, pool, reduction, softmax

INTEGERS = ("i64", "i32")

# Op: the range that its operand must have, the range of the result (None: the operand's).
UNARY = {
    "Abs": (None, "abs"), "Neg": (None, "neg"), "Relu": (None, "relu"), "Sign": (None, (-1, 1)),
    "Sqrt": ((0, 1e6), (0, 1e3)), "Exp": ((-30, 6), (0, 500)), "Log": ((0.05, 1e6), (-3, 14)),
    "Reciprocal": ((0.1, 1e6), (0, 10)), "Erf": (None, (-1, 1)), "Tanh": (None, (-1, 1)),
    "Sigmoid": (None, (0, 1)), "Softplus": ((-30, 30), (0, 30)), "Softsign": (None, (-1, 1)),
    "Sin": ((-30, 30), (-1, 1)), "Cos": ((-30, 30), (-1, 1)), "Tan": ((-1.4, 1.4), (-6, 6)),
    "Asin": ((-0.99, 0.99), (-1.6, 1.6)), "Acos": ((-0.99, 0.99), (0, 3.2)), "Atan": (None, (-1.6, 1.6)),
    "Sinh": ((-5, 5), (-80, 80)), "Cosh": ((-5, 5), (1, 80)), "Asinh": (None, (-14, 14)),
    "Acosh": ((1.01, 1e6), (0, 15)), "Atanh": ((-0.98, 0.98), (-3, 3)), "Elu": (None, "self"),
    "Selu": (None, "wide"), "LeakyRelu": (None, "self"), "HardSigmoid": (None, (0, 1)),
    "HardSwish": (None, "self"), "Mish": ((-20, 1e6), "self"), "Celu": (None, "self"),
    "ThresholdedRelu": (None, "self"), "Floor": (None, "wide"), "Ceil": (None, "wide"),
    "Round": (None, "wide"), "Identity": (None, "self"),
}
SINCE = {"Gelu": 20, "RMSNormalization": 23}


def ranged(g, x, bounds):
    return g.tamed(x, *bounds) if bounds else x


def unary(g):
    x = g.pick_float()
    if x is None:
        return None
    op = g.r.choice(list(UNARY))
    domain, image = UNARY[op]
    x = ranged(g, x, domain)
    m = x.magnitude
    low, high = {"self": (min(x.low, -1), max(x.high, 1)), "abs": (0, m), "neg": (-x.high, -x.low),
                 "relu": (max(x.low, 0), max(x.high, 0)), "wide": (-2 * m - 1, 2 * m + 1)}.get(
                     image, image if isinstance(image, tuple) else (x.low, x.high))
    attributes = {"alpha": 0.3} if op in ("LeakyRelu", "Elu", "ThresholdedRelu", "Celu") and g.maybe(0.5) else {}
    return g.like(op, x, low, high, **attributes)


def gelu(g):
    if g.opset < 20:
        return None
    x = g.tamed(g.pick_float())
    return g.like("Gelu", x, -1, max(1, x.high), approximate=g.r.choice(("none", "tanh")))


def arithmetic(g):
    x = g.pick(lambda v: v.is_float or v.type in INTEGERS) or g.input()
    op = g.r.choice(("Add", "Add", "Sub", "Mul", "Mul", "Div"))
    x = g.tamed(x, -60, 60)
    if op == "Div":
        y = g.partner(x, *((0.2, 8) if x.is_float else (1, 7)))
    else:
        y = g.partner(x)
    if g.maybe(0.4) and op != "Div":
        x, y = y, x
    return g.binary(op, x, y)


def min_max(g):
    x = g.pick(lambda v: v.is_float or v.type in INTEGERS) or g.input()
    return g.binary(g.r.choice(("Min", "Max")), x, g.partner(x))


def power(g):
    x = g.pick_float()
    exponent = g.r.choice((2.0, 2.0, 3.0, 0.5, -1.0, 1.0, 0.0, -0.5))
    x = g.tamed(x, *((0.2, 6) if exponent != int(exponent) or exponent < 0 else (-6, 6)))
    return g.power(x, exponent)


def clip(g):
    x = g.pick_float()
    low, high = sorted((g.r.uniform(-3, 3), g.r.uniform(-3, 3)))
    # Runtimes differ in what an infinity becomes where one is left out.
    bounds = [g.constant(NUMPY[x.type](b), x.type) if g.wild or g.maybe(0.8) else None for b in (low, high)]
    return g.node("Clip", [x, *bounds], x.type, x.shape, min(x.low, low), max(x.high, high))


def compare(g):
    x = g.pick(lambda v: v.is_float or v.type in INTEGERS) or g.input()
    y = g.partner(x)
    op = g.r.choice(("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"))
    return g.node(op, [x, y], "bool", broadcast(x.shape, y.shape))


def a_bool(g, shape=None):
    found = g.pick(lambda v: v.type == "bool" and (
        shape is None or broadcast(v.shape, shape) is not None))
    if found is not None:
        return found
    return compare(g) if shape is None else g.input("bool", shape)


def logical(g):
    x = a_bool(g)
    if g.maybe(0.3):
        return g.node("Not", [x], "bool", x.shape)
    y = g.partner(x)
    return g.node(g.r.choice(("And", "Or", "Xor")), [x, y], "bool", broadcast(x.shape, y.shape))


def where(g):
    x = g.pick(lambda v: v.type != "bool" and v.type != "i8") or g.input()
    y = g.partner(x)
    shape = broadcast(x.shape, y.shape)
    condition = a_bool(g, shape)
    whole = broadcast(condition.shape, shape)
    if elements(whole) > MOST_ELEMENTS:
        return None
    if g.maybe(0.5):
        x, y = y, x
    return g.node("Where", [condition, x, y], x.type, whole, min(x.low, y.low), max(x.high, y.high))


def cast(g):
    x = g.pick()
    if x is None:
        return None
    # What integers infinities become is not said.
    to = g.r.choice((g.float, g.float, "bool", "f32", *(() if g.wild and x.is_float else ("i64", "i32", "u8"))))
    if to in ("i64", "i32") and x.is_float:
        x = g.tamed(x, -100, 100)
    if to == "u8":
        x = g.tamed(x, 0, 200)
    low, high = (0, 1) if to == "bool" else (x.low, x.high)
    return g.node("Cast", [x], to, x.shape, low, high, to=ONNX[to])


def integer_math(g):
    x = g.pick(lambda v: v.type in INTEGERS) or g.input(g.r.choice(INTEGERS))
    kind = g.r.choice(("Mod", "fmod", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "Abs", "Neg", "Sign"))
    if kind in ("Abs", "Neg", "Sign", "BitwiseNot"):
        return g.like(kind, x, -x.magnitude - 1, x.magnitude + 1)
    if kind in ("Mod", "fmod"):
        y = g.partner(x, 1, 7)
        return g.node("Mod", [x, y], x.type, broadcast(x.shape, y.shape), -8, 8, fmod=int(kind == "fmod"))
    y = g.partner(x)
    most = 2 ** (int(max(x.magnitude, y.magnitude)).bit_length() + 1)
    return g.node(kind, [x, y], x.type, broadcast(x.shape, y.shape), -most, most)


# Views

def transpose(g):
    x = g.pick(lambda v: v.rank >= 2)
    if x is None:
        return None
    perm = list(range(x.rank))
    g.r.shuffle(perm)
    if g.maybe(0.4):
        perm = list(range(x.rank))
        perm[-1], perm[-2] = perm[-2], perm[-1]
    return g.node("Transpose", [x], x.type, [x.shape[i] for i in perm], x.low, x.high, perm=perm)


def factors(g, n, count):
    """n as a product of `count` numbers."""
    result = []
    for _ in range(count - 1):
        divisors = [d for d in range(1, n + 1) if n % d == 0]
        result.append(g.r.choice(divisors))
        n //= result[-1]
    return [*result, n]


def reshaped(g, x, shape):
    """Reshape in one of the ways that exporters write it."""
    shape = list(shape)
    plain = [d for d in shape if isinstance(d, int)]
    numbers, unknown = [], 0
    for i, dim in enumerate(shape):
        if isinstance(dim, int) and dim != 0:
            numbers.append(dim)
        elif i < x.rank and x.shape[i] == dim and g.maybe(0.8):
            numbers.append(0)
        else:
            numbers.append(-1)
            unknown += 1
    # With a size of 0 somewhere, -1 is not known, and 0 copies what is there.
    empty = elements(shape) == 0 or any(0 in getattr(d, "sizes", (1,)) for d in shape) or 0 in plain
    if unknown == 0 and not empty and g.maybe(0.3) and numbers:
        numbers[g.r.randrange(len(numbers))] = -1
        unknown = 1
    if unknown == 0 or (unknown == 1 and not empty):
        target = g.ints(numbers)
    elif all(map(g.knows, shape)):
        target = g.shape_vector(shape)
        return g.node("Reshape", [x, target], x.type, shape, x.low, x.high,
                      **({"allowzero": 1} if empty else {}))
    else:
        return None
    return g.node("Reshape", [x, target], x.type, shape, x.low, x.high)


def reshape(g):
    x = g.pick()
    if x is None:
        return None
    shape = list(x.shape)
    kind = g.r.choice(("split", "merge", "merge", "free"))
    if kind == "split" and x.rank < 5:
        places = [i for i, d in enumerate(shape) if isinstance(d, int) and d > 0]
        if not places:
            return None
        i = g.r.choice(places)
        shape[i:i + 1] = factors(g, shape[i], 2)
    elif kind == "merge" and x.rank >= 2:
        i = g.r.randrange(x.rank - 1)
        shape[i:i + 2] = [Dim.of("*", shape[i:i + 2])]
    elif fixed(shape) and 0 not in shape:
        shape = factors(g, math.prod(shape), g.r.choice((1, 2, 3, 4)))
    else:
        return None
    return reshaped(g, x, shape)


def squeeze(g):
    x = g.pick()
    if x is None:
        return None
    ones = [i for i, d in enumerate(x.shape) if d == 1]
    if ones and g.maybe(0.6):
        axes = sorted(g.r.sample(ones, g.r.randint(1, len(ones))))
        shape = [d for i, d in enumerate(x.shape) if i not in axes]
        return g.node("Squeeze", [x, g.ints(axes)], x.type, shape, x.low, x.high)
    if x.rank > 4:
        return None
    axis = g.r.randint(0, x.rank)
    shape = list(x.shape)
    shape.insert(axis, 1)
    written = axis - x.rank - 1 if g.maybe(0.3) else axis
    return g.node("Unsqueeze", [x, g.ints([written])], x.type, shape, x.low, x.high)


def slices(g):
    x = g.pick(lambda v: v.rank >= 1)
    if x is None:
        return None
    axis = g.r.randrange(x.rank)
    dim = x.shape[axis]
    shape = list(x.shape)
    if isinstance(dim, int):
        start, end = sorted((g.r.randint(0, dim), g.r.randint(0, dim)))
        step = g.r.choice((1, 1, 1, 2))
        if start == end and g.maybe(0.9):
            return None
        shape[axis] = len(range(start, end, step))
        if g.maybe(0.15) and end > start:
            # Backwards: from the last of them to before the first.
            start, end, step = end - 1, start - 1 if start else -dim - 1, -step
            shape[axis] = len(range(start, end if end >= 0 else -1, step))
        elif g.maybe(0.3) and end == dim:
            end = g.r.choice((2**63 - 1, 2**31 - 1, dim + 3))
        elif g.maybe(0.3) and end < dim:
            end -= dim
    else:
        # A beginning or an end that every size has, or all.
        if min(dim.sizes) < 1 or g.maybe(0.2):
            start, end, step = 0, 2**63 - 1, 1
        elif g.maybe(0.5):
            start, end, step = 0, 1, 1
            shape[axis] = Dim(f"first({dim.key})", (1,) * SETS)
        else:
            # Nothing tells a compiler that there is one.
            start, end, step = -1, 2**63 - 1, 1
            shape[axis] = Dim(f"last({dim.key})", (1,) * SETS)
    written = axis - x.rank if g.maybe(0.3) else axis
    inputs = [x, g.ints([start]), g.ints([end]), g.ints([written])]
    return g.node("Slice", inputs + ([g.ints([step])] if step != 1 or g.maybe(0.3) else []), x.type, shape,
                  x.low, x.high)


def expand(g):
    x = g.pick(lambda v: v.rank <= 4)
    if x is None:
        return None
    shape = [g.dim() if d == 1 else d for d in x.shape]
    if g.maybe(0.3) and len(shape) < 4:
        shape.insert(0, g.dim())
    if elements(shape) > MOST_ELEMENTS or not all(map(g.knows, shape)):
        return None
    return g.node("Expand", [x, g.shape_vector(shape)], x.type, shape, x.low, x.high)


def tile(g):
    x = g.pick(lambda v: v.rank >= 1)
    if x is None:
        return None
    repeats = [g.r.choice((1, 1, 2, 3)) for _ in x.shape]
    shape = [Dim.of("*", (d, n)) if n != 1 else d for d, n in zip(x.shape, repeats)]
    if elements(shape) > MOST_ELEMENTS:
        return None
    return g.node("Tile", [x, g.ints(repeats)], x.type, shape, x.low, x.high)


def concat(g):
    x = g.pick(lambda v: v.rank >= 1)
    if x is None:
        return None
    axis = g.r.randrange(x.rank)
    parts = [x]
    for _ in range(g.r.randint(1, 2)):
        y = g.pick(lambda v: v.type == x.type and v.rank == x.rank and
                   all(a == b for i, (a, b) in enumerate(zip(v.shape, x.shape)) if i != axis)) or x
        parts.insert(g.r.randint(0, len(parts)), y)
    shape = list(x.shape)
    shape[axis] = Dim.of("+", [p.shape[axis] for p in parts])
    if elements(shape) > MOST_ELEMENTS:
        return None
    return g.node("Concat", parts, x.type, shape, min(p.low for p in parts), max(p.high for p in parts),
                  axis=axis - x.rank if g.maybe(0.3) else axis)


def split(g):
    x = g.pick(lambda v: v.rank >= 1 and any(isinstance(d, int) and d >= 2 for d in v.shape))
    if x is None:
        return None
    axis = g.r.choice([i for i, d in enumerate(x.shape) if isinstance(d, int) and d >= 2])
    dim = x.shape[axis]
    if dim % 2 == 0 and g.maybe(0.6):
        parts, inputs, attributes = [dim // 2] * 2, [x], {"num_outputs": 2}
    else:
        first = g.r.randint(1, dim - 1)
        parts, attributes = [first, dim - first], {}
        inputs = [x, g.ints(parts)]
    shapes = [[*x.shape[:axis], n, *x.shape[axis + 1:]] for n in parts]
    return g.node("Split", inputs, x.type, shapes, x.low, x.high, outputs=2, axis=axis, **attributes)


def pad(g):
    x = g.pick(lambda v: v.rank >= 1 and v.type in (*FLOATS, *INTEGERS))
    if x is None:
        return None
    mode = g.r.choice(("constant", "constant", "reflect", "edge", "wrap"))
    if mode == "wrap" and g.opset < 19:
        mode = "edge"
    low, high = [0] * x.rank, [0] * x.rank
    for i, d in enumerate(x.shape):
        least = d if isinstance(d, int) else min(d.sizes)
        most = 2 if mode == "constant" else max(0, min(2, least - 1))
        low[i], high[i] = g.r.randint(0, most), g.r.randint(0, most)
    shape = [Dim.of("+", (d, a + b)) if a + b else d for d, a, b in zip(x.shape, low, high)]
    if elements(shape) > MOST_ELEMENTS:
        return None
    inputs = [x, g.ints(low + high)]
    if mode == "constant" and g.maybe(0.5):
        inputs.append(g.constant(NUMPY[x.type](3), x.type))
    return g.node("Pad", inputs, x.type, shape, min(x.low, 0), max(x.high, 3), mode=mode)


# Indices

def indices(g, shape, dim, type=None):
    """Integers that are in range for any of the sizes."""
    most = least(dim) - 1
    low = -most - 1 if g.maybe(0.3) else 0
    type = type or g.r.choice(INTEGERS)
    if fixed(shape) and g.maybe(0.5):
        return g.constant(g.data.integers(low, most + 1, shape).astype(NUMPY[type]), type)
    return g.input(type, shape, low, most)


def gather(g):
    x = g.pick(lambda v: v.rank >= 1 and max(map(least, v.shape)) >= 1)
    if x is None:
        return None
    axis = g.r.choice([i for i, d in enumerate(x.shape) if least(d) >= 1])
    rank = g.r.choice((0, 1, 1, 2))
    chosen = indices(g, tuple(g.dim() for _ in range(rank)), x.shape[axis])
    shape = (*x.shape[:axis], *chosen.shape, *x.shape[axis + 1:])
    if elements(shape) > MOST_ELEMENTS or len(shape) > 5:
        return None
    return g.node("Gather", [x, chosen], x.type, shape, x.low, x.high, axis=axis)


def gather_elements(g):
    x = g.pick(lambda v: v.rank >= 1 and max(map(least, v.shape)) >= 1)
    if x is None:
        return None
    axis = g.r.choice([i for i, d in enumerate(x.shape) if least(d) >= 1])
    shape = list(x.shape)
    shape[axis] = g.r.choice((1, 2, 3))
    return g.node("GatherElements", [x, indices(g, tuple(shape), x.shape[axis])], x.type, shape, x.low, x.high,
                  axis=axis)


def scatter_elements(g):
    x = g.pick(lambda v: v.rank >= 1 and max(map(least, v.shape)) >= 1 and v.type in (*FLOATS, *INTEGERS))
    if x is None or not fixed(x.shape):
        return None
    axis = g.r.choice([i for i, d in enumerate(x.shape) if least(d) >= 1])
    shape = [min(d, 2) for d in x.shape]
    updates = g.weight(tuple(shape), -2, 2, x.type)
    reduction = g.r.choice(("none", "add", "max"))
    if reduction == "none":
        # Which of two equal indices wins is not said.
        shape[axis] = 1
        updates = g.weight(tuple(shape), -2, 2, x.type)
    return g.node("ScatterElements", [x, indices(g, tuple(shape), x.shape[axis]), updates], x.type, x.shape,
                  x.low - 4, x.high + 4, axis=axis, reduction=reduction)


def cumsum(g):
    x = g.pick(lambda v: v.rank >= 1 and v.type in (*FLOATS, *INTEGERS))
    if x is None:
        return None
    x = g.tamed(x)
    axis = g.r.randrange(x.rank)
    n = max(x.shape[axis].sizes) if isinstance(x.shape[axis], Dim) else x.shape[axis]
    return g.like("CumSum", x, min(0, x.low * n), max(0, x.high * n), [g.constant(np.int64(axis))],
                  exclusive=g.r.randint(0, 1), reverse=g.r.randint(0, 1))


def trilu(g):
    x = g.pick(lambda v: v.rank >= 2)
    if x is None:
        return None
    inputs = [x] + ([g.constant(np.int64(g.r.choice((-1, 0, 1))))] if g.maybe(0.6) else [])
    return g.node("Trilu", inputs, x.type, x.shape, min(0, x.low), max(0, x.high), upper=g.r.randint(0, 1))


def top_k(g):
    x = g.pick(lambda v: v.type == g.float and v.rank >= 1 and max(map(least, v.shape)) >= 1)
    if x is None:
        return None
    if g.wild:
        return None
    axis = g.r.choice([i for i, d in enumerate(x.shape) if least(d) >= 1])
    k = g.r.randint(1, min(3, least(x.shape[axis])))
    shape = [*x.shape[:axis], k, *x.shape[axis + 1:]]
    return g.node("TopK", [x, g.ints([k])], [x.type, "i64"], [shape, shape], x.low, x.high, outputs=2, axis=axis,
                  largest=g.r.randint(0, 1))


def one_hot(g):
    depth = g.r.randint(1, 6)
    chosen = indices(g, g.shape(g.r.choice((1, 2))), depth, "i64")
    return g.node("OneHot", [chosen, g.constant(np.int64(depth)), g.constant(np.asarray([0, 1], NUMPY[g.float]),
                                                                            g.float)],
                  g.float, (*chosen.shape, depth), 0, 1, axis=-1)


def range_positions(g):
    """0, 1, ... as many as a size."""
    dims = [d for v in g.values for d in v.shape if isinstance(d, Dim)]
    if not dims:
        return None
    dim = g.r.choice(sorted(dims, key=key))
    length = g.node("Squeeze", [g.size_of(dim), g.ints([0])], "i64", (), 0, 100)
    return g.node("Range", [g.constant(np.int64(0)), length, g.constant(np.int64(1))], "i64", (dim,), 0, 100)


# (weight, op)
OPS = [(10, unary), (1, gelu), (12, arithmetic), (2, min_max), (3, power), (1, clip), (3, compare), (2, logical),
       (3, where), (4, cast), (2, integer_math), (6, transpose), (7, reshape), (4, squeeze), (5, slices), (3, expand),
       (1, tile), (3, concat), (2, split), (1, pad), (2, gather), (1, gather_elements), (1, scatter_elements),
       (1, cumsum), (1, trilu), (1, top_k), (1, one_hot), (6, reduction), (1, arg_reduce), (2, softmax), (6, matmul),
       (2, gemm), (2, conv), (1, pool), (3, norm), (1, batch_norm), (1, einsum), (1, range_positions)]
