#!/usr/bin/env python3
"""Whole models on the CUDA target, executed by the emulator:
cuda_models.py TENON [--brief] [--precision=LIST] [--arch=ARCH] [FOLDER...]

As tiny_models.py, for each precision of the list (f32, f16, bf16); --brief takes one model of each family, such that each
exporter's form of each kind of model is there. f32 must be as near to the references as the CPU
target (1e-4 absolute and relative). Halves are held to the root mean square of the error over that of the reference:
5e-3 for f16, 2e-2 for bf16, and at most half more than ONNX Runtime's error of the same model with each value stored in
that type (half_reference.py). Models with caches are also fed by themselves, a prefill and then token by token, the
caches as inputs and outputs, against ONNX Runtime in f32.

Any finding of the emulator's checkers fails a run. Without NVRTC or emulator there is nothing to test, which is said.
"""
import argparse
import tempfile
from pathlib import Path

import numpy as np
import onnx
from cuda_support import LIMITS, compile_cuda, run_emulated, skips
from half_reference import reference_error, relative_errors, run_onnx
from models import ROOT, Report, differences

TOLERANCE = 1e-4
MORE = 1.5  # than ONNX Runtime's error, at most
PREFILL, DECODE = 9, 3
BRIEF = ["bert-tiny-ts14", "distilbert-tiny-dynamo", "gemma2-tiny-kv-ts", "gemma3-tiny-kv-dynamo", "gpt2-tiny-ts", "llama-tiny-kv-ts",
         "mistral-tiny-kv-dynamo23", "phi-tiny-kv-ts", "phi3-tiny-kv-dynamo", "qwen2-micro-ts-sdpa", "qwen3-tiny-dynamo", "t5-tiny-ts",
         "t5-tiny-decoder-past-dynamo", "vit-tiny-ts", "whisper-tiny-dynamo", "whisper-tiny-decoder-past-ts"]


def dims_of(value):
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def is_window(given, name):
    """Whether a cache has a fixed length from the start, as a case without earlier tokens shows. What ONNX Runtime leaves
    in places that no token has come to is not defined, so there is nothing to compare with."""
    return given["attention_mask"].shape[1] == given["input_ids"].shape[1] and given[name].shape[2] > 0


def feed_tokens(model, tokens, pasts):
    """Inputs for `tokens`, int64 [batch, n], behind the caches `pasts`."""
    length = next(iter(pasts.values())).shape[2]
    batch, count = tokens.shape
    feeds = {"input_ids": tokens, "attention_mask": np.ones((batch, length + count), np.int64),
             "position_ids": np.tile(np.arange(length, length + count), (batch, 1))}
    names = {i.name for i in model.graph.input}
    return {k: v for k, v in feeds.items() if k in names} | pasts


def with_exact_rows(path, scratch):
    """The model, with accuracy_level 1 where it has 4: that allows rows in 8 bits, which ONNX Runtime takes and GPUs do not."""
    model = onnx.load(path)
    levels = [a for n in model.graph.node for a in n.attribute if a.name == "accuracy_level" and a.i == 4]
    if not levels:
        return path
    for level in levels:
        level.i = 1
    exact = Path(scratch) / "exact.onnx"
    onnx.save(model, exact)
    return exact


def check_decode(path, given, run, precision):
    """A prefill, then token by token; each with the caches that it left itself. `run` runs the artifact, `given` are
    inputs of the model."""
    model, problems, worst = onnx.load(path), [], 0.0
    caches = [i.name for i in model.graph.input if i.name.startswith("past_key_values")]
    if not caches or any(".encoder." in c for c in caches):  # those begin with what an encoder gives
        return [], 0.0
    if any(is_window(given, c) for c in caches):
        return [], 0.0
    vocabulary = next(dims_of(o)[-1] for o in model.graph.output if o.name == "logits")
    tokens = np.random.default_rng(5).integers(0, vocabulary, (2, PREFILL + DECODE))
    empty = {c: np.zeros((2, given[c].shape[1], 0, given[c].shape[3]), np.float32) for c in caches}
    ends = [0, PREFILL, *range(PREFILL + 1, PREFILL + DECODE + 1)]
    wants, gots = empty, empty
    for begin, end in zip(ends, ends[1:]):
        want = run_onnx(str(path), feed_tokens(model, tokens[:, begin:end], wants))
        got = run(feed_tokens(model, tokens[:, begin:end], gots))
        wrong, largest = compare(want, got, precision)
        problems += [f"tokens {begin} to {end}: {w}" for w in wrong]
        worst = max(worst, largest)
        wants, gots = ({c: out[c.replace("past_key_values", "present")] for c in caches}
                       for out in (want, got))
    return problems, worst


def compare(want, got, precision, limit=None):
    """Problems, and the largest difference or relative error."""
    if precision == "f32":
        return differences(want, got, TOLERANCE, TOLERANCE)
    limit = limit or LIMITS[precision]
    errors = relative_errors(want, got)
    wrong = [f"{key}: relative rms error {error:.2e}, at most {limit:.2e} is allowed"
             for key, error in errors.items() if not error <= limit]
    return wrong, max(errors.values(), default=0.0)


def check(options, folder, precision, scratch):
    model, artifact = folder / "model.onnx", Path(scratch) / f"{folder.name}-{precision}"
    compile_cuda(options.tenon, model, artifact, f"--arch={options.arch}", f"--precision={precision}")

    def run(feeds):
        return run_emulated(options.tenon, artifact, feeds, scratch, arch=options.arch)[0]

    problems, worst, reference, exact = [], 0.0, "", with_exact_rows(model, scratch)
    for case in ("", "2"):
        inputs, outputs = folder / f"inputs{case}.npz", folder / f"outputs{case}.npz"
        if not inputs.exists():
            continue
        feeds, limit = dict(np.load(inputs)), None
        want = dict(np.load(outputs)) if exact == model else run_onnx(str(exact), feeds)
        if precision != "f32":
            ours, other = reference_error(exact, feeds, want, precision)
            if ours == ours:  # else it cannot run the model
                reference = f", ONNX Runtime's, stored: {ours:.2e}" + (f", converted: {other:.2e}" if other == other else "")
                limit = min(LIMITS[precision], MORE * ours)
        wrong, largest = compare(want, run(inputs), precision, limit)
        problems += [f"case {case or 1}: {w}" for w in wrong]
        worst = max(worst, largest)
    wrong, largest = check_decode(exact, dict(np.load(folder / "inputs.npz")), run, precision)
    artifact.unlink()
    return problems + wrong, max(worst, largest), reference


@skips
def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tenon", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--brief", action="store_true", help="one model of each family")
    parser.add_argument("--precision", default="f32,f16,bf16")
    parser.add_argument("--arch", default="sm_80", help="the GPU that the emulator plays")
    parser.add_argument("folders", nargs="*", type=Path)
    options, tiny, report = parser.parse_intermixed_args(), ROOT / "test/models/tiny", Report()
    folders = options.folders or ([tiny / name for name in BRIEF] if options.brief else sorted(tiny.iterdir()))
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            for precision in options.precision.split(","):
                try:
                    problems, worst, reference = check(options, folder, precision, scratch)
                except RuntimeError as e:
                    problems, worst, reference = [e], float("nan"), ""
                report.add(f"{folder.name:24} {precision:5} error {worst:.2e}{reference}", problems)
    report.end()


if __name__ == "__main__":
    main()
