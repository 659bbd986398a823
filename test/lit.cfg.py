# Configuration of the lit tests; lit.site.cfg.py in the build folder sets the
# paths and loads this.

import os

import lit.formats

config.name = "Tenon"
config.test_format = lit.formats.ShTest()
config.suffixes = [".tn", ".tnk", ".test"]
config.excludes = ["models", "unit", "runtime", "kernels", "fuzz", "lint"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.tenon_build_dir, "test")

# A feature for each program that this build has.
for tool in ("tenon", "tenon-opt", "tenon-run", "tenon-reduce"):
    if os.path.exists(os.path.join(config.tenon_tools_dir, tool)):
        config.available_features.add(tool)

# What tests of the CUDA target need: NVRTC, and the emulator in place of a GPU.
if config.tenon_nvrtc:
    config.available_features.add("nvrtc")
if os.path.exists(os.path.join(config.tenon_tools_dir, "libtenon_emulator.so")):
    config.available_features.add("emulator")

# A library with a sanitizer inside cannot be loaded by a program without one.
if config.tenon_sanitize:
    config.available_features.add("sanitized")

# Larger models, where they are there.
shared = os.path.join(config.tenon_source_dir, "..", "shared")
if os.path.isdir(os.path.join(shared, "models")):
    config.available_features.add("shared")
    config.substitutions.append(("%shared", os.path.realpath(shared)))

config.substitutions.append(("%models", os.path.join(config.test_source_root, "models")))
config.substitutions.append(("%python", config.tenon_python))

config.environment["PATH"] = os.pathsep.join(
    [config.tenon_tools_dir, config.llvm_tools_dir, config.environment.get("PATH", "")]
)
