#!/usr/bin/env python3
"""Models that people use, from the packages that ship them: real_models.py TENON

magika (what kind of file some bytes are), silero-vad (where there is speech) and rapidocr (where text is in a picture,
which way up, and what it says), each compiled once and compared with ONNX Runtime for several sizes.
"""
import importlib.util
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
from models import Report, compile_model, run_artifact

TOLERANCE = 1e-4  # outputs are probabilities and states near 1; two right implementations differ by 5e-6


def package(name):
    """Its folder; nothing of it is imported."""
    return Path(importlib.util.find_spec(name).origin).parent


def cases(rng):
    """(model, flags, inputs that are constants, [other inputs])"""
    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    rate = np.array(16000)
    yield (package("magika") / "models" / "standard_v3_3" / "model.onnx", [], {},
           [{"bytes": rng.integers(0, 257, (batch, 2048)).astype(np.int32)} for batch in (1, 5)])
    speech = package("silero_vad") / "data"
    chunks = [{"input": normal(batch, 576) / 10, "state": normal(2, batch, 128)} for batch in (1, 3)]
    yield speech / "silero_vad_op18_ifless.onnx", [], {}, [chunk | {"sr": rate} for chunk in chunks]
    # Its two branches, one for each rate, take inputs of different lengths.
    yield speech / "silero_vad.onnx", ["--dim=input_0=1", "--dim=input_1=576"], {"sr": rate}, chunks[:1]
    yield speech / "silero_vad_half.onnx", ["--dim=sequence=576"], {}, chunks
    text = package("rapidocr_onnxruntime") / "models"
    yield (text / "ch_PP-OCRv4_det_infer.onnx", [], {},
           [{"x": normal(1, 3, height, width)} for height, width in ((64, 96), (160, 320))])
    yield (text / "ch_ppocr_mobile_v2.0_cls_infer.onnx", [], {}, [{"x": normal(batch, 3, 48, 192)} for batch in (1, 2)])
    yield (text / "ch_PP-OCRv4_rec_infer.onnx", [], {},
           [{"x": normal(batch, 3, 48, width)} for batch, width in ((1, 320), (2, 100))])


def main():
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model, flags, fixed, feeds in cases(np.random.default_rng(3)):
            compile_model(sys.argv[1], model, folder / "artifact", *flags, *(f"--set={k}={v}" for k, v in fixed.items()))
            session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
            for inputs in feeds:
                np.savez(folder / "in.npz", **inputs)
                got = run_artifact(folder / "artifact", folder / "in.npz", folder / "out.npz")
                expected = session.run(None, inputs | fixed)
                problems, worst = [], 0.0
                for output, value in zip(session.get_outputs(), expected):
                    if got[output.name].shape != value.shape:
                        problems.append(f"{output.name}: {got[output.name].shape}, expected {value.shape}")
                        continue
                    worst = max(worst, float(np.abs(got[output.name] - value).max()))
                if not worst <= TOLERANCE:
                    problems.append(f"differs by {worst:.1e}")
                sizes = ", ".join("x".join(map(str, value.shape)) for value in inputs.values() if value.ndim)
                report.add(f"{model.name}, {sizes}: {worst:.1e}", problems)
    report.end()


if __name__ == "__main__":
    main()
