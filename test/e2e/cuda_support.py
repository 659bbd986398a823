"""Running artifacts of the CUDA target on the emulator; shared by its end-to-end tests."""
import functools
import json
import os
import resource
import subprocess
import time
from pathlib import Path

import numpy as np
from models import compile_model

# Root mean square of the error over that of the reference: f16 rounds by 3e-4 and bf16 by 2e-3 (rms), and a value has
# some tens of roundings behind it.
LIMITS = {"f16": 5e-3, "bf16": 2e-2}


class Skipped(Exception):
    """There is nothing to test on this machine."""


def skips(main):
    """A test's main function, which says so where it has nothing to test."""
    @functools.wraps(main)
    def run():
        try:
            main()
        except Skipped as e:
            print(f"skipped: {e}")
    return run


def emulator_beside(tenon):
    library = Path(tenon).resolve().parent / "libtenon_emulator.so"
    if not library.exists():
        raise Skipped("no emulator in this build")
    return library


def environment(tenon):
    """That of an artifact which is to find the emulator."""
    return os.environ | {"TENON_CUDA_DRIVER": str(emulator_beside(tenon))}


def run_emulated(tenon, artifact, feeds, scratch, *flags, arch=""):
    """The outputs, and the seconds it took: of the clock, of all processors. Any finding of the emulator is an error."""
    scratch = Path(scratch)
    given, report = scratch / "given.npz", scratch / "report.json"
    if isinstance(feeds, Path):
        given = feeds
    else:
        np.savez(given, **feeds)
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [str(artifact), "--run", "--device=emulated", f"--inputs={given}", f"--outputs={scratch / 'got.npz'}",
         f"--emulator-report={report}", *([f"--emulated-arch={arch}"] if arch else []), *flags],
        capture_output=True, text=True, env=environment(tenon))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = time.perf_counter() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode:
        raise RuntimeError(f"{artifact} --run: exit {done.returncode}\n{done.stderr}")
    if finding := json.loads(report.read_text())["finding"]:
        raise RuntimeError(f"{artifact} --run: the emulator found {finding}")
    return dict(np.load(scratch / "got.npz")), seconds


def compile_cuda(tenon, model, artifact, *flags):
    """As `compile_model`, for --target=cuda; Skipped where there is no NVRTC."""
    try:
        return compile_model(tenon, model, artifact, "--target=cuda", *flags)
    except RuntimeError as e:
        if "no NVRTC found" in str(e):
            raise Skipped("no NVRTC on this machine") from e
        raise


def driver_folder(tenon, scratch):
    """A folder in which the emulator is called as the driver is: with it in $LD_LIBRARY_PATH, --device=cuda opens it and
    an artifact runs as on a GPU, with streams and graphs."""
    folder = Path(scratch) / "driver"
    folder.mkdir(exist_ok=True)
    link = folder / "libcuda.so.1"
    if not link.exists():
        link.symlink_to(emulator_beside(tenon))
    return folder
