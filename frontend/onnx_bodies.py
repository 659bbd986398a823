#!/usr/bin/env python3
"""Writes the bodies that ONNX's own schemas give for ops, as C++ bytes.

usage: onnx_bodies.py ONNX_OPS_DEF OUT

For every op of ONNX's own domain that OnnxOps.def has no line for and whose schema
has a body that does not depend on the node: a function of that name, with the
defaults of its attributes, and the first version of the operator set that means it
as its `overload`. OUT holds the bytes of a ModelProto with these functions, as a
list of numbers.
"""
import pathlib
import re
import sys

import onnx
from onnx import defs


def body_of(schema):
    function = onnx.FunctionProto()
    function.CopyFrom(schema.function_body)
    function.overload = str(schema.since_version)
    given = {a.name for a in function.attribute_proto}
    for name, attribute in sorted(schema.attributes.items()):
        if name in given or name not in function.attribute:
            continue
        if attribute.default_value.type != onnx.AttributeProto.UNDEFINED:
            default = function.attribute_proto.add()
            default.CopyFrom(attribute.default_value)
            default.name = name
    return function


def main():
    table, out = map(pathlib.Path, sys.argv[1:])
    known = set(re.findall(r"ONNX_(?:PLAIN|IMPORT)\(Ai, (\w+)", table.read_text()))
    schemas = [s for s in defs.get_all_schemas_with_history()
               if s.domain == "" and s.name not in known and s.has_function and not s.deprecated]
    model = onnx.ModelProto(ir_version=onnx.IR_VERSION)
    for schema in sorted(schemas, key=lambda s: (s.name, s.since_version)):
        model.functions.append(body_of(schema))
    data = model.SerializeToString(deterministic=True)
    lines = [", ".join(map(str, data[i:i + 20])) for i in range(0, len(data), 20)]
    out.write_text(",\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
