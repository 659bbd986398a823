#!/usr/bin/env python3
"""Small models that ask for a lot: hostile.py TENON [NAME...]

Each must be refused with one clear error, or compile, in seconds and with little memory, whatever sizes it names. The
models are made here; each function below gives one or several.
"""
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SECONDS, MEGABYTES = 60, 3000
OK, EITHER = "", None
MODELS = {}


def model(function):
    """Registers a function that gives the model and what its error mentions (OK: none, EITHER: all the same)."""
    MODELS[function.__name__] = function
    return function


def value(name, shape=None, element=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, element, shape)


def ints(name, *numbers):
    return numpy_helper.from_array(np.array(numbers, dtype=np.int64), name)


def make(nodes, inputs, initializers=(), functions=(), outputs=("y",)):
    graph = helper.make_graph(nodes, "g", inputs, [value(o) for o in outputs], list(initializers))
    opsets = [helper.make_opsetid("", 21)] + ([helper.make_opsetid("f", 1)] if functions else [])
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=10)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


# --- constants of any size from a few bytes ---------------------------------------------------------------------------

@model
def filled_terabytes():
    return make([node("ConstantOfShape", "s", "c"), node("Neg", "c", "d"), node("Gather", "d i", "y")],
                [value("i", ["n"], TensorProto.INT64)], [ints("s", 2**20, 2**20)]), OK


@model
def filled_beyond_addresses():
    return make([node("ConstantOfShape", "s", "y")], [value("x", ["n"])], [ints("s", 2**31, 2**31)]), "too large"


@model
def expanded_terabytes():
    one = numpy_helper.from_array(np.ones(1, np.float32), "v")
    return make([node("Expand", "v s", "c"), node("Transpose", "c", "d"), node("Relu", "d", "y")], [value("x", ["n"])],
                [one, ints("s", 2**20, 2**20)]), OK


@model
def filled_matrix_to_multiply_by():
    return make([node("ConstantOfShape", "s", "c"), node("MatMul", "x c", "y")], [value("x", [1, 2**20])],
                [ints("s", 2**20, 2**20)]), OK


@model
def list_doubled_forty_times():
    nodes = [node("Concat", f"c{i} c{i}", f"c{i + 1}", axis=0) for i in range(40)]
    return make(nodes + [node("Gather", "c40 i", "y")], [value("i", ["n"], TensorProto.INT64)],
                [numpy_helper.from_array(np.arange(300, dtype=np.float32), "c0")]), EITHER


@model
def megabytes_ten_thousand_times():
    nodes = [node("Concat", f"a a a a c{i}", f"b{i} ", axis=0) for i in range(2000)]
    nodes += [node("Sum", " ".join(f"b{i}" for i in range(2000)), "s"), node("Add", "s x", "y")]
    return make(nodes, [value("x", [1])], [numpy_helper.from_array(np.arange(65536, dtype=np.float32), "a")] +
                [numpy_helper.from_array(np.array([i], dtype=np.float32), f"c{i}") for i in range(2000)]), EITHER


@model
def symbolic_size_doubled_until_it_overflows():
    nodes = [node("Concat", f"c{i} c{i}", f"c{i + 1}", axis=0) for i in range(70)]
    return make(nodes + [node("ReduceSum", "c70", "y")], [value("c0", ["n"])]), "too large"


@model
def sizes_multiplied_beyond_any_polynomial():
    nodes = [node("Reshape", "x m", "r0")]
    for i in range(12):
        nodes += [node("Unsqueeze", f"r{i} a0", f"u{i}"), node("Unsqueeze", f"r{i} a1", f"v{i}"),
                  node("Add", f"u{i} v{i}", f"w{i}"), node("Reshape", f"w{i} m", f"r{i + 1}")]
    return make(nodes + [node("ReduceSum", "r12", "y")], [value("x", ["a", "b", "c"])],
                [ints("m", -1), ints("a0", 0), ints("a1", 1)]), "too large"


# --- much work for the compiler ---------------------------------------------------------------------------------------

