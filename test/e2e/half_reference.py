"""How far a model in halves is from the same in f32 when ONNX Runtime computes it; shared by tests of --precision.

Two kinds of halves, for a model in f32:

  stored     every weight and every value between two nodes is rounded to the half type, as a graph in halves says and
             as a GPU stores them; arithmetic within a node is f32
  converted  ONNX Runtime's own conversion to f16 (`onnxruntime.transformers.float16`) on its CPU provider, which rounds
             the weights, but computes most nodes in f32 and takes the roundings between such nodes away again
"""
import numpy as np
import onnx
import onnxruntime
from models import part
from onnx import TensorProto, helper

HALVES = {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}


def relative_errors(want, got):
    """For each reference key that is a tensor: the root mean square of the error over that of the reference."""
    errors = {}
    for key in want:
        if key.startswith(("margin(", "argmax(", "stats(")):
            continue
        w, g = want[key].astype(np.float64), part(key, got).astype(np.float64)
        if g.shape != w.shape:
            raise RuntimeError(f"{key}: shape {g.shape}, expected {w.shape}")
        scale = np.sqrt((w * w).mean()) if w.size else 0.0
        errors[key] = float(np.sqrt(((w - g) ** 2).mean()) / (scale or 1.0)) if w.size else 0.0
    return errors


def run_onnx(model, feeds, optimise=False):
    """The outputs by name; raises RuntimeError where ONNX Runtime cannot run the model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        given = model if isinstance(model, str) else model.SerializeToString()
        session = onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
        return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
    except Exception as e:  # its exceptions have no common base
        raise RuntimeError(f"ONNX Runtime: {e}") from e


def stored(model, precision):
    """The model with a Cast to the half type and back behind each value that is f32."""
    model, half = onnx.shape_inference.infer_shapes(model), HALVES[precision]
    graph = model.graph
    kinds = {i.name: i.data_type for i in graph.initializer}
    kinds |= {v.name: v.type.tensor_type.elem_type for v in [*graph.value_info, *graph.input, *graph.output]}
    nodes = []

    def rounded(source, name):
        nodes.append(helper.make_node("Cast", [source], [f"{name}//half"], to=half))
        nodes.append(helper.make_node("Cast", [f"{name}//half"], [name], to=TensorProto.FLOAT))

    for weight in graph.initializer:
        if weight.data_type == TensorProto.FLOAT:
            name, weight.name = weight.name, f"{weight.name}//exact"
            rounded(weight.name, name)
    for node in graph.node:
        if node.op_type == "Constant":
            nodes.insert(0, node)
            continue
        behind = len(nodes)
        nodes.append(node)
        for i, name in enumerate(node.output):
            if name and kinds.get(name) == TensorProto.FLOAT and node.op_type != "Cast":
                node.output[i] = f"{name}//exact"
                rounded(node.output[i], name)
        assert nodes[behind] is node
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)
    return model


def converted(model):
    """ONNX Runtime's own conversion to f16; inputs and outputs stay f32."""
    from onnxruntime.transformers.float16 import convert_float_to_float16
    return convert_float_to_float16(model, keep_io_types=True)


def reference_error(path, feeds, want, precision):
    """The largest relative error of the model as `stored` in halves, and as `converted` (nan: not for bf16, or ONNX
    Runtime cannot run it)."""
    def worst(make, optimise):
        try:
            return max(relative_errors(want, run_onnx(make(), feeds, optimise)).values())
        except RuntimeError:
            return float("nan")
    return (worst(lambda: stored(onnx.load(path), precision), False),
            worst(lambda: converted(onnx.load(path)), True) if precision == "f16" else float("nan"))
