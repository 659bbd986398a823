#!/usr/bin/env python3
"""Random valid ONNX graphs: what a generator of one needs.

A graph comes from one number, its seed, and always is the same. Values carry
their type, their shape and the range of their elements, so that ops are valid
and most results are finite: what would leave the range of its op is brought into
it first, or, now and then, isn't. Sizes are integers or `Dim`s, which have one
size in each of two data sets, so that 0 and 1 occur in one artifact beside
others.
"""
import dataclasses
import math
import random

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

SETS = 2
# Elements that one value may have in a data set.
MOST_ELEMENTS = 3000

NUMPY = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "bf16": ml_dtypes.bfloat16,
         "i64": np.int64, "i32": np.int32, "i8": np.int8, "u8": np.uint8, "u32": np.uint32,
         "bool": np.bool_}
ONNX = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "f64": TensorProto.DOUBLE,
        "bf16": TensorProto.BFLOAT16, "i64": TensorProto.INT64, "i32": TensorProto.INT32,
        "i8": TensorProto.INT8, "u8": TensorProto.UINT8, "u32": TensorProto.UINT32,
        "bool": TensorProto.BOOL}
FLOATS = ("f32", "f16", "f64", "bf16")
# What is a usual range, and what never is left.
USUAL = 8.0
LARGEST = {"f16": 1000.0, "bf16": 1e6, "f32": 1e6, "f64": 1e6}


@dataclasses.dataclass(frozen=True)
class Dim:
    """A size that no number in the model says."""
    key: str
    sizes: tuple

    @staticmethod
    def of(op, parts):
        """The sum (`+`) or product (`*`) of sizes; an integer where it is one."""
        parts = list(parts)
        sizes = tuple((sum if op == "+" else math.prod)(size(p, k) for p in parts) for k in range(SETS))
        if all(isinstance(p, int) for p in parts):
            return sizes[0]
        others = sorted((p for p in parts if p != (0 if op == "+" else 1)), key=key)
        return others[0] if len(others) == 1 else Dim("(" + op.join(map(key, others)) + ")", sizes)


def size(dim, data_set):
    return dim if isinstance(dim, int) else dim.sizes[data_set]


def least(dim):
    return dim if isinstance(dim, int) else min(dim.sizes)


def key(dim):
    return str(dim) if isinstance(dim, int) else dim.key


def sizes(shape, data_set):
    return tuple(size(d, data_set) for d in shape)


def elements(shape):
    return max(math.prod(sizes(shape, k)) for k in range(SETS))


def fixed(shape):
    """Whether all sizes are integers."""
    return all(isinstance(d, int) for d in shape)


def broadcast(a, b):
    """The shape of an elementwise op; None if there is none."""
    a, b = ((1,) * (max(len(a), len(b)) - len(s)) + tuple(s) for s in (a, b))
    result = []
    for x, y in zip(a, b):
        if x != y and 1 not in (x, y):
            return None
        result.append(y if x == 1 else x)
    return tuple(result)


@dataclasses.dataclass
class Value:
    name: str
    type: str
    shape: tuple
    low: float
    high: float
    constant: bool = False

    @property
    def rank(self):
        return len(self.shape)

    @property
    def is_float(self):
        return self.type in FLOATS

    @property
    def magnitude(self):
        return max(abs(self.low), abs(self.high))


