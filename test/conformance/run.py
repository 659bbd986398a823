#!/usr/bin/env python3
"""Runs the ONNX backend node tests of the ops in ops.txt.

usage: run.py DRIVER [--filter TEXT] [--update] [--table FILE]

Each case is imported and evaluated by the reference evaluator (`DRIVER` is
tenon-conformance). A case whose integer parameters are graph inputs (Reshape's
shape, Slice's starts ...) and that fails like this is tried again with those
inputs as initializers, as models have them.

Fails when a case fails that expected-failures.txt doesn't list, and when one
that it lists passes: the list may only shrink. --update rewrites it with what
still fails. --table writes the table of supported ops.
"""
import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnx.numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = HERE / "expected-failures.txt"


def claimed_ops():
    lines = (HERE / "ops.txt").read_text().splitlines()
    return {op for line in lines if not line.startswith("#") for op in line.split()}


def expected_failures():
    if not EXPECTED.exists():
        return {}
    lines = [l for l in EXPECTED.read_text().splitlines() if l and not l.startswith("#")]
    return dict(l.split(maxsplit=1) for l in lines)


def ops_of(graph):
    for node in graph.node:
        yield node.domain or "", node.op_type
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from ops_of(attribute.g)


def is_tensor(value):
    return isinstance(value, np.ndarray) and value.dtype.kind != "O" and value.dtype.kind != "U"


# What the backend tests allow is too tight for types whose every step rounds: the
# reference evaluator rounds once, at the end.
STEPWISE = {"bfloat16": 2**-6, "float16": 2**-9}

# Older operator sets are refused.
FIRST_OPSET = 7


def storable(array):
    """Whether .npz holds it: 8 bits an element or more."""
    return array.dtype.name not in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn")


class Case:
    def __init__(self, test, number, inputs, outputs):
        self.name = test.name if number == 0 else f"{test.name}.{number}"
        self.model = test.model
        dtypes = [np.asarray(a).dtype.name for a in outputs]
        self.rtol = max([test.rtol, *(STEPWISE.get(d, 0) for d in dtypes)])
        self.atol = test.atol
        self.inputs = dict(zip((v.name for v in test.model.graph.input), inputs))
        self.outputs = dict(zip((v.name for v in test.model.graph.output), outputs))
        self.ops = [op for _, op in ops_of(test.model.graph)]
        self.status, self.message, self.fixed = "", "", False

    def usable(self):
        if any(o.version < FIRST_OPSET for o in self.model.opset_import if o.domain == ""):
            return False
        if not all(v.type.HasField("tensor_type") for v in self.model.graph.input):
            return False
        arrays = [np.asarray(a) for a in (*self.inputs.values(), *self.outputs.values())]
        return all(is_tensor(a) and storable(a) for a in arrays)

    def write(self, folder, fixed):
        """The files of the case; its line for the driver's list."""
        model, inputs = self.model, dict(self.inputs)
        if fixed:
            model = onnx.ModelProto()
            model.CopyFrom(self.model)
            for value in list(model.graph.input):
                if is_parameter(inputs[value.name]):
                    array = np.asarray(inputs.pop(value.name))
                    model.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
                    model.graph.input.remove(value)
        base = folder / self.name
        base.mkdir(exist_ok=True)
        onnx.save(model, base / "model.onnx")
        np.savez(base / "inputs.npz", **inputs)
        np.savez(base / "expected.npz", **self.outputs)
        return "\t".join([str(base / "model.onnx"), str(base / "inputs.npz"),
                          str(base / "expected.npz"), repr(float(self.rtol)), repr(float(self.atol))])


def is_parameter(array):
    array = np.asarray(array)
    return array.ndim <= 1 and array.dtype.kind in "iub"


def collect(claimed, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests
        tests = load_model_tests(kind="node")
    for test in tests:
        if text and text not in test.name:
            continue
        if not all(domain in ("", "ai.onnx") and op in claimed for domain, op in ops_of(test.model.graph)):
            continue
        for number, (inputs, outputs) in enumerate(test.data_sets):
            case = Case(test, number, inputs, outputs)
            if case.usable():
                yield case


def run(driver, cases, folder, fixed):
    """Runs the cases and stores what became of each; survives crashes."""
    lines = [case.write(folder, fixed) for case in cases]
    done = 0
    while done < len(cases):
        (folder / "list").write_text("\n".join(lines[done:]) + "\n")
        process = subprocess.run([driver, folder / "list"], capture_output=True, text=True)
        results = process.stdout.splitlines()
        for case, result in zip(cases[done:], results):
            case.status, _, case.message = result.partition("\t")
            case.fixed = fixed
        done += len(results)
        if done < len(cases):
            last = process.stderr.strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
            cases[done].status, cases[done].message = "crash", last[0]
            done += 1


def table(cases):
    """Markdown: for each op, how many of its cases pass."""
    counts = collections.defaultdict(lambda: [0, 0])
    for case in cases:
        for op in set(case.ops):
            counts[op][0] += case.status == "pass"
            counts[op][1] += 1
    rows = [f"| {op} | {passed} | {total} |" for op, (passed, total) in sorted(counts.items())]
    passed = sum(case.status == "pass" for case in cases)
    return "\n".join(["# ONNX conformance", "",
                      f"Generated by `test/conformance/run.py --table` with onnx {onnx.__version__}: "
                      f"{passed} of {len(cases)} node tests of these ops pass.", "",
                      "| op | passing | cases |", "|---|---:|---:|", *rows]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("driver")
    parser.add_argument("--filter", default="")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--table", type=pathlib.Path)
    options = parser.parse_args()

    cases = list(collect(claimed_ops(), options.filter))
    with tempfile.TemporaryDirectory() as folder:
        run(options.driver, cases, pathlib.Path(folder), fixed=False)
        again = [c for c in cases if c.status in ("import", "run") and any(map(is_parameter, c.inputs.values()))]
        run(options.driver, again, pathlib.Path(folder), fixed=True)

    failed = {case.name: case for case in cases if case.status != "pass"}
    expected = expected_failures()
    new = [case for name, case in failed.items() if name not in expected]
    fixed = [c.name for c in cases if c.name in expected and c.name not in failed]
    for case in new:
        print(f"{case.name}: {case.status}: {case.message[:300]}", file=sys.stderr)
    for name in fixed:
        print(f"{name}: passes now: remove it from {EXPECTED.name}", file=sys.stderr)
    if options.update:
        header = "# Node tests that are known to fail, and how far they come. May only shrink.\n"
        EXPECTED.write_text(header + "".join(f"{n} {failed[n].status}\n" for n in sorted(failed)))
    if options.table:
        options.table.write_text(table(cases))
    print(f"{len(cases) - len(failed)} of {len(cases)} cases pass "
          f"({sum(c.fixed for c in cases)} with parameters as initializers), "
          f"{len(failed) - len(new)} known failures, {len(new)} new, {len(fixed)} to be removed from the list")
    return 1 if new or fixed else 0


if __name__ == "__main__":
    sys.exit(main())
