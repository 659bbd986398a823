#!/usr/bin/env python3
"""Writes docs/support.md: which operators of ONNX work, in which versions, with
which element types and on which targets.

usage: support.py [--check]

It says what the tests say: run.py fails when a case fails that
expected-failures.txt does not list, and when one passes that it does. --check
only compares the file with what would be written.
"""
import collections
import pathlib
import re
import sys

import onnx
from onnx import defs

from cases import collect
from run import expected_failures

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "support.md"
TABLE = ROOT / "frontend" / "OnnxOps.def"
# Those whose failures expected-failures.txt lists in full.
TARGETS = {"ref": "reference", "cpu": "CPU", "cuda": "CUDA"}
SHORT = {"float": "f32", "float16": "f16", "double": "f64", "bfloat16": "bf16"}


def own_lowerings():
    """{op: versions of the operator set at which its line starts}"""
    versions = collections.defaultdict(list)
    for op, since in re.findall(r"ONNX_(?:PLAIN|IMPORT)\(Ai, (\w+), (\d+)", TABLE.read_text()):
        versions[op].append(int(since))
    return versions


def contrib_ops():
    return sorted(set(re.findall(r"ONNX_(?:PLAIN|IMPORT)\(Ms, (\w+)", TABLE.read_text())))


def runs_on(case, target):
    return target != "cuda" or case.transformer


def short(name):
    name = SHORT.get(name, name)
    return re.sub(r"^float(\d)", r"f\1", re.sub(r"^(u?)int", lambda m: m.group(1) or "i", name))


def row(op, cases, versions, failed):
    passed = collections.Counter()
    total = collections.Counter()
    types, opsets = set(), set()
    for case in cases:
        for target in TARGETS:
            if runs_on(case, target):
                total[target] += 1
                passed[target] += (case.name, target) not in failed
        if (case.name, "ref") not in failed:
            types |= {short(t) for t in case.element_types}
            opsets.add(case.opset)
    since = ", ".join(map(str, sorted(versions[op]))) if op in versions else (
        "body" if defs.has(op) and defs.get_schema(op).has_function else "-")
    tested = f"{min(opsets)} to {max(opsets)}" if len(opsets) > 1 else "".join(map(str, opsets)) or "-"
    counts = " | ".join(f"{passed[t]} of {total[t]}" if total[t] else "-" for t in TARGETS)
    return f"| {op} | {since} | {tested} | {', '.join(sorted(types)) or '-'} | {counts} |"


def text():
    everything = collect()
    failed = expected_failures()
    cases = [case for case in everything if not case.excluded]
    versions = own_lowerings()
    by_op = collections.defaultdict(list)
    for case in cases:
        for op in case.ops:
            by_op[op].append(case)
    lines = ["# Operators", "",
             f"Written by `test/conformance/support.py` from the ONNX backend tests of onnx {onnx.__version__} "
             "and from `frontend/OnnxOps.def`; do not edit.", ""]
    nodes = [case for case in everything if case.kind == "node"]
    meant = [case for case in nodes if not case.excluded]
    for target, name in TARGETS.items():
        ran = [case for case in meant if runs_on(case, target)]
        good = sum((case.name, target) not in failed for case in ran)
        share = "" if target == "cuda" else (f", {100 * good / len(ran):.1f} % of them and "
                                             f"{100 * good / len(nodes):.1f} % of all {len(nodes)}")
        lines.append(f"- **{name}**: {good} of {len(ran)} node tests pass{share}"
                     + (" (the operators that transformers are made of, on the emulator)."
                        if target == "cuda" else "."))
    lines += ["", "Left out, by reason (all kinds of tests that need no download):", ""]
    reasons = collections.Counter(case.excluded for case in everything if case.excluded)
    lines += [f"- {reason}: {count}" for reason, count in sorted(reasons.items())]
    lines += ["", "A test counts for every operator in its graph; those whose names end in `_expanded` spell an",
              "operator out by others. *Since*: the versions of the operator set at which the meaning that Tenon",
              "implements changes; `body`: by the body that ONNX's schema gives. *Types*: of inputs and outputs",
              "of tests that pass.", "",
              "| operator | since | opsets tested | types | " + " | ".join(TARGETS.values()) + " |",
              "|---|---|---|---|" + "---:|" * len(TARGETS)]
    lines += [row(op, by_op[op], versions, failed) for op in sorted(by_op)]
    lines += ["", "## Operators without a test of ONNX's", "",
              ", ".join(sorted(op for op in versions if op not in by_op)) or "None", "",
              "## Operators of ONNX Runtime (`com.microsoft`)", "", ", ".join(contrib_ops()), "",
              "## Known failures", "", "| test | targets | why |", "|---|---|---|"]
    known = collections.defaultdict(list)
    for (name, target), reason in failed.items():
        known[name, reason].append(target)
    lines += [f"| {name} | {', '.join(sorted(targets))} | {reason.replace('|', '/')} |"
              for (name, reason), targets in sorted(known.items())]
    return "\n".join(lines) + "\n"


def main():
    wanted = text()
    if "--check" not in sys.argv:
        OUT.write_text(wanted)
        return 0
    if OUT.exists() and OUT.read_text() == wanted:
        print("docs/support.md is current")
        return 0
    print("docs/support.md is not current: run test/conformance/support.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
