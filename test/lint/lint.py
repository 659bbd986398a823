#!/usr/bin/env python3
"""Holds the project's own rules: lint.py

- dependencies go one way (ARCHITECTURE.md): which folder may include which
- only `frontend` sees Protocol Buffers; `runtime` and the kernels need the standard library alone
- every op, pass and kernel has a test of its name
- files stay below 600 lines, nothing unfinished is left behind
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# folder: the project's folders that its files may include
MAY_INCLUDE = {
    "ir": {"ir"},
    "frontend": {"frontend", "ir"},
    "passes": {"passes", "ir"},
    "codegen/kernels": {"codegen/kernels", "runtime/format"},
    "codegen": {"codegen", "codegen/kernels", "ir", "runtime/format"},
    "runtime": {"runtime", "runtime/format"},
}
STANDARD_ONLY = ("runtime", "codegen/kernels")
# The compiler's tools share the runtime's file formats and run artifacts in process.
EXTRA = {"codegen": {"runtime"}}
LOCALES = {"iostream", "sstream", "fstream", "iomanip", "locale", "regex", "istream", "ostream"}
MAX_LINES = 600
CODE = {".cpp", ".h", ".def", ".inc"}


def files():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [Path(f) for f in listed if (ROOT / f).is_file()]


def folder_of(path):
    text = str(path)
    for folder in ("codegen/kernels", "runtime/format"):
        if text.startswith(folder + "/"):
            return folder
    return text.split("/")[0]


def check_includes(path, text):
    folder = folder_of(path)
    allowed = MAY_INCLUDE.get(folder)
    if allowed is None:
        return
    allowed = allowed | EXTRA.get(folder, set())
    for header in re.findall(r'^#include [<"]([^">]+)[">]', text, re.M):
        if header.startswith(("google/protobuf", "onnx")) and folder != "frontend":
            yield f"{path}: includes {header}; only frontend sees Protocol Buffers"
        if header.startswith("llvm/") and folder in STANDARD_ONLY:
            yield f"{path}: includes {header}; {folder} needs the standard library alone"
        if header in ("pcre2.h", "utf8proc.h") and not str(path).startswith("runtime/text/"):
            yield f"{path}: includes {header}; only runtime/text does, which artifacts without a tokenizer lack"
        if header in LOCALES and folder == "runtime" and "emulator" not in str(path):
            yield f"{path}: includes <{header}>, which brings all locales, a third of a megabyte, into every artifact"
        target = folder_of(Path(header))
        if target in {"kernels", "cpu", "common"}:
            continue
        if target in {"tools", *MAY_INCLUDE, "runtime/format"} and target not in allowed:
            yield f"{path}: includes {header}; {folder} may include {', '.join(sorted(allowed))}"


def check_text(path, text):
    if path.suffix in CODE | {".py", ".cuh", ".sh"} and path.name != "lint.py":
        for word in ("TO" + "DO", "FIX" + "ME", "X" + "XX"):
            if re.search(rf"\b{word}\b", text):
                yield f"{path}: holds {word}"
        if text.count("\n") > MAX_LINES:
            yield f"{path}: {text.count(chr(10))} lines; is an idea missing? (at most {MAX_LINES})"


def check_tests_exist():
    ops = (ROOT / "ir/ops/Ops.def").read_text()
    untested = {"return", "yield"}
    for mnemonic in re.findall(r'^TN_(?:OP|UNARY|BINARY|REDUCE)\(\w+, "(\w+)"', ops, re.M):
        if mnemonic not in untested and not (ROOT / f"test/ops/{mnemonic}.tn").exists():
            yield f"op {mnemonic} has no test/ops/{mnemonic}.tn"
    for flag in re.findall(r'^TN_PASS\(\w+,\s*"([\w-]+)"', (ROOT / "passes/Passes.def").read_text(), re.M):
        for name in (f"{flag}.tn", f"{flag}-negative.tn"):
            if not (ROOT / "test/passes" / name).exists():
                yield f"pass {flag} has no test/passes/{name}"


def main():
    problems = []
    for path in files():
        if path.suffix not in CODE | {".py", ".sh", ".cuh"}:
            continue
        text = (ROOT / path).read_text(errors="replace")
        problems += check_includes(path, text)
        problems += check_text(path, text)
    problems += check_tests_exist()
    print("\n".join(problems) or "every rule holds")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
