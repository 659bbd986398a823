#!/usr/bin/env python3
"""What can go wrong with a GPU: cuda_errors.py TENON API.def [NAME...]

An artifact is run without a driver, with drivers that are too old or broken (small libraries made here), on GPUs that
its code is not for, with too little memory, with damaged code and with kernels that fail in the middle. Each time it
must end soon, with one error that says what is wrong, and leave the file that was there before as it was.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from cuda_support import compile_cuda, driver_folder, emulator_beside, environment, skips
from models import ROOT, Report, compile_model

SECONDS = 120
MODEL = ROOT / "test/models/tiny/bert-tiny-ts"
CASES = {}


def case(function):
    """Registers a function that gives the artifact, flags, environment and what the error mentions."""
    CASES[function.__name__] = function
    return function


class Setting:
    def __init__(self, tenon, api, scratch):
        self.tenon, self.api, self.scratch = tenon, Path(api).read_text(), Path(scratch)
        self.emulator = environment(tenon)
        self.gpu = os.environ | {"LD_LIBRARY_PATH": str(driver_folder(tenon, scratch))}
        self.artifact = self.compile("sm_80")

    def compile(self, arch, target="cuda"):
        out = self.scratch / f"{target}-{arch}"
        if not out.exists():
            flags = ["--precision=f16", f"--arch={arch}"]
            if target == "cuda":
                compile_cuda(self.tenon, MODEL / "model.onnx", out, *flags)
            else:
                compile_model(self.tenon, MODEL / "model.onnx", out)
        return out

    def library(self, name, source, *flags):
        """A library compiled from C; its folder."""
        folder = self.scratch / f"driver-{name}"
        folder.mkdir(exist_ok=True)
        (folder / "driver.c").write_text(source)
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", folder / "libcuda.so.1", folder / "driver.c",
                        *flags], check=True)
        return folder

    def driver(self, name, bodies, only=None):
        """A driver whose functions give success, but for `bodies`; the environment that finds it."""
        symbols = re.findall(r"TN_CUDA\(\w+,\s*(\w+),", self.api)
        functions = {s: f"int {s}() {{ return 0; }}" for s in symbols if only is None or s in only}
        functions["cuGetErrorName"] = 'int cuGetErrorName(int e, const char **t) { *t = "CUDA_ERROR_TEST"; return 0; }'
        functions["cuGetErrorString"] = 'int cuGetErrorString(int e, const char **t) { *t = "as planted"; return 0; }'
        functions |= bodies
        return os.environ | {"LD_LIBRARY_PATH": str(self.library(name, "\n".join(functions.values())))}

    def shim(self, name, source):
        """The emulator with some functions of its own; the environment that makes --device=emulated use it."""
        real = driver_folder(self.tenon, self.scratch)
        folder = self.library(name, "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stddef.h>\n" + source,
                              "-Wl,--no-as-needed", f"-L{real}", "-l:libcuda.so.1", f"-Wl,-rpath,{emulator_beside(self.tenon).parent}:{real}")
        shim = folder / "shim.so"
        (folder / "libcuda.so.1").rename(shim)
        return os.environ | {"TENON_CUDA_DRIVER": str(shim)}


VERSION = "int cuDriverGetVersion(int *v) {{ *v = {}; return 0; }}"


@case
def no_driver(s):
    if "libcuda.so.1" in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout:
        return None
    return s.artifact, ["--device=cuda"], os.environ, "no CUDA driver: libcuda.so.1"


@case
def no_library(s):
    folder = s.scratch / "driver-text"
    folder.mkdir(exist_ok=True)
    (folder / "libcuda.so.1").write_text("this is no library, though it is where one should be")
    return s.artifact, ["--device=cuda"], os.environ | {"LD_LIBRARY_PATH": str(folder)}, "no CUDA driver: "


@case
def no_emulator(s):
    return s.artifact, ["--device=emulated"], os.environ | {"TENON_CUDA_DRIVER": "/nowhere/emulator.so"}, "/nowhere/emulator.so"


@case
def driver_without_functions(s):
    return s.artifact, [], s.driver("poor", {}, only=["cuInit"]), "the driver is too old, CUDA 12.1 is needed"


@case
def driver_of_an_old_version(s):
    env = s.driver("old", {"cuDriverGetVersion": VERSION.format(11040)})
    return s.artifact, [], env, "the driver is for CUDA 11.4, 12.1 is needed"


@case
def driver_without_a_gpu(s):
    return s.artifact, [], s.driver("idle", {"cuInit": "int cuInit(unsigned f) { return 100; }"}), "cannot be initialised: as planted"


@case
def gpu_of_another_number(s):
    return s.artifact, ["--device=emulated", "--gpu=7"], s.emulator, "there is no GPU number 7"


@case
def gpu_that_is_older(s):
    return s.artifact, ["--device=emulated", "--emulated-arch=sm_75"], s.emulator, "is an sm_75 and this artifact has code for sm_80"


@case
def gpu_of_another_kind(s):
    return s.compile("sm_90a"), ["--device=emulated", "--emulated-arch=sm_100a"], s.emulator, "compile it with --arch=sm_100"


@case
def gpu_that_does_not_exist(s):
    return s.artifact, ["--device=emulated", "--emulated-arch=sm_33"], s.emulator, "sm_33"


@case
def artifact_for_processors(s):
    return s.compile("none", "cpu"), ["--device=cuda"], s.gpu, "no code for GPUs"


@case
def limit_too_small(s):
    return s.artifact, ["--device=emulated", "--device-memory=1K"], s.emulator, "--device-memory allows"


@case
def gpu_too_small(s):
    return s.artifact, ["--device=emulated"], s.emulator | {"TENON_EMULATED_MEMORY": "64K"}, "are needed on"


@case
def memory_gone_in_the_middle(s):
    env = s.shim("full", """
