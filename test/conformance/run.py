#!/usr/bin/env python3
"""Runs the ONNX backend tests on a target.

usage: run.py DRIVER --target=ref|cpu|cuda [--filter TEXT] [--every N]
              [--transformer] [--update] [--json FILE]

Each case goes through the importer, the passes and (not for `ref`) the code
generator; `DRIVER` is tenon-conformance. A case whose integer parameters are
graph inputs (Reshape's shape, Slice's starts ...) and that fails like this is
tried again with those inputs as initializers, as models have them.

Fails when a case fails that expected-failures.txt doesn't list for the target,
and when one that it lists passes: the list may only shrink. --update rewrites it
with what still fails.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import onnx

from cases import collect

EXPECTED = pathlib.Path(__file__).resolve().parent / "expected-failures.txt"
HEADER = """\
# Cases of the ONNX backend tests that are known to fail: the name, the targets, how
# far it comes and why. May only shrink.
"""
# So many cases share compiled units.
BATCH = 64


def expected_failures():
    """{(name, target): reason}"""
    failures = {}
    for line in EXPECTED.read_text().splitlines() if EXPECTED.exists() else []:
        if line and not line.startswith("#"):
            name, targets, reason = line.split(maxsplit=2)
            failures.update({(name, target): reason for target in targets.split(",")})
    return failures


def write_expected(failures):
    merged = collections.defaultdict(list)
    for (name, target), reason in failures.items():
        merged[name, reason].append(target)
    order = ["ref", "cpu", "cuda"]
    lines = [f"{name} {','.join(sorted(targets, key=order.index))} {reason}\n"
             for (name, reason), targets in merged.items()]
    EXPECTED.write_text(HEADER + "".join(sorted(lines)))


def run_list(driver, target, cases, lines, path):
    """Sets the status of cases until the driver ends; gives the one that ended it."""
    text = ""
    for i, line in enumerate(lines):
        text += line + "\n" + ("\n" if i % BATCH == BATCH - 1 else "")
    path.write_text(text)
    process = subprocess.Popen([driver, target, path], stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.PIPE)
    begun = None
    for row in process.stdout:
        number, status, *message = row.rstrip("\n").split("\t")
        case = cases[int(number)]
        if status == "begin":
            begun = case
        else:
            case.status, case.message = status, message[0] if message else ""
    stderr = process.stderr.read().strip().splitlines()
    if process.wait() == 0:
        return None
    if begun and not begun.status:
        begun.status, begun.message = "crash", (stderr or [f"exit status {process.returncode}"])[-1]
        return begun
    sys.exit(f"the driver ended with {process.returncode}: " + "\n".join(stderr[-20:]))


def run(driver, target, cases, folder, fixed):
    """Runs the cases and stores what became of each; survives crashes."""
    lines = {case.name: case.write(folder, fixed) for case in cases}
    for case in cases:
        case.status, case.message, case.fixed = "", "", fixed
    left = list(cases)
    while left:
        run_list(driver, target, left, [lines[c.name] for c in left], folder / "list")
        left = [case for case in left if not case.status]


def reason_of(case):
    message = re.sub(r"^\S*\.onnx: error: ", "", case.message)
    message = re.sub(r"^node '[^']*' \((\w+)\): ", r"\1: ", message)
    return f"{case.status}: {message}"[:200].strip()


def chosen(options):
    cases = [case for case in collect() if options.filter in case.name]
    if options.transformer:
        cases = [case for case in cases if case.transformer]
    return cases[::options.every]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("driver")
    parser.add_argument("--target", default="ref", choices=["ref", "cpu", "cuda"])
    parser.add_argument("--filter", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--transformer", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    everything = chosen(options)
    cases = [case for case in everything if not case.excluded]
    with tempfile.TemporaryDirectory() as folder:
        run(options.driver, options.target, cases, pathlib.Path(folder), fixed=False)
        again = [c for c in cases if c.has_parameters and c.status not in ("pass", "crash", "differ")]
        run(options.driver, options.target, again, pathlib.Path(folder), fixed=True)

    failed = {case.name: case for case in cases if case.status != "pass"}
    expected = expected_failures()
    listed = {name for name, target in expected if target == options.target}
    new = [case for name, case in failed.items() if name not in listed]
    fixed = [c.name for c in cases if c.name in listed and c.name not in failed]
    stale = listed - {c.name for c in cases} if cases and not (
        options.filter or options.every > 1 or options.transformer) else set()
    for case in new:
        print(f"{case.name}: {reason_of(case)}", file=sys.stderr)
    for name in (*fixed, *sorted(stale)):
        print(f"{name}: does not fail: remove it from {EXPECTED.name}", file=sys.stderr)
    if options.update:
        for name in (*fixed, *stale):
            del expected[name, options.target]
        for case in new:
            expected[case.name, options.target] = reason_of(case)
        write_expected(expected)
    if options.json:
        options.json.write_text(json.dumps({c.name: [c.status, c.message] for c in cases}, indent=0))
    counts = collections.Counter(case.excluded for case in everything if case.excluded)
    print(f"onnx {onnx.__version__}, {options.target}: {len(cases) - len(failed)} of {len(cases)} cases pass "
          f"({sum(c.fixed for c in cases if c.status == 'pass')} with parameters as initializers), "
          f"{len(failed) - len(new)} known failures, {len(new)} new, {len(fixed)} to be removed from the list")
    print(f"of {len(everything)} in all; excluded: " +
          (", ".join(f"{n} {reason}" for reason, n in sorted(counts.items())) or "none"))
    return 1 if new or fixed or stale or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
