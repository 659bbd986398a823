#!/usr/bin/env python3
"""The cases of the ONNX backend tests that Tenon is held to, and those that it
is not, with the reason for each."""
import pathlib
import warnings

import numpy as np
import onnx
import onnx.numpy_helper

# Kinds whose models come with the package; `real` ones would be downloaded.
KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")

# Older operator sets are refused.
FIRST_OPSET = 7

SEQUENCE_OPS = {"ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement",
                "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert",
                "SequenceLength", "SequenceMap", "SplitToSequence"}
STRING_OPS = {"RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"}

# What generative and other transformers are made of; also run on GPUs.
TRANSFORMER = ("attention", "rms_norm", "layer_norm", "rotary", "gelu", "softmax", "swish", "swiglu",
               "tensorscatter", "matmul", "gemm", "quantize", "dequantize", "linear_attention",
               "causal_conv")

# What the backend tests allow is too tight for types whose every step rounds: the
# reference evaluator rounds once, at the end.
STEPWISE = {"bfloat16": 2**-6, "float16": 2**-9}

# What is expected was computed in f32, and carries noise where it should be 0.
NOISE = {"DFT": 1e-6, "STFT": 1e-6}

# Inputs that models have as initializers although they are lists of floats.
FLOAT_PARAMETERS = ("roi", "scales")


def ops_of(graph):
    """(domain, op) of all nodes, those of subgraphs too."""
    for node in graph.node:
        yield node.domain if node.domain != "ai.onnx" else "", node.op_type
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from ops_of(inner)


def opset_of(model):
    return max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)


def as_array(value):
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


class Case:
    """One data set of one test. `excluded` says why it isn't run, else ''."""

    def __init__(self, test, number, model, inputs, outputs):
        self.name = test.name if number == 0 else f"{test.name}.{number}"
        self.kind = test.kind
        self.model = model
        self.rtol, self.atol = test.rtol, test.atol
        self.inputs = dict(zip((v.name for v in model.graph.input), map(as_array, inputs)))
        self.outputs = dict(zip((v.name for v in model.graph.output), map(as_array, outputs)))
        self.ops = sorted({op for _, op in ops_of(model.graph)})
        self.opset = opset_of(model)
        self.excluded = self.reason()
        if not self.excluded:
            self.atol = max([self.atol, *(NOISE.get(op, 0) for op in self.ops)])
            self.rtol = max([self.rtol, *(STEPWISE.get(np.asarray(a).dtype.name, 0) for a in self.outputs.values())])
        self.status, self.message, self.fixed = "", "", False

    def reason(self):
        domains = {domain for domain, _ in ops_of(self.model.graph)}
        for part, text in (("training", "training"), ("preview", "preview operator"), ("ml", "ai.onnx.ml")):
            if any(part in domain.split(".") for domain in domains):
                return text
        types = [v.type for v in (*self.model.graph.input, *self.model.graph.output)]
        if SEQUENCE_OPS & set(self.ops) or not all(t.HasField("tensor_type") for t in types):
            return "sequence or optional"
        if STRING_OPS & set(self.ops) or any(t.tensor_type.elem_type == onnx.TensorProto.STRING for t in types):
            return "strings"
        if "ImageDecoder" in self.ops:
            return "image decoding"
        if self.opset < FIRST_OPSET:
            return f"operator set before {FIRST_OPSET}"
        return ""

    @property
    def element_types(self):
        """ONNX names of the element types of inputs and outputs."""
        values = (*self.model.graph.input, *self.model.graph.output)
        return {onnx.TensorProto.DataType.Name(v.type.tensor_type.elem_type).lower() for v in values}

    @property
    def transformer(self):
        return self.name.removeprefix("test_").startswith(TRANSFORMER)

    def is_parameter(self, name):
        """Whether models have the input `name` as an initializer."""
        array = np.asarray(self.inputs[name])
        return array.ndim == 0 or array.ndim == 1 and (array.dtype.kind in "iub" or name in FLOAT_PARAMETERS)

    @property
    def has_parameters(self):
        return any(map(self.is_parameter, self.inputs))

    def write(self, folder, fixed):
        """The files of the case; its line for the driver's list."""
        model, inputs = self.model, dict(self.inputs)
        if fixed:
            model = onnx.ModelProto()
            model.CopyFrom(self.model)
            for value in list(model.graph.input):
                if self.is_parameter(value.name):
                    array = np.asarray(inputs.pop(value.name))
                    model.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
                    model.graph.input.remove(value)
        base = folder / self.name
        base.mkdir(exist_ok=True)
        onnx.save(model, base / "model.onnx")
        return "\t".join([str(base / "model.onnx"), save_tensors(base / "inputs.onnx", inputs),
                          save_tensors(base / "expected.onnx", self.outputs),
                          repr(float(self.rtol)), repr(float(self.atol))])


def save_tensors(path, arrays):
    """A graph that gives `arrays`; '-' if there are none."""
    if not arrays:
        return "-"
    tensors = [onnx.numpy_helper.from_array(np.asarray(a), f"t{i}") for i, a in enumerate(arrays.values())]
    infos = [onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in tensors]
    graph = onnx.helper.make_graph([], "tensors", [], infos, tensors)
    onnx.save(onnx.helper.make_model(graph, ir_version=10,
                                     opset_imports=[onnx.helper.make_opsetid("", 21)]), path)
    return str(path)


def load_value(path, info):
    text = pathlib.Path(path).read_bytes()
    if not info.type.HasField("tensor_type"):
        return None
    return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(text))


def data_sets(test, model):
    """The tests that are folders have their data in files."""
    if test.model is not None:
        return test.data_sets
    sets = []
    for folder in sorted(pathlib.Path(test.model_dir).glob("test_data_set_*")):
        sets.append([[load_value(folder / f"{kind}_{i}.pb", info) for i, info in enumerate(infos)
                      if (folder / f"{kind}_{i}.pb").exists()]
                     for kind, infos in (("input", model.graph.input), ("output", model.graph.output))])
    return sets


def collect(kinds=KINDS):
    """All cases, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests
        tests = [test for kind in kinds for test in load_model_tests(kind=kind)]
    cases = {}
    for test in tests:
        model = test.model or onnx.load(pathlib.Path(test.model_dir) / "model.onnx")
        for number, (inputs, outputs) in enumerate(data_sets(test, model)):
            case = Case(test, number, model, inputs, outputs)
            cases[case.name] = case
    return [cases[name] for name in sorted(cases)]
