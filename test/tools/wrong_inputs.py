#!/usr/bin/env python3
"""Writes files of wrong inputs made from right ones: wrong_inputs.py INPUTS.npz"""
import sys

import numpy as np

right = dict(np.load(sys.argv[1]))
ids = right["input_ids"]
rest = {k: v for k, v in right.items() if k != "input_ids"}
np.savez("name.npz", ids=ids, **rest)
np.savez("missing.npz", **rest)
np.savez("dtype.npz", input_ids=ids.astype(np.int32), **rest)
np.savez("rank.npz", input_ids=ids[0], **rest)
np.savez("batch.npz", input_ids=np.concatenate([ids, ids]), **rest)
np.savez("long.npz", **{k: np.zeros((1, 33), v.dtype) for k, v in right.items()})
