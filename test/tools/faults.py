#!/usr/bin/env python3
"""Writes inputs with token ids out of range, made from right ones: faults.py INPUTS.npz"""
import sys

import numpy as np

right = dict(np.load(sys.argv[1]))
for name, places in {"high": {(1, 5): 1 << 40, (1, 9): -(1 << 40)}, "low": {(0, 7): -513, (1, 0): 512}}.items():
    wrong = {k: v.copy() for k, v in right.items()}
    for place, value in places.items():
        wrong["input_ids"][place] = value
    np.savez(f"{name}.npz", **wrong)
