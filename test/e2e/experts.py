#!/usr/bin/env python3
"""com.microsoft.MoE and QMoE in their forms: experts.py TENON

One model with a node for each case is compiled and run, and each case is compared with NumPy, written from the operators'
documentation, and, where ONNX Runtime's CPU has the form, with ONNX Runtime.
"""
import math
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from models import compile_model, run_artifact
from onnx import TensorProto, helper

E, H, I = 4, 32, 16
CASES = {
    "relu": dict(attrs=dict(k=1)),
    "gelu": dict(attrs=dict(k=2, activation_type="gelu"), bias=True),
    "silu": dict(attrs=dict(k=2, activation_type="silu", normalize_routing_weights=1), bias=True),
    "identity": dict(attrs=dict(k=3, activation_type="identity")),
    # The last expert is never chosen, and its results are infinite.
    "infinite": dict(attrs=dict(k=2, activation_type="silu", normalize_routing_weights=1), infinite=True),
    "rank3": dict(attrs=dict(k=2), rank=3),
    "swiglu": dict(attrs=dict(k=2, activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0,
                              swiglu_limit=0.5, normalize_routing_weights=1), bias=True, fused=True),
    "swiglu_halves": dict(attrs=dict(k=2, activation_type="swiglu", swiglu_fusion=2), fused=True, ort=False),
    "swiglu_three": dict(attrs=dict(k=2, activation_type="swiglu"), third=True, bias=True, ort=False),
    "q4": dict(attrs=dict(k=2, expert_weight_bits=4, activation_type="silu"), bits=4),
    "q8": dict(attrs=dict(k=2, expert_weight_bits=8, activation_type="silu"), bits=8, bias=True),
    "q4_blocks": dict(attrs=dict(k=2, expert_weight_bits=4, block_size=16, activation_type="silu"), bits=4, block=16),
    "q4_zeros": dict(attrs=dict(k=2, expert_weight_bits=4, block_size=16, activation_type="silu"), bits=4, block=16, zeros=True),
    "q4_swiglu": dict(attrs=dict(k=2, expert_weight_bits=4, activation_type="swiglu", swiglu_fusion=1, normalize_routing_weights=1),
                      bits=4, fused=True),
    "q8_swiglu_blocks": dict(attrs=dict(k=2, expert_weight_bits=8, block_size=16, activation_type="swiglu", swiglu_fusion=1),
                             bits=8, block=16, fused=True),
    "q4_router": dict(attrs=dict(k=2, expert_weight_bits=4, activation_type="silu"), bits=4, router=True),
}


