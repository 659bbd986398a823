#!/usr/bin/env python3
"""Arrays as raw files, and back: raw_files.py split FILE.npz | raw_files.py compare FILE.npz NAME RAW"""
import sys

import numpy as np

command, path, *rest = sys.argv[1:]
arrays = np.load(path)
if command == "split":
    for name in arrays:
        arrays[name].tofile(f"{name}.raw")
else:
    name, raw = rest
    np.testing.assert_allclose(np.fromfile(raw, np.float32).reshape(arrays[name].shape), arrays[name], 1e-4, 1e-4)
