#!/usr/bin/env python3
"""Runs an artifact and compares with a model's outputs.npz: answers.py FOLDER ARTIFACT [FLAGS...]"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
import numpy as np
from models import differences, run_artifact

folder, artifact, *flags = sys.argv[1:]
got = run_artifact(artifact, f"{folder}/inputs.npz", "answers.npz", *flags)
wrong, largest = differences(dict(np.load(f"{folder}/outputs.npz")), got, 1e-4, 1e-4)
sys.exit("\n".join(wrong) or 0)