class Graph:
    """A graph that grows."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.data = np.random.default_rng(seed)
        r = self.r
        self.float = r.choices(FLOATS, (76, 10, 9, 5))[0]
        self.opset = r.choice((18, 19, 20, 21, 22, 23))
        # How often a pattern is not quite what a pass looks for.
        self.twist = r.choice((0, 0, 0.08, 0.2))
        # How often numbers leave the range that an op has a meaning for.
        self.wild = r.choice((0, 0, 0, 0.05))
        self.nodes, self.inputs, self.initializers = [], [], []
        self.arrays = [{} for _ in range(SETS)]
        self.values, self.used, self.leaked = [], set(), []
        self.count = 0
        self.symbols = [self.new_symbol(name) for name in ("batch", "seq", "kv")[:r.choice((0, 0, 1, 2, 2, 3))]]

    def new_symbol(self, name):
        """In the first data set different from most sizes, in the second an edge."""
        return Dim(name, (self.r.choice((2, 3, 5)), self.r.choice((1, 1, 1, 2, 4, 7, 0))))

    def maybe(self, probability):
        return self.r.random() < probability

    def twisted(self):
        return self.r.random() < self.twist

    def name(self, hint):
        self.count += 1
        return f"{hint}_{self.count}"

    # Sources

    def dim(self):
        if self.symbols and self.maybe(0.35):
            return self.r.choice(self.symbols)
        return self.r.choice((1, 1, 2, 3, 4, 5, 6, 8, 0 if self.maybe(0.15) else 7))

    def shape(self, rank=None):
        rank = self.r.choice((0, 1, 2, 2, 3, 3, 4)) if rank is None else rank
        while True:
            shape = tuple(self.dim() for _ in range(rank))
            if elements(shape) <= MOST_ELEMENTS // 4:
                return shape

    def numbers(self, type, shape, low, high):
        """An array of random elements within a range."""
        kind = self.r.choices(("uniform", "normal", "integers", "constant"), (6, 3, 1, 0.3))[0]
        if type == "bool":
            return self.data.integers(0, 2, shape).astype(np.bool_)
        if type not in FLOATS:
            return self.data.integers(int(math.ceil(low)), int(math.floor(high)) + 1, shape).astype(NUMPY[type])
        if kind == "uniform":
            array = self.data.uniform(low, high, shape)
        elif kind == "normal":
            array = np.clip(self.data.normal((low + high) / 2, (high - low) / 6, shape), low, high)
        elif kind == "integers":
            array = np.clip(np.rint(self.data.uniform(low, high, shape)), low, high)
        else:
            array = np.full(shape, self.data.uniform(low, high))
        array = np.asarray(array)
        if self.wild and array.size and low < 0 < high and self.maybe(0.3):
            flat = array.reshape(-1)
            flat[self.data.integers(0, array.size)] = self.r.choice((np.inf, -np.inf, np.nan, 0.0, -0.0, 1e8))
        with np.errstate(over="ignore"):
            return array.astype(NUMPY[type])

    def usual_range(self, type):
        if type in FLOATS:
            return self.r.choice(((-2, 2), (-1, 1), (0, 3), (-6, 6), (0.1, 1)))
        return {"bool": (0, 1), "u8": (0, 9), "u32": (0, 9), "i8": (-9, 9)}.get(type, (-5, 5))

    def input(self, type=None, shape=None, low=None, high=None):
        type = type or self.float
        shape = self.shape() if shape is None else tuple(shape)
        if low is None:
            low, high = self.usual_range(type)
        value = Value(self.name("in"), type, shape, low, high)
        for k in range(SETS):
            self.arrays[k][value.name] = self.numbers(type, sizes(shape, k), low, high)
        self.inputs.append(value)
        self.values.append(value)
        return value

    def constant(self, array, type=None):
        """An initializer or, the same to a compiler, a node."""
        array = np.asarray(array)
        type = type or next(t for t, n in NUMPY.items() if n == array.dtype)
        name = self.name("w")
        tensor = helper.make_tensor(name, ONNX[type], array.shape,
                                    np.ascontiguousarray(array).tobytes(), raw=True)
        if self.maybe(0.2):
            self.nodes.append(helper.make_node("Constant", [], [name], name=f"n_{name}", value=tensor))
        else:
            self.initializers.append(tensor)
        numbers = np.nan_to_num(array.astype(np.float64), nan=0, posinf=1e30, neginf=-1e30)
        return Value(name, type, tuple(int(n) for n in array.shape), float(numbers.min(initial=0)),
                     float(numbers.max(initial=0)), True)

    def scalar(self, number, type=None, shape=()):
        """A number as exporters write it: a scalar, now and then of rank 1."""
        type = type or self.float
        return self.constant(np.full((1,) if not shape and self.maybe(0.1) else shape, number, NUMPY[type]), type)

    def ints(self, numbers):
        return self.constant(np.asarray(list(numbers), np.int64))

    def weight(self, shape, low=-1.0, high=1.0, type=None):
        assert fixed(shape)
        type = type or self.float
        return self.constant(self.numbers(type, shape, low, high), type)

    # Nodes

    def node(self, op, inputs, type, shape, low=None, high=None, outputs=1, domain="", **attributes):
        """Adds a node; where it has several outputs, `shape` is a list of theirs, and `type` may be."""
        names = [self.name(op.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, [v.name if v else "" for v in inputs], names,
                                           name=f"n_{names[0]}", domain=domain, **attributes))
        self.used.update(v.name for v in inputs if v)
        types, shapes = (type if isinstance(type, list) else [type] * outputs, shape) if outputs > 1 else ([type], [shape])
        results = []
        for name, one_type, one_shape in zip(names, types, shapes):
            if low is None:
                bounds = (0, 1) if one_type == "bool" else (-USUAL, USUAL)
            else:
                bounds = (low, high)
            results.append(Value(name, one_type, tuple(one_shape), *bounds))
        self.values += results
        return results if outputs > 1 else results[0]

    def like(self, op, x, low=None, high=None, others=(), **attributes):
        """A node with the type and shape of its first input, and its range."""
        low, high = (x.low, x.high) if low is None else (low, high)
        return self.node(op, [x, *others], x.type, x.shape, low, high, **attributes)

    def binary(self, op, a, b, type=None):
        """An elementwise node of two operands, which must broadcast."""
        shape = broadcast(a.shape, b.shape)
        assert shape is not None, (op, a, b)
        corners = [(a.low, b.low), (a.low, b.high), (a.high, b.low), (a.high, b.high)]
        apply = {"Add": lambda x, y: x + y, "Sub": lambda x, y: x - y, "Mul": lambda x, y: x * y,
                 "Div": lambda x, y: x / y if y else 0.0}.get(op)
        ends = [apply(x, y) for x, y in corners] if apply else [a.low, a.high, b.low, b.high]
        return self.node(op, [a, b], type or a.type, shape, min(ends), max(ends))

    def power(self, x, exponent):
        """x to the power of a number."""
        y = self.scalar(exponent, x.type)
        return self.node("Pow", [x, y], x.type, broadcast(x.shape, y.shape), -250, 250)

    def tamed(self, x, low=-USUAL, high=USUAL):
        """`x` within a range."""
        high = min(high, LARGEST[x.type]) if x.is_float else high
        low = max(low, 0) if x.type in ("u8", "u32", "bool") else low
        if low <= x.low and x.high <= high or self.maybe(self.wild):
            return x
        if not x.is_float or self.maybe(0.3):
            minimum, maximum = (self.constant(np.asarray(math.ceil(b) if not x.is_float else b, NUMPY[x.type]),
                                              x.type) for b in (low, high))
            return self.node("Clip", [x, minimum, maximum], x.type, x.shape, max(low, min(x.low, high)),
                             min(high, max(x.high, low)))
        squashed = self.like(self.r.choice(("Tanh", "Sigmoid", "Erf", "Softsign")) if x.type != "bf16" else "Tanh",
                             x, -1, 1)
        if low <= -1 and 1 <= high:
            return squashed
        half, middle = (high - low) / 2, (high + low) / 2
        result = self.binary("Add", self.binary("Mul", squashed, self.scalar(half * 0.98, x.type)),
                             self.scalar(middle, x.type))
        result.low, result.high = low, high
        return result

    def shape_vector(self, dims):
        """An i64[n] tensor of sizes, computed from the shapes of values."""
        parts, pending = [], []

        def flush():
            if pending:
                parts.append(self.ints(pending))
                pending.clear()

        for dim in dims:
            if isinstance(dim, int):
                pending.append(dim)
                continue
            flush()
            parts.append(self.size_of(dim))
        flush()
        if not parts:
            return self.ints([])
        if len(parts) == 1:
            return parts[0]
        return self.node("Concat", parts, "i64", (len(dims),), 0, 100, axis=0)

    def size_of(self, dim):
        """An i64[1] tensor of a size."""
        sources = [(v, i) for v in self.values for i, d in enumerate(v.shape) if d == dim]
        value, axis = self.r.choice(sources)
        if self.maybe(0.3):
            return self.node("Shape", [value], "i64", (1,), 0, 100, start=axis, end=axis + 1)
        whole = self.node("Shape", [value], "i64", (value.rank,), 0, 100)
        if self.maybe(0.5):
            return self.node("Gather", [whole, self.ints([axis])], "i64", (1,), 0, 100, axis=0)
        scalar = self.node("Gather", [whole, self.constant(np.int64(axis))], "i64", (), 0, 100, axis=0)
        return self.node("Unsqueeze", [scalar, self.ints([0])], "i64", (1,), 0, 100)

    def knows(self, dim):
        return isinstance(dim, int) or any(d == dim for v in self.values for d in v.shape)

    # Choosing

    def pick(self, accept=lambda v: True):
        """A value that is there, a recent one rather than an old one; or None."""
        found = [v for v in self.values if accept(v)]
        if not found:
            return None
        return found[-1 - min(int(self.r.expovariate(0.35)), len(found) - 1)]

    def pick_float(self, accept=lambda v: True):
        """A float value; a new input where there is none."""
        value = self.pick(lambda v: v.type == self.float and accept(v))
        if value is None or self.maybe(0.06):
            new = self.input()
            return new if accept(new) else value
        return value

    def partner(self, x, low=None, high=None):
        """Something of x's type that broadcasts with it."""
        choice = self.r.random()
        if choice < 0.45:
            found = self.pick(lambda v: v.type == x.type and v is not x and
                              broadcast(v.shape, x.shape) is not None and
                              elements(broadcast(v.shape, x.shape)) <= MOST_ELEMENTS)
            if found:
                return self.tamed(found) if low is None else self.tamed(found, low, high)
        if low is None:
            low, high = self.usual_range(x.type)
        if choice < 0.6 and elements(x.shape) <= MOST_ELEMENTS:
            return self.input(x.type, x.shape, low, high)
        shape = list(x.shape[self.r.randint(0, x.rank):])
        for i, dim in enumerate(shape):
            if not isinstance(dim, int) or self.maybe(0.2):
                shape[i] = 1
        return self.constant(self.numbers(x.type, tuple(shape), low, high), x.type)

    def leak(self, value):
        """Now and then something inside a pattern is an output too."""
        if self.maybe(self.twist / 2):
            self.leaked.append(value)
        return value

    # The end

    def finish(self):
        """The model; its outputs are what nothing uses, and some others."""
        made = [v for v in self.values if v not in self.inputs]
        if not made:
            x = self.inputs[0] if self.inputs else self.input()
            made = [self.like("Identity", x)]
        unused = [v for v in made if v.name not in self.used]
        others = [v for v in made if v.name in self.used]
        outputs = unused[-4:] + self.leaked + self.r.sample(others, min(len(others), self.r.choice((0, 0, 1, 2))))
        outputs = list({v.name: v for v in outputs}.values()) or [made[-1]]
        if self.inputs and self.maybe(0.03):
            outputs.append(self.inputs[0])

        def info(v):
            return helper.make_tensor_value_info(v.name, ONNX[v.type], [
                d if isinstance(d, int) else d.key for d in v.shape])

        # Sizes of outputs that are no symbols are the compiler's to find out.
        names = {s.key for s in self.symbols}

        def output_info(v):
            shape = [d if isinstance(d, int) else d.key if d.key in names else None for d in v.shape]
            return helper.make_tensor_value_info(v.name, ONNX[v.type], shape)

        graph = helper.make_graph(self.nodes, "random", [info(v) for v in self.inputs],
                                  [output_info(v) for v in outputs], self.initializers)
        model = helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)])
        self.outputs = outputs
        return model
