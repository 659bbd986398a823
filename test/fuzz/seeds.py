#!/usr/bin/env python3
"""Makes what fuzzing starts from: seeds.py OUT [TENON-OPT]

OUT/onnx gets small models (ONNX's own node tests, a few of each op Tenon knows), OUT/external where tensors may lie,
OUT/side_file weights, OUT/ir_text and (with TENON-OPT) OUT/program_text the texts of this repository's tests.
"""
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import onnx

TEST = Path(__file__).resolve().parent.parent
LARGEST, PER_OP = 1500, 4


def node_tests():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests
        tests = load_model_tests(kind="node")
    made = {}
    for test in sorted(tests, key=lambda t: t.name):
        model = test.model
        if model is None:
            model = onnx.load(Path(test.model_dir) / "model.onnx")
        nodes = model.graph.node
        op = nodes[-1].op_type
        # Functions spell one op out; they are tried too.
        kind = op if len(nodes) == 1 else f"{op}, expanded"
        data = model.SerializeToString()
        if len(data) <= LARGEST and made.get(kind, 0) < PER_OP:
            made[kind] = made.get(kind, 0) + 1
            yield test.name, data


def weights_file():
    entries, data = b"", b""
    tensors = [(b"a", b"f32", [2, 3], bytes(24)), (b"b", b"i64", [0], b""), (b"w", b"i4", [5], b"\x12\x34\x05")]
    head = 8 + 4 + 4 + sum(4 + len(n) + 1 + len(t) + 1 + 8 * len(s) + 16 for n, t, s, _ in tensors)
    at = (head + 63) // 64 * 64
    for name, element, shape, contents in tensors:
        entries += struct.pack("<I", len(name)) + name + bytes([len(element)]) + element + bytes([len(shape)])
        entries += struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<QQ", at, len(contents))
        data += contents.ljust(64, b"\0")
        at += 64
    return (b"TNWEIGHT" + struct.pack("<II", 1, len(tensors)) + entries).ljust((head + 63) // 64 * 64, b"\0") + data


EXTERNAL = ["w\n0\n64\n64", "w\n\n\n64", "w\n32\n\n32", "sub/w\n1\n8\n8", "./w\n0\n4\n4", "link\n0\n4\n4", "../w\n0\n4\n4",
            "/etc/passwd\n0\n4\n4", "sub\n0\n4\n4", "w\n60\n8\n8", "w\n-1\n4\n4", "w\n18446744073709551615\n4\n4"]


def main():
    out = Path(sys.argv[1])

    def write(target, name, data):
        folder = out / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)

    for name, data in node_tests():
        write("onnx", name, data)
    for i, text in enumerate(EXTERNAL):
        write("external", str(i), text.encode())
    write("side_file", "three", weights_file())
    texts = [p for folder in ("ir", "ops", "passes") for p in sorted((TEST / folder).glob("*.tn"))]
    for path in texts:
        if path.stat().st_size <= 4 * LARGEST:
            write("ir_text", path.name, path.read_bytes())
    for path in sorted((TEST / "codegen/cpu").glob("*.tn")) if len(sys.argv) > 2 else []:
        done = subprocess.run([sys.argv[2], "--lower=planned", str(path)], capture_output=True)
        if done.returncode == 0:
            write("program_text", path.stem + ".tnk", done.stdout)


if __name__ == "__main__":
    main()