@model
def product_of_filled_matrices():
    return make([node("ConstantOfShape", "s", "a"), node("ConstantOfShape", "t", "b"), node("MatMul", "a b", "c"),
                 node("Add", "c x", "y")], [value("x", [1])], [ints("s", 500, 2**22 // 500), ints("t", 2**22 // 500, 500)]), OK


@model
def convolution_of_filled_images():
    return make([node("ConstantOfShape", "s", "a"), node("ConstantOfShape", "t", "b"), node("Conv", "a b", "c"),
                 node("Add", "c x", "y")], [value("x", [1])], [ints("s", 1, 16, 500, 500), ints("t", 1, 16, 250, 250)]), OK


@model
def window_of_billions():
    pads = [2**31 - 1] * 4
    return make([node("AveragePool", "c", "d", kernel_shape=[2**31 - 1] * 2, pads=pads, strides=[2**31 - 1] * 2),
                 node("Add", "d x", "y")],
                [value("x", [1])], [numpy_helper.from_array(np.ones((1, 1, 1, 1), np.float32), "c")]), EITHER


@model
def padding_for_a_stride_of_zero():
    return make([node("MaxPool", "x", "y", kernel_shape=[2], strides=[0], auto_pad="SAME_UPPER")],
                [value("x", [1, 1, 8])]), "strides"


@model
def padding_for_the_longest_row():
    return make([node("MaxPool", "x", "y", kernel_shape=[2**31 - 1], strides=[2**31 - 1], auto_pad="SAME_UPPER")],
                [value("x", [1, 1, 2**60])]), EITHER


@model
def kernel_of_the_least_number():
    return make([node("MaxPool", "x", "y", kernel_shape=[-2**63], dilations=[-1], auto_pad="SAME_LOWER")],
                [value("x", [1, 1, 8])]), "kernel_shape"


@model
def gather_of_the_greatest_numbers():
    return make([node("Gather", "x i", "y")], [value("x", [3, 2])], [ints("i", 2**63 - 1, -2**63)]), \
        "index 9223372036854775807 is out of range: axis 0 has 3 entries"


def gather_far_outside(entries):
    nodes = [node("Gather", f"x i{k}", f"y{k}", name=f"g{k}") for k in range(4)]
    return make(nodes + [node("Concat", "y0 y1 y2 y3", "y", axis=0)], [value("x", [entries, 2])],
                [ints("i0", 2, -2), ints("i1", 2**62), ints("i2", 4, 5), ints("i3", 1, -2**63)])


@model
def gather_far_outside_of_five():
    return gather_far_outside(5), "node 'g1' (Gather): index 4611686018427387904 is out of range: axis 0 has 5 entries"


@model
def gather_far_outside_of_any_size():
    return gather_far_outside("n"), OK


@model
def gather_just_outside():
    return make([node("GatherElements", "x i", "y", axis=1)], [value("x", [1, 3])],
                [numpy_helper.from_array(np.array([[-3, 2, -4]]), "i")]), "index -4 is out of range: axis 1 has 3 entries"


@model
def scatter_outside():
    return make([node("ScatterND", "x i u", "y")], [value("x", [4, 3]), value("u", [2])],
                [numpy_helper.from_array(np.array([[3, 2], [2, 3]]), "i")]), "index 3 is out of range: axis 1 has 3 entries"


@model
def transposes_in_a_row():
    nodes = []
    for i in range(3000):
        nodes += [node("Transpose", f"t{i}", f"u{i}", perm=[1, 0]), node("Relu", f"u{i}", f"t{i + 1}")]
    return make(nodes, [value("t0", [4, 6])], outputs=["t3000"]), OK


@model
def one_value_joined_with_itself():
    return make([helper.make_node("Concat", ["x"] * 20_000, ["y"], axis=0)], [value("x", ["n", 4])]), EITHER


@model
def permutation_of_a_million():
    return make([node("Transpose", "x", "y", perm=list(range(10**6)))], [value("x", ["n", 4])]), "perm"


@model
def equation_of_fifty_thousand_terms():
    return make([node("Einsum", "x x", "y", equation="ij," * 50_000)], [value("x", ["n", 4])]), "equation"


# --- ranks ------------------------------------------------------------------------------------------------------------

@model
def rank_hundred_thousand():
    return make([node("Relu", "x", "y")], [value("x", [1] * 100_000)]), EITHER


@model
def reduction_of_rank_forty():
    return make([node("ReduceMax", "x", "y", keepdims=0)], [value("x", [f"d{i}" for i in range(40)])]), "rank"


@model
def rank_four_thousand_symbolic():
    return make([node("Add", "x z", "y")], [value("x", [f"d{i}" for i in range(4000)]),
                                            value("z", [f"e{i}" for i in range(4000)])]), "dimensions"


@model
def shape_of_hundred_thousand():
    return make([node("ConstantOfShape", "s", "y")], [value("x", [1])], [ints("s", *[1] * 100_000)]), "'input'"


# --- functions --------------------------------------------------------------------------------------------------------

def function(name, inputs, nodes):
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("f", 1)]
    return helper.make_function("f", name, inputs, ["b"], nodes, opsets)


def calling_twice(first, levels, length=1):
    """f0 is `first`; each other function calls the one before twice."""
    functions = [function("f0", ["a"], first)] if isinstance(first, list) else [first]
    for i in range(1, levels):
        functions.append(function(f"f{i}", ["a"], [
            helper.make_node(f"f{i - 1}", ["a"], ["t"], domain="f", name="p" * length),
            helper.make_node(f"f{i - 1}", ["t"], ["b"], domain="f", name="q" * length)]))
    return make([helper.make_node(f"f{levels - 1}", ["x"], ["y"], domain="f")], [value("x", ["n"])], functions=functions)


@model
def calls_doubled():
    return calling_twice([node("Neg", "a", "b")], 40), "functions inlined"


@model
def calls_doubled_with_long_names():
    return calling_twice([node("Neg", "a", "b", name="n" * 10_000)], 25, 10_000), "functions inlined"


@model
def calls_doubled_with_many_inputs():
    first = function("f0", ["a"] + [f"i{i}" for i in range(100_000)], [node("Neg", "a", "b")])
    return calling_twice(first, 18), "functions inlined"


def calls_doubled_with(constant):
    return calling_twice([constant, node("ReduceSum", "k", "s", keepdims=0), node("Cast", "s", "c", to=TensorProto.FLOAT),
                          node("Add", "a c", "b")], 14)


@model
def calls_doubled_with_a_tensor():
    tensor = helper.make_tensor("t", TensorProto.INT64, [100_000], range(100_000))
    return calls_doubled_with(node("Constant", "", "k", value=tensor)), EITHER


@model
def calls_doubled_with_numbers():
    return calls_doubled_with(node("Constant", "", "k", value_ints=range(100_000))), "functions inlined"


@model
def calls_five_thousand_deep():
    functions = [function("f0", ["a"], [node("Neg", "a", "b")])]
    functions += [function(f"f{i}", ["a"], [helper.make_node(f"f{i - 1}", ["a"], ["b"], domain="f")])
                  for i in range(1, 5000)]
    return make([helper.make_node("f4999", ["x"], ["y"], domain="f")], [value("x", ["n"])], functions=functions), "deep"


# --- messages ---------------------------------------------------------------------------------------------------------

@model
def escape_sequences_in_a_name():
    return make([node("Reshape", "x s", "y", name="\x1b]0;title\x07\x1b[2J")], [value("x", [3])], [ints("s", 4)]), "\\x1b"


def limits():
    # A sanitizer's shadow takes all addresses there are.
    resource.setrlimit(resource.RLIMIT_FSIZE, (MEGABYTES << 20,) * 2)


def check(tenon, name):
    made, mention = MODELS[name]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(made.SerializeToString())
        try:
            done = subprocess.run([tenon, "compile", str(path), "--stop-after=planned", "-o", str(Path(folder) / "out")],
                                  capture_output=True, timeout=10 * SECONDS, preexec_fn=limits)
        except subprocess.TimeoutExpired:
            return f"not done after {10 * SECONDS} s"
        text = done.stderr.decode(errors="replace")
        if done.returncode not in (0, 1):
            return f"ended with {done.returncode}: {text[-600:]}"
        if done.returncode == 1:
            if text.count("error: ") != 1 or len(text) > 20_000 or "internal" in text:
                return f"no clear error: {text[:600]!r}"
            if mention == OK or (mention and mention not in text):
                return f"expected {mention or 'no error'!r}, found: {text[:600]}"
        elif mention:
            return f"was accepted; expected an error that mentions {mention!r}"
        if (Path(folder) / "out").exists() != (done.returncode == 0):
            return "an output there should not be, or none where there should be"
    return None


def main():
    tenon, names = sys.argv[1], sys.argv[2:] or list(MODELS)
    failed = 0
    for name in names:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        problem = check(str(Path(tenon).resolve()), name)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        # The largest child so far; children come in any order of size.
        megabytes = after.ru_maxrss >> 10
        if problem is None and seconds > SECONDS:
            problem = f"took {seconds:.0f} s of processor time"
        if problem is None and megabytes > MEGABYTES and before.ru_maxrss >> 10 <= MEGABYTES:
            problem = f"took {megabytes} MB of memory"
        failed += problem is not None
        print(f"{'FAIL' if problem else 'ok  '} {name} {seconds:.1f} s {problem or ''}", flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
