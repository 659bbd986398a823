"""ONNX's backend interface, so that `onnx.backend.test` runs against Tenon:

    import onnx.backend.test
    import tenon.backend
    tests = onnx.backend.test.BackendTest(tenon.backend, __name__)
    globals().update(tests.enable_report().test_cases)

Each model is compiled to a shared library, which needs the program `tenon` (see
library.find_program) and a C++ compiler.
"""
import pathlib
import tempfile

import numpy as np
import onnx
import onnx.numpy_helper
from onnx.backend.base import Backend, BackendRep

from . import library


def is_tensor(value):
    return value.type.HasField("tensor_type") and value.type.tensor_type.elem_type != onnx.TensorProto.STRING


def not_supposed(message):
    """Tests count this as left out, not as failed."""
    from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt
    return BackendIsNotSupposedToImplementIt(message)


def with_parameters(model, inputs):
    """The model with integer lists among `inputs` (a shape, axes ...) as initializers, as
    models have them; and the other inputs."""
    fixed, rest = onnx.ModelProto(), {}
    fixed.CopyFrom(model)
    del fixed.graph.input[:]
    for value in model.graph.input:
        array = inputs.get(value.name)
        if array is not None and array.ndim <= 1 and (array.dtype.kind in "iub" or value.name in ("roi", "scales")):
            fixed.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
            continue
        fixed.graph.input.append(value)
        if array is not None:
            rest[value.name] = array
    return fixed, rest


class TenonRep(BackendRep):
    """A model, compiled when it is prepared or, where that needs the values of its integer
    inputs, when it is run."""

    def __init__(self, model, flags):
        self.model, self.flags = model, flags
        self.folder = tempfile.TemporaryDirectory(prefix="tenon-")
        self.library, self.problem = None, None
        try:
            self.library = self.compile(model)
        except library.CompileError as error:
            self.problem = error

    def compile(self, model):
        path = pathlib.Path(self.folder.name) / "model.onnx"
        onnx.save(model, path)
        return library.compile(path, path.with_name("libmodel.so"), *self.flags)

    def run(self, inputs, **kwargs):
        if not isinstance(inputs, dict):
            names = [v.name for v in self.model.graph.input]
            inputs = dict(zip(names, inputs))
        inputs = {name: np.asarray(value) for name, value in inputs.items()}
        call = self.library
        if not call:
            fixed, rest = with_parameters(self.model, inputs)
            if len(rest) == len(inputs):
                raise self.problem
            call, inputs = self.compile(fixed), rest
        outputs = call(inputs)
        return tuple(outputs[v.name] for v in self.model.graph.output)


class TenonBackend(Backend):
    @classmethod
    def is_compatible(cls, model, device="CPU", **kwargs):
        return all(map(is_tensor, (*model.graph.input, *model.graph.output)))

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        super().prepare(model, device, **kwargs)
        if not cls.is_compatible(model, device):
            raise not_supposed("strings, sequences and optionals are not supported")
        flags = ["--target=cuda"] if device.startswith("CUDA") else []
        return TenonRep(model, [*flags, *kwargs.get("flags", ())])

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs):
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **kwargs):
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        arrays = [np.asarray(a) for a in inputs]
        names = [name for name in node.input if name]
        graph = onnx.helper.make_graph(
            [node], "node",
            [onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
             for n, a in zip(names, arrays)],
            [onnx.helper.make_empty_tensor_value_info(n) for n in node.output if n])
        opset = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
        return cls.prepare(onnx.shape_inference.infer_shapes(model), device).run(arrays)

    @classmethod
    def supports_device(cls, device):
        return device in ("CPU", "CUDA")


is_compatible = TenonBackend.is_compatible
prepare = TenonBackend.prepare
run = TenonBackend.run_model
run_model = TenonBackend.run_model
run_node = TenonBackend.run_node
supports_device = TenonBackend.supports_device
