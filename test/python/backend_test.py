#!/usr/bin/env python3
"""A few of ONNX's backend tests through python/tenon/backend.py.

usage: backend_test.py TENON
"""
import os
import pathlib
import sys
import unittest
import warnings

os.environ["TENON"] = sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import onnx.backend.test  # noqa: E402

import tenon.backend  # noqa: E402

# Two inputs, an integer parameter, several outputs, types that are only stored, of a byte and less.
NAMES = ("test_matmul_2d_cpu", "test_reshape_negative_dim_cpu", "test_split_equal_parts_1d_opset18_cpu",
         "test_cast_FLOAT_to_FLOAT8E4M3FN_cpu", "test_cast_FLOAT_to_INT4_cpu", "test_cast_UINT2_to_UINT8_cpu",
         "test_cast_FLOAT4E2M1_to_FLOAT_cpu", "test_attention_4d_causal_cpu")


def main():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = onnx.backend.test.BackendTest(tenon.backend, __name__).test_cases
    suite = unittest.TestSuite()
    for case in cases.values():
        for name in NAMES:
            if hasattr(case, name):
                suite.addTest(case(name))
    found = suite.countTestCases()
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if found != len(NAMES) or result.skipped:
        print(f"{found} of {len(NAMES)} tests found, {len(result.skipped)} left out", file=sys.stderr)
        return 1
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
