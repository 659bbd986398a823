#!/usr/bin/env python3
"""One runtime with one model, in a process of its own: worker.py KIND MODEL INPUTS.npz THREADS [PAGES]

Reads commands, a line each, and answers each with a line of JSON:
  load             makes the session and runs it once: {"seconds", "rss"}, bytes that this added to the process
  outputs PATH     runs once, writes the outputs to PATH.npz: {}
  run SECONDS      runs again and again: {"times"}, seconds each, or their "median_ms"
Kinds: tenon (MODEL is an artifact), onnxruntime, openvino-f32, openvino-bf16, torch (MODEL's folder has model.pt2, what
torch.export.save wrote).
"""
import json
import os
import resource
import subprocess
import sys
import time


class Tenon:
    """Runs the artifact's own commands. Nothing large is imported here: a process starts with its parent's peak memory."""

    def __init__(self, model, inputs, threads, pages):
        self.command = [model, f"--inputs={inputs}", f"--threads={threads}", f"--pages={pages}"]

    def load(self):
        start = time.perf_counter()
        subprocess.run([*self.command, "--run", "--outputs=/dev/shm/tenon-bench.npz"], check=True, stderr=subprocess.DEVNULL)
        seconds = time.perf_counter() - start
        os.remove("/dev/shm/tenon-bench.npz")
        return {"seconds": seconds, "rss": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024}

    def outputs(self, path):
        subprocess.run([*self.command, "--run", f"--outputs={path}"], check=True, stderr=subprocess.DEVNULL)
        return {}

    def run(self, seconds):
        done = subprocess.run([*self.command, "--bench", f"--seconds={seconds}", "--json"], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)


def memory(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key)) * 1024


class Library:
    """A runtime that is a Python package. What importing it costs is not counted."""

    def __init__(self, model, inputs, threads, pages):
        import numpy as np
        self.model, self.threads = model, threads
        self.prepare()
        self.feeds = dict(np.load(inputs))

    def load(self):
        before = memory("VmRSS")
        start = time.perf_counter()
        self.create()
        self.once()
        return {"seconds": time.perf_counter() - start, "rss": memory("VmHWM") - before}

    def outputs(self, path):
        import numpy as np
        np.savez(path, **self.once())
        return {}

    def run(self, seconds):
        times = []
        self.once()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 3:
            start = time.perf_counter()
            self.step()
            times.append(time.perf_counter() - start)
        return {"times": times}


class OnnxRuntime(Library):
    def prepare(self):
        import onnxruntime
        self.package = onnxruntime

    def create(self):
        options = self.package.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        self.session = self.package.InferenceSession(self.model, options, providers=["CPUExecutionProvider"])
        self.names = [o.name for o in self.session.get_outputs()]

    def step(self):
        return self.session.run(None, self.feeds)

    def once(self):
        return dict(zip(self.names, self.step()))


class OpenVino(Library):
    precision = "f32"

    def prepare(self):
        import openvino
        self.package = openvino

    def create(self):
        core = self.package.Core()
        compiled = core.compile_model(self.model, "CPU", {
            "INFERENCE_PRECISION_HINT": self.precision, "INFERENCE_NUM_THREADS": self.threads, "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY", "ENABLE_CPU_PINNING": False})
        self.request = compiled.create_infer_request()

    def step(self):
        return self.request.infer(self.feeds, share_inputs=True, share_outputs=True)

    def once(self):
        return {port.get_any_name(): value.copy() for port, value in self.step().items()}


class OpenVinoBf16(OpenVino):
    precision = "bf16"


class Torch(Library):
    def prepare(self):
        import torch
        self.package = torch

    def create(self):
        self.package.set_num_threads(self.threads)
        program = self.package.export.load(os.path.join(os.path.dirname(self.model), "model.pt2"))
        self.module = program.module()
        self.tensors = {name: self.package.from_numpy(x) for name, x in self.feeds.items()}

    def step(self):
        with self.package.inference_mode():
            return self.module(**self.tensors)

    def once(self):
        return {name: x.numpy() for name, x in dict(self.step()).items()}


KINDS = {"tenon": Tenon, "onnxruntime": OnnxRuntime, "openvino-f32": OpenVino, "openvino-bf16": OpenVinoBf16, "torch": Torch}


def main():
    kind, model, inputs, threads, *pages = sys.argv[1:]
    worker = KINDS[kind](model, inputs, int(threads), *(pages or ["map"]))
    for line in sys.stdin:
        name, *arguments = line.split()
        answer = {"load": lambda: worker.load(), "outputs": lambda: worker.outputs(arguments[0]),
                  "run": lambda: worker.run(float(arguments[0]))}[name]()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