int cuMemAlloc_v2(unsigned long long *p, size_t n) {
  static int calls;
  int (*real)(unsigned long long *, size_t) = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
  return ++calls > 4 ? 2 : real(p, n);
}""")
    return s.artifact, ["--device=emulated"], env, "are needed on"


@case
def code_with_a_wrong_byte(s):
    broken = s.scratch / "broken"
    data = bytearray(s.artifact.read_bytes())
    data[data.rindex(b"TENONGPU") + 5000] ^= 0x40
    broken.write_bytes(data)
    broken.chmod(0o755)
    return broken, ["--device=emulated"], s.emulator, "damaged GPU code: its checksum differs"


@case
def code_that_the_driver_refuses(s):
    env = s.shim("refusing", """
#include <string.h>
int cuModuleLoadDataEx(void **m, const void *image, unsigned n, int *options, void **values) {
  strcpy(values[0], "ptxas fatal: as planted");
  return 200;
}""")
    return s.artifact, ["--device=emulated"], env, "cannot be loaded: ptxas fatal: as planted"


@case
def code_without_a_kernel(s):
    env = s.shim("forgetful", "int cuModuleGetFunction(void **f, void *m, const char *name) { return 500; }")
    return s.artifact, ["--device=emulated"], env, "no kernel tn_unit_0"


FAILING = """
static int failed;
int cuStreamSynchronize(void *stream) {
  int (*real)(void *) = dlsym(RTLD_NEXT, "cuStreamSynchronize");
  return failed ? 700 : real(stream);
}
int cuLaunchKernel(void *f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned h, void *s,
                   void **p, void **x) {
  static int calls;
  failed |= ++calls == 5;
  int (*real)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **) =
      dlsym(RTLD_NEXT, "cuLaunchKernel");
  return failed ? 0 : real(f, a, b, c, d, e, g, h, s, p, x);
}"""


@case
def kernel_that_fails(s):
    return s.artifact, ["--device=emulated"], s.shim("failing", FAILING), "of node '"


@case
def kernel_that_hangs(s):
    return s.artifact, ["--device=emulated"], s.emulator | {"TENON_EMULATOR_MAX_INSTRUCTIONS": "50"}, "of node '"


@case
def kernel_that_hangs_in_a_graph(s):
    env = s.gpu | {"TENON_EMULATOR_MAX_INSTRUCTIONS": "50", "TENON_EMULATOR_STREAMS": "late"}
    return s.artifact, ["--device=cuda"], env, "a kernel failed; --stepwise tells which"


@case
def kernel_that_hangs_when_asked_which(s):
    env = s.gpu | {"TENON_EMULATOR_MAX_INSTRUCTIONS": "50", "TENON_EMULATOR_STREAMS": "late"}
    return s.artifact, ["--device=cuda", "--stepwise"], env, "of node '"


@case
def kernel_that_cannot_be_launched(s):
    env = s.shim("refusing-launches", "int cuLaunchKernel() { return 701; }")
    return s.artifact, ["--device=emulated"], env, "kernel '"


@case
def copy_that_fails(s):
    env = s.shim("mute", "int cuMemcpyDtoHAsync_v2() { return 700; }")
    return s.artifact, ["--device=emulated"], env, "copying"


@case
def token_outside_the_vocabulary(s):
    return s.artifact, ["--device=emulated"], s.emulator, "is out of range"


def check(setting, name):
    made = CASES[name](setting)
    if made is None:
        return "not here"
    artifact, flags, env, mention = made
    inputs, out = MODEL / "inputs.npz", setting.scratch / "out.npz"
    if name == "token_outside_the_vocabulary":
        arrays = dict(np.load(inputs))
        arrays["input_ids"][0, 0] = 1 << 40
        inputs = setting.scratch / "wrong.npz"
        np.savez(inputs, **arrays)
    out.write_text("what was here before")
    try:
        done = subprocess.run([artifact, "--run", f"--inputs={inputs}", f"--outputs={out}", *flags], capture_output=True,
                              text=True, env=env, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"not done after {SECONDS} s"
    if done.returncode != 1:
        return f"ended with {done.returncode}, expected an error; {done.stderr}"
    if done.stderr.count("error: ") != 1 or mention not in done.stderr:
        return f"expected one error that mentions {mention!r}, found: {done.stderr}"
    if out.read_text() != "what was here before" or len(list(setting.scratch.glob("out.npz*"))) != 1:
        return "the output was touched"
    return None


@skips
def main():
    tenon, api, names, report = str(Path(sys.argv[1]).resolve()), sys.argv[2], sys.argv[3:] or list(CASES), Report()
    with tempfile.TemporaryDirectory() as scratch:
        emulator_beside(tenon)
        setting = Setting(tenon, api, scratch)
        for name in names:
            problem = check(setting, name)
            if problem == "not here":
                print(f"skip {name}", flush=True)
            else:
                report.add(name, [problem] if problem else [])
    report.end()


if __name__ == "__main__":
    main()
