#!/usr/bin/env python3
"""Makes an ONNX file of a test: from_text.py TEST OUT.onnx

The lines of TEST that do not begin with '#' are the model in ONNX's own text form.
"""
import sys

import onnx

with open(sys.argv[1]) as test:
    text = "".join(line for line in test if not line.startswith("#"))
onnx.save(onnx.parser.parse_model(text), sys.argv[2])
