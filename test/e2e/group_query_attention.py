#!/usr/bin/env python3
"""com.microsoft.GroupQueryAttention in all its forms: group_query_attention.py TENON

One model with a node for each case is compiled and run, and each case is compared with NumPy, written from the
operator's documentation: packed and separate inputs, rotary embedding (halves, interleaved, of a part, at given
positions), windows, softcap, sinks, biases, norms of queries and keys, ragged batches, caches with room to spare, and
right-padded prompts. What the operator leaves unspecified is not compared.
"""
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from models import compile_model, run_artifact
from onnx import TensorProto, helper

# heads, key heads, head size; past (length of the buffer), new tokens, tokens in the cache after the step by entry
BASE = dict(h=4, kv=2, d=16, past=5, s=3, t=[8], attrs={}, extra=())
CASES = {
    "plain": {},
    "prompt": dict(past=0, s=6, t=[6]),
    "decode": dict(s=1, t=[6]),
    "packed": dict(packed=True),
    "ragged": dict(past=6, s=1, t=[3, 6]),
    "room": dict(past=12, s=2, t=[7, 4]),
    "padded_prompt": dict(past=0, s=5, t=[5, 3]),
    "scale": dict(attrs=dict(scale=0.3)),
    "softcap": dict(attrs=dict(softcap=2.0)),
    "window": dict(attrs=dict(local_window_size=3)),
    "ragged_window": dict(past=6, s=2, t=[8, 5], attrs=dict(local_window_size=2)),
    "smooth": dict(attrs=dict(smooth_softmax=1)),
    "sink": dict(extra=("head_sink",)),
    "ragged_sink": dict(past=6, s=1, t=[3, 6], extra=("head_sink",)),
    "bias": dict(extra=("attention_bias",)),
    "ragged_bias": dict(past=6, s=1, t=[7, 4], extra=("attention_bias",)),
    "norm": dict(extra=("q_norm_weight", "k_norm_weight"), attrs=dict(qk_norm_epsilon=1e-5)),
    "rotary": dict(extra=("cos_cache", "sin_cache"), attrs=dict(do_rotary=1)),
    "ragged_rotary": dict(past=6, s=2, t=[8, 3], extra=("cos_cache", "sin_cache"), attrs=dict(do_rotary=1)),
    "interleaved": dict(extra=("cos_cache", "sin_cache"), attrs=dict(do_rotary=1, rotary_interleaved=1)),
    "partial": dict(extra=("cos_cache", "sin_cache"), attrs=dict(do_rotary=1), rotary=8),
    "positions": dict(extra=("cos_cache", "sin_cache", "position_ids"), attrs=dict(do_rotary=1)),
    "all": dict(packed=True, past=6, s=2, t=[8, 4], rotary=8, extra=("cos_cache", "sin_cache", "attention_bias", "head_sink"),
                attrs=dict(do_rotary=1, softcap=3.0, local_window_size=4)),
    "bidirectional": dict(past=6, s=2, t=[8, 5], attrs=dict(causal=0)),
    "not_cached": dict(past=None, s=4, t=[4]),
    # Caches of `past` rows that drop old tokens: as long as the window, with room, and fewer rows than new tokens.
    "slides": dict(past=5, s=3, t=[12], attrs=dict(local_window_size=5, sliding_window_cache=1)),
    "slides_prompt": dict(past=6, s=9, t=[9, 4], attrs=dict(local_window_size=4, sliding_window_cache=1)),
    "slides_ragged": dict(past=7, s=1, t=[3, 15], extra=("cos_cache", "sin_cache", "head_sink"),
                          attrs=dict(local_window_size=4, sliding_window_cache=1, do_rotary=1)),
    "slides_chunk": dict(past=6, s=4, t=[9, 14], extra=("query_seqlens",), fresh=[2, 4], attrs=dict(local_window_size=3, sliding_window_cache=1)),
    "chunk": dict(past=8, s=3, t=[5, 6], extra=("query_seqlens",), fresh=[1, 3]),
}
INPUTS = ["query", "key", "value", "past_key", "past_value", "seqlens_k", "total_sequence_length", "cos_cache", "sin_cache",
          "position_ids", "attention_bias", "head_sink", "k_scale", "v_scale", "q_norm_weight", "k_norm_weight", "query_seqlens"]