def quantised(c, rng, n, k):
    """Codes, scales, packed zero points and the weights that they stand for."""
    bits, block = c["bits"], c.get("block") or k
    codes = rng.integers(0, 1 << bits, (E, n, k), dtype=np.uint8)
    scales = (rng.uniform(0.1, 0.5, (E, n, k // block)) / (1 << bits)).astype(np.float32)
    zeros = np.full((E, n, k // block), 1 << (bits - 1), np.uint8)
    if c.get("zeros"):
        zeros = rng.integers(0, 1 << bits, zeros.shape, dtype=np.uint8)
    weights = (codes.reshape(E, n, k // block, block).astype(np.float32) - zeros[..., None]) * scales[..., None]

    def pack(x):
        if bits == 8:
            return x
        if x.shape[-1] % 2:
            x = np.concatenate([x, np.zeros_like(x[..., :1])], -1)
        return x[..., ::2] | x[..., 1::2] << 4
    shape = scales if c.get("block") else scales[..., 0]
    return pack(codes), shape, pack(zeros) if c.get("zeros") else None, weights.reshape(E, n, k)


def make(c, rng):
    """Inputs by position, the weights as floats, and the answer."""
    fused = 2 if c.get("fused") else 1
    shape = (2, 3) if c.get("rank") == 3 else (5,)
    x = rng.normal(size=(*shape, H)).astype(np.float32)
    router = rng.normal(size=(math.prod(shape), E)).astype(np.float32)
    if c.get("infinite"):
        router[:, -1] = -20
    sizes = [(fused * I, H), (H, I), (I, H) if c.get("third") else None]
    layers, inputs, zeros = [], [x, router], []
    for size in sizes:
        if not size:
            layers.append((None, None))
            inputs += [None] * (3 if "bits" in c else 2)
            zeros.append(None)
            continue
        bias = rng.normal(size=(E, size[0])).astype(np.float32) if c.get("bias") else None
        if "bits" in c:
            codes, scales, zero, weights = quantised(c, rng, *size)
            inputs += [codes, scales, bias]
            zeros.append(zero)
        else:
            weights = (rng.normal(size=(E, *size)) * 0.3).astype(np.float32)
            if c.get("infinite"):
                weights[-1] *= 1e38
            inputs += [weights, bias]
        layers.append((weights, bias))
    mixing = None
    if "bits" in c:
        mixing = rng.uniform(0.1, 1, router.shape).astype(np.float32) if c.get("router") else None
        inputs += [*zeros, mixing]
    return inputs, reference(c["attrs"], x, router, mixing, layers)


def reference(a, x, router, mixing, layers):
    rows = x.reshape(-1, H).astype(np.float64)
    p = np.exp(router - router.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    y = np.zeros_like(rows)
    (w1, b1), (w2, b2), (w3, b3) = layers
    # ONNX Runtime's QMoE takes the softmax over the chosen experts.
    quantised_router = "expert_weight_bits" in a and mixing is None

    def linear(v, w, b, e):
        return v @ w[e].T.astype(np.float64) + (0 if b is None else b[e])

    def swish(v, alpha=1.0):
        return v / (1 + np.exp(-alpha * v))
    for t, row in enumerate(rows):
        best = np.argsort(-p[t], kind="stable")[:a.get("k", 1)]
        weight = (p if mixing is None else mixing)[t][best]
        if a.get("normalize_routing_weights") or quantised_router:
            weight = weight / weight.sum()
        for e, w in zip(best, weight):
            h = linear(row, w1, b1, e)
            kind = a.get("activation_type", "relu")
            if kind == "swiglu":
                fusion = a.get("swiglu_fusion", 0)
                g, l = (h[::2], h[1::2]) if fusion == 1 else np.split(h, 2) if fusion == 2 else (h, linear(row, w3, b3, e))
                limit = a.get("swiglu_limit", np.inf)
                g, l = np.minimum(g, limit), np.clip(l, -limit, limit)
                h = swish(g, a.get("activation_alpha", 1.0)) * (l + a.get("activation_beta", 0.0))
            else:
                h = {"relu": lambda v: np.maximum(v, 0), "silu": swish, "identity": lambda v: v,
                     "gelu": lambda v: v * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))}[kind](h)
            y[t] += w * linear(h, w2, b2, e)
    return y.reshape(x.shape)


def model_of(cases):
    rng = np.random.default_rng(8)
    nodes, infos, weights, feeds, want = [], [], [], {}, {}
    for name, c in cases.items():
        inputs, answer = make(c, rng)
        names = []
        for i, value in enumerate(inputs):
            names.append("" if value is None else f"{name}_{i}")
            if value is None:
                continue
            if i < 2 or value is inputs[-1] and c.get("router"):
                shape = [f"{name}_n", *value.shape[1:]] if value.ndim == 2 else [f"{name}_b", f"{name}_s", H]
                if i == 1 and c.get("rank") == 3:
                    shape = list(value.shape)
                infos.append(helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, shape))
                feeds[names[-1]] = value
            else:
                weights.append(onnx.numpy_helper.from_array(value, names[-1]))
        while names[-1] == "":
            names.pop()
        nodes.append(helper.make_node("QMoE" if "bits" in c else "MoE", names, [f"{name}_y"], name=name, domain="com.microsoft", **c["attrs"]))
        want[f"{name}_y"] = answer
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in want]
    graph = helper.make_graph(nodes, "experts", infos, outputs, weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds, want


def from_onnxruntime(name, c):
    model, feeds, want = model_of({name: c})
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0], want[f"{name}_y"]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    failed = 0
    for name, c in CASES.items():
        if c.get("ort", True):
            try:
                got, want = from_onnxruntime(name, c)
            except Exception as e:
                print(f"     {name}: not in ONNX Runtime: {str(e).splitlines()[-1][:150]}")
                continue
            # Its 8-bit kernels round activations.
            far = float(np.abs(got - want).max())
            if far > (2e-2 if c.get("bits") == 8 else 1e-5) * max(1, np.abs(want).max()):
                failed += 1
                print(f"FAIL {name}: the reference is {far:.3g} from ONNX Runtime")
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        model, feeds, want = model_of(CASES)
        onnx.save(model, scratch / "m.onnx")
        np.savez(scratch / "in.npz", **feeds)
        compile_model(sys.argv[1], scratch / "m.onnx", scratch / "m")
        got = run_artifact(scratch / "m", scratch / "in.npz", scratch / "out.npz")
    for key, w in want.items():
        far = float(np.abs(got[key] - w).max()) if got[key].shape == w.shape else np.inf
        if not far <= 2e-5:
            failed += 1
            print(f"FAIL {key}: differs by {far:.3g}")
    print(f"{len(want)} cases, {failed} failures")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
