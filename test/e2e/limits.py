#!/usr/bin/env python3
"""Models at the limits of what is sensible, and compilations that are disturbed: limits.py TENON

A chain of 20,000 nodes, 5,000 inputs, names of 10,000 characters and 300 Ifs in each other's branches compile and are
right. A compilation that is killed, or whose disk is full, leaves nothing at its output; several at once share the cache
and write the same bytes.
"""
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from models import ROOT, Report, compile_model, run_artifact
from onnx import TensorProto, helper

MODEL = ROOT / "test" / "models" / "tiny" / "bert-tiny-ts" / "model.onnx"


def tensor(name, size="n"):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [size])


def model(nodes, inputs, outputs):
    graph = helper.make_graph(nodes, "limits", inputs, outputs)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)])


def chain():
    """Of v0 = x: v[i + 1] = tanh(v[i]) or -v[i]."""
    nodes = [helper.make_node(("Tanh", "Neg")[i % 2], [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i in range(20000)]
    x = np.array([-0.5, 0.25], np.float32)
    y = x
    for i in range(20000):
        y = -y if i % 2 else np.tanh(y)
    return model(nodes, [tensor("v0")], [tensor("v20000")]).SerializeToString(), {"v0": x}, {"v20000": y}


def inputs():
    names = [f"input{i}" for i in range(5000)]
    feeds = {name: np.full(3, i, np.float32) for i, name in enumerate(names)}
    total = model([helper.make_node("Sum", names, ["y"])], [tensor(name) for name in names], [tensor("y")])
    return total.SerializeToString(), feeds, {"y": np.full(3, 4999 * 5000 / 2, np.float32)}


def names():
    x, y, z, size = (letter * 10000 for letter in "xyzn")
    nodes = [helper.make_node("Neg", [x], [y], name=y * 2), helper.make_node("Abs", [y], [z], name=z * 2)]
    feed = np.array([3, -4], np.float32)
    return model(nodes, [tensor(x, size)], [tensor(z, size)]).SerializeToString(), {x: feed}, {z: np.abs(feed)}


def field(number, data):
    """A field of bytes in a Protocol Buffers message."""
    size, length = len(data), b""
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def branches():
    """if c: (if c: ... x + x ... else: -x) else: -x, as bytes: Python's parser allows 100 messages in each other."""
    def branch(name, graph):
        return field(5, field(1, name) + field(6, graph) + b"\xa0\x01\x05")

    body = field(1, helper.make_node("Add", ["x", "x"], ["r0"]).SerializeToString())
    for depth in range(1, 301):
        inner = body + field(2, b"then") + field(12, tensor(f"r{depth - 1}").SerializeToString())
        other = helper.make_graph([helper.make_node("Neg", ["x"], [f"e{depth}"])], "else", [], [tensor(f"e{depth}")])
        body = field(1, field(1, b"c") + field(2, f"r{depth}".encode()) + field(4, b"If") +
                     branch(b"then_branch", inner) + branch(b"else_branch", other.SerializeToString()))
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    body += field(2, b"ifs") + field(12, tensor("r300").SerializeToString())
    body += b"".join(field(11, value.SerializeToString()) for value in (tensor("x"), condition))
    whole = model([], [], [])
    whole.ClearField("graph")
    x = np.array([1, 2], np.float32)
    return whole.SerializeToString() + field(7, body), {"x": x, "c": np.array(True)}, {"r300": x + x}


def large(report, tenon, folder):
    for case in (chain, inputs, names, branches):
        data, feeds, expected = case()
        (folder / "large.onnx").write_bytes(data)
        np.savez(folder / "in.npz", **feeds)
        seconds = compile_model(tenon, folder / "large.onnx", folder / "large")
        got = run_artifact(folder / "large", folder / "in.npz", folder / "out.npz")
        wrong = [name[:20] for name, value in expected.items() if not np.allclose(got[name], value, rtol=1e-5, atol=1e-6)]
        report.add(f"{case.__name__}, compiled in {seconds:.1f} s", [f"differ: {wrong}"] if wrong else [])


def start(tenon, out, cache, **options):
    return subprocess.Popen([tenon, "compile", str(MODEL), "-o", str(out)], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True, start_new_session=True,
                            env=os.environ | {"TENON_CACHE_DIR": str(cache)}, **options)


def killed(report, tenon, folder):
    """At moments spread over a whole compilation, compiler, children and all."""
    (folder / "killed").mkdir()
    begun = time.monotonic()
    start(tenon, folder / "whole", folder / "cache0").communicate()
    whole = time.monotonic() - begun
    problems = []
    for i in range(5):
        process = start(tenon, folder / "killed" / "out", folder / f"cache{i}")
        time.sleep(random.Random(i).random() * whole)
        os.killpg(process.pid, signal.SIGKILL)
        finished = process.wait() == 0
        left = os.listdir(folder / "killed")
        if left != (["out"] if finished else []):
            problems.append(f"the {i}th left {left}")
        for name in left:
            (folder / "killed" / name).unlink()
    report.add("killed 5 times", problems)


def full_disk(report, tenon, folder):
    """No file may be longer than some size, which is what a full disk is to whoever writes one."""
    def limit(size):
        def set_limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return set_limit

    (folder / "full").mkdir()
    for size in (0, 4096, 1 << 18):
        process = start(tenon, folder / "full" / "out", folder / "cache0", preexec_fn=limit(size))
        _, said = process.communicate()
        left = os.listdir(folder / "full")
        report.add(f"files of at most {size} bytes", [] if process.returncode == 1 and "error: " in said and not left else
                   [f"exit {process.returncode}, leaves {left}, says {said}"])


def together(report, tenon, folder):
    processes = [start(tenon, folder / f"same{i}", folder / "shared") for i in range(3)]
    problems = [said for _, said in [process.communicate() for process in processes] if "error" in said]
    same = len({(folder / f"same{i}").read_bytes() for i in range(3) if not problems})
    report.add("three at once with one cache", problems or ([] if same == 1 else [f"{same} different artifacts"]))


def main():
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        for test in (large, killed, full_disk, together):
            test(report, sys.argv[1], Path(name))
    report.end()


if __name__ == "__main__":
    main()