def make_inputs(c, rng):
    b, s, d = len(c["t"]), c["s"], c["d"]
    past = c["past"] or 0

    def random(*shape):
        return rng.uniform(-1, 1, shape).astype(np.float32)

    x = {"seqlens_k": np.array([t - 1 for t in c["t"]], np.int32), "total_sequence_length": np.array(max(c["t"]), np.int32)}
    widths = [c["h"] * d, c["kv"] * d, c["kv"] * d]
    if c.get("packed"):
        x["query"] = random(b, s, sum(widths))
    else:
        x["query"], x["key"], x["value"] = (random(b, s, w) for w in widths)
    if c["past"] is not None:
        x["past_key"], x["past_value"] = random(b, c["kv"], past, d), random(b, c["kv"], past, d)
    sizes = {"cos_cache": (32, c.get("rotary", d) // 2), "attention_bias": (1, c["h"], s, max(past, max(c["t"]))),
             "head_sink": (c["h"],), "q_norm_weight": (d,), "k_norm_weight": (d,)}
    sizes["sin_cache"] = sizes["cos_cache"]
    for name in c["extra"]:
        if name == "query_seqlens":
            x[name] = np.array(c["fresh"], np.int32)
            continue
        x[name] = rng.integers(0, 32, (b, s)) if name == "position_ids" else random(*sizes[name])
    return x


def rotate(x, cos, sin, interleaved):
    """x[S, H, D], cos and sin [S, n]."""
    n = cos.shape[1]
    y, c, s = x.copy(), cos[:, None], sin[:, None]
    first, second = (slice(0, 2 * n, 2), slice(1, 2 * n, 2)) if interleaved else (slice(0, n), slice(n, 2 * n))
    y[..., first] = x[..., first] * c - x[..., second] * s
    y[..., second] = x[..., second] * c + x[..., first] * s
    return y


def resident(tokens, rows, window):
    """How many tokens a cache that drops old ones holds."""
    gap = rows - window + 1
    return tokens - gap * -(-max(tokens - rows, 0) // gap)


def reference(c, x):
    """The output [B, S, H * D] and caches, NaN where they are unspecified."""
    a, h, kv, d, s = c["attrs"], c["h"], c["kv"], c["d"], c["s"]
    x = {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in x.items()}
    query = x["query"]
    if c.get("packed"):
        q, k, v = np.split(query, [h * d, (h + kv) * d], axis=2)
    else:
        q, k, v = query, x["key"], x["value"]
    b = len(query)
    q, k, v = q.reshape(b, s, h, d), k.reshape(b, s, kv, d), v.reshape(b, s, kv, d)
    past = c["past"] or 0
    slides = a.get("sliding_window_cache", 0)
    length = max(past, max(c["t"]))
    out, keys, values = np.full((b, s, h, d), np.nan), np.full((b, kv, length, d), np.nan), np.full((b, kv, length, d), np.nan)

    def norm(t, w):
        return t / np.sqrt((t * t).mean(-1, keepdims=True) + a.get("qk_norm_epsilon", 1e-6)) * x[w]

    for i, total in enumerate(c["t"]):
        fresh = c["fresh"][i] if "fresh" in c else min(s, total)
        place = total - fresh
        qi, ki = q[i], k[i]
        if "q_norm_weight" in x:
            qi, ki = norm(qi, "q_norm_weight"), norm(ki, "k_norm_weight")
        if a.get("do_rotary"):
            at = x["position_ids"][i] if "position_ids" in x else place + np.arange(s)
            cos, sin = x["cos_cache"][at], x["sin_cache"][at]
            qi, ki = (rotate(t, cos, sin, a.get("rotary_interleaved", 0)) for t in (qi, ki))
        if place:
            kept = resident(place, past, a["local_window_size"]) if slides else place
            for whole, before in ((keys, x["past_key"]), (values, x["past_value"])):
                whole[i, :, place - kept:place] = before[i, :, :kept]
        keys[i, :, place:total] = ki[:fresh].transpose(1, 0, 2)
        values[i, :, place:total] = v[i, :fresh].transpose(1, 0, 2)
        for j in range(fresh):
            end = place + j + 1 if a.get("causal", 1) else total
            window = a.get("local_window_size", -1)
            begin = max(0, end - window) if window > 0 else 0
            for head in range(h):
                scores = keys[i, head * kv // h, begin:end] @ qi[j, head] * a.get("scale", 1 / np.sqrt(d))
                if cap := a.get("softcap"):
                    scores = cap * np.tanh(scores / cap)
                if "attention_bias" in x:
                    scores = scores + x["attention_bias"][0, head, j, begin:end]
                e, sink = np.exp(scores), 0
                if "head_sink" in x:
                    sink = np.exp(x["head_sink"][head])
                elif a.get("smooth_softmax"):
                    sink = 1
                out[i, j, head] = e @ values[i, head * kv // h, begin:end] / (e.sum() + sink)
    if slides:
        for whole in (keys, values):
            for i, total in enumerate(c["t"]):
                kept = resident(total, past, a["local_window_size"])
                whole[i, :, :kept], whole[i, :, kept:] = whole[i, :, total - kept:total].copy(), np.nan
        keys, values = keys[:, :, :past], values[:, :, :past]
    return {"y": out.reshape(b, s, h * d), "k": keys, "v": values}


def build(cases):
    nodes, inputs, outputs, feeds, want = [], [], [], {}, {}
    rng = np.random.default_rng(3)
    types = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32, "int64": TensorProto.INT64}
    for name, c in cases.items():
        x = make_inputs(c, rng)
        for key, value in x.items():
            # The cache's length is not known when compiling, the batch is where it is 1.
            shape = list(value.shape)
            if key.startswith("past"):
                shape[2] = f"{name}_past"
            inputs.append(helper.make_tensor_value_info(f"{name}_{key}", types[str(value.dtype)], shape))
            feeds[f"{name}_{key}"] = value
        names = [f"{name}_{key}" if key in x else "" for key in INPUTS]
        results = [f"{name}_{r}" for r in "ykv"]
        nodes.append(helper.make_node("GroupQueryAttention", names, results, name=name, domain="com.microsoft", num_heads=c["h"],
                                      kv_num_heads=c["kv"], **c["attrs"]))
        outputs += [helper.make_tensor_value_info(r, TensorProto.FLOAT, None) for r in results]
        want |= {f"{name}_{r}": value for r, value in reference(c, x).items()}
    graph = helper.make_graph(nodes, "cases", inputs, outputs)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds, want


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    cases = {name: BASE | c for name, c in CASES.items() if not sys.argv[2:] or name in sys.argv[2:]}
    model, feeds, want = build(cases)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        onnx.save(model, scratch / "m.onnx")
        np.savez(scratch / "in.npz", **feeds)
        compile_model(sys.argv[1], scratch / "m.onnx", scratch / "m")
        got = run_artifact(scratch / "m", scratch / "in.npz", scratch / "out.npz")
    failed = 0
    for key, w in want.items():
        g = got[key]
        known = ~np.isnan(w)
        # f32 sums of at most 16 products of numbers below 1.
        bad = g.shape != w.shape or not (np.abs(g - w)[known] <= 1e-5).all()
        failed += bad
        if bad:
            print(f"FAIL {key}: shape {g.shape} for {w.shape}" if g.shape != w.shape else
                  f"FAIL {key}: differs by {np.abs(g - w)[known].max():.3g}")
    print(f"{len(want) - failed} of {len(want)} tensors right")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
