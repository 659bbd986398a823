#!/usr/bin/env python3
"""Exports the tiny language models of test/models/tiny: language_models.py FOLDER [NAME...]

For each name a folder with model.onnx, inputs.npz and outputs.npz (what PyTorch computes, in float32); random weights
from a fixed seed, two layers, at most 200 kB. Needs torch, transformers, onnx and onnxscript; tests do not. Names:

    -kv-...            with past_key_values.* and present.*; without, the whole sequence each time
    -ts, -dynamo       the TorchScript exporter at opset 17, torch.export at 20; -dynamo23 at 23
    -encoder, -decoder, -decoder-past   the three graphs of an encoder and decoder
"""
import os
import shutil
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import logging

logging.disable(logging.WARNING)
import numpy as np
import onnx
import torch
import transformers as tf
from transformers.cache_utils import DynamicCache, DynamicLayer, EncoderDecoderCache

VOCABULARY = 96
SIZES = dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=64, max_position_embeddings=128)


def rng(seed):
    return torch.Generator().manual_seed(seed)


def seeded(cls, config, attention):
    """Random weights that keep what differs between models visible: norms and biases are not trivial."""
    torch.manual_seed(3)
    config._attn_implementation = attention
    model = cls(config).eval().requires_grad_(False)
    for name, p in model.named_parameters():
        p.add_(torch.randn(p.shape, generator=rng(len(name))) * (0.1 if p.dim() == 1 else 0.15))
    return model


def cache_of(tensors):
    cache = DynamicCache()
    cache.layers = []
    for keys, values in zip(tensors[::2], tensors[1::2]):
        layer = DynamicLayer()
        layer.keys, layer.values = keys, values
        layer.dtype, layer.device, layer.is_initialized = keys.dtype, keys.device, True
        cache.layers.append(layer)
    return cache


def flat(cache):
    return [t for layer in cache.layers for t in (layer.keys, layer.values)]


class Export:
    """A function of tensors by name, with the axes that vary."""

    def __init__(self, function, inputs, outputs, axes):
        self.function, self.inputs, self.outputs, self.axes = function, inputs, outputs, axes


class Module(torch.nn.Module):
    def __init__(self, export, model):
        super().__init__()
        self.model, self.export = model, export

    def forward(self, *args):
        return self.export.function(self.model, dict(zip(self.export.inputs, args)))


TOKENS = {0: "batch", 1: "sequence"}


def random_ids(batch, n, seed=1):
    return torch.randint(3, VOCABULARY, (batch, n), generator=rng(seed))


def plain(model):
    """input_ids and attention_mask, right-padded, of the whole text."""
    mask = torch.ones(2, 14, dtype=torch.long)
    mask[1, 10:] = 0
    inputs = dict(input_ids=random_ids(2, 14), attention_mask=mask)
    return Export(lambda m, x: m(**x, use_cache=False).logits, inputs, ["logits"],
                  dict(input_ids=TOKENS, attention_mask=TOKENS, logits=TOKENS))


def cached(model, past=9, n=3):
    c = model.config
    size = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    heads = getattr(c, "num_key_value_heads", None) or c.num_attention_heads
    inputs = dict(input_ids=random_ids(2, n), attention_mask=torch.ones(2, past + n, dtype=torch.long),
                  position_ids=torch.arange(past, past + n).expand(2, n).contiguous())
    names = list(inputs)
    axes = dict(input_ids=TOKENS, attention_mask={0: "batch", 1: "total"}, position_ids=TOKENS, logits=TOKENS)
    outputs = ["logits"]
    for layer in range(c.num_hidden_layers):
        for kind in ("key", "value"):
            inputs[f"past_key_values.{layer}.{kind}"] = torch.randn(2, heads, past, size, generator=rng(len(inputs))) * 0.5
            axes[f"past_key_values.{layer}.{kind}"] = {0: "batch", 2: "past"}
            axes[f"present.{layer}.{kind}"] = {0: "batch", 2: "total"}
            outputs.append(f"present.{layer}.{kind}")

    def run(m, x):
        cache = cache_of([v for k, v in x.items() if k not in names])
        r = m(**{k: x[k] for k in names}, past_key_values=cache, use_cache=True)
        return (r.logits, *flat(r.past_key_values))
    return Export(run, inputs, outputs, axes)


def encoder(model):
    c = model.config
    if c.model_type == "whisper":
        inputs = dict(input_features=torch.randn(2, c.num_mel_bins, 2 * c.max_source_positions, generator=rng(5)))
        return Export(lambda m, x: m.get_encoder()(**x).last_hidden_state, inputs, ["last_hidden_state"],
                      dict(input_features={0: "batch"}, last_hidden_state={0: "batch"}))
    mask = torch.ones(2, 11, dtype=torch.long)
    mask[1, 7:] = 0
    inputs = dict(input_ids=random_ids(2, 11), attention_mask=mask)
    return Export(lambda m, x: m.get_encoder()(**x).last_hidden_state, inputs, ["last_hidden_state"],
                  dict(input_ids=TOKENS, attention_mask=TOKENS, last_hidden_state=TOKENS))


def decoder(model, with_past):
    """Outputs caches of its own tokens and, from the first call only, of the encoder's."""
    c = model.config
    masked = c.model_type == "t5"
    source = 11 if masked else c.max_source_positions
    size = c.d_kv if masked else c.d_model // c.decoder_attention_heads
    layers, heads = (c.num_decoder_layers, c.num_heads) if masked else (c.decoder_layers, c.decoder_attention_heads)
    past, n = (5, 1) if with_past else (0, 4)
    hidden = torch.randn(2, source, c.d_model, generator=rng(6)) * 0.5
    mask = torch.ones(2, source, dtype=torch.long)
    mask[1, -4:] = 0
    from_source = {0: "batch", 1: "source"} if masked else {0: "batch"}
    inputs = dict(input_ids=random_ids(2, n))
    axes = dict(input_ids=TOKENS if not with_past else {0: "batch"}, logits=TOKENS if not with_past else {0: "batch"})
    if masked:
        inputs["encoder_attention_mask"], axes["encoder_attention_mask"] = mask, from_source
    if not with_past:
        inputs["encoder_hidden_states"], axes["encoder_hidden_states"] = hidden, from_source
    outputs = ["logits"]
    cross_axes = {0: "batch", 2: "source"} if masked else {0: "batch"}
    for layer in range(layers):
        for side in ("decoder", "encoder"):
            for kind in ("key", "value"):
                name = f"{layer}.{side}.{kind}"
                if with_past:
                    length = past if side == "decoder" else source
                    inputs[f"past_key_values.{name}"] = torch.randn(2, heads, length, size, generator=rng(len(inputs))) * 0.5
                    axes[f"past_key_values.{name}"] = {0: "batch", 2: "past"} if side == "decoder" else cross_axes
                if side == "decoder" or not with_past:
                    outputs.append(f"present.{name}")
                    axes[f"present.{name}"] = {0: "batch", 2: "total"} if side == "decoder" else cross_axes

    def run(m, x):
        own = [v for k, v in x.items() if ".decoder." in k]
        cross = [v for k, v in x.items() if ".encoder." in k]
        cache = EncoderDecoderCache(cache_of(own) if own else DynamicCache(), cache_of(cross) if cross else DynamicCache())
        if cross:
            cache.is_updated = {i: True for i in range(layers)}
        # With a past only its sizes matter; the keys and values are there.
        states = x.get("encoder_hidden_states", hidden[:, :, :])
        r = m(decoder_input_ids=x["input_ids"], encoder_outputs=(states,), attention_mask=x.get("encoder_attention_mask"),
              past_key_values=cache, use_cache=True)
        kept = []
        for a, b in zip(r.past_key_values.self_attention_cache.layers, r.past_key_values.cross_attention_cache.layers):
            kept += [a.keys, a.values] + ([] if cross else [b.keys, b.values])
        return (r.logits, *kept)
    return Export(run, inputs, outputs, axes)


def qwen3(a):
    return seeded(tf.Qwen3ForCausalLM, tf.Qwen3Config(**SIZES | dict(intermediate_size=48), head_dim=10,
                                                         tie_word_embeddings=True), a)


def mistral(a):
    return seeded(tf.MistralForCausalLM, tf.MistralConfig(**SIZES, sliding_window=5), a)


def gemma2(a):
    c = tf.Gemma2Config(**SIZES, head_dim=16, query_pre_attn_scalar=16, sliding_window=5, attn_logit_softcapping=2.0,
                        final_logit_softcapping=3.0)
    return seeded(tf.Gemma2ForCausalLM, c, a)


def gemma3(a):
    c = tf.Gemma3TextConfig(**SIZES, head_dim=16, query_pre_attn_scalar=16, sliding_window=5,
                            layer_types=["sliding_attention", "full_attention"])
    return seeded(tf.Gemma3ForCausalLM, c, a)


def phi(a):
    return seeded(tf.PhiForCausalLM, tf.PhiConfig(**SIZES, partial_rotary_factor=0.5), a)


def phi3(a):
    return seeded(tf.Phi3ForCausalLM, tf.Phi3Config(**SIZES, sliding_window=None, pad_token_id=0, bos_token_id=1, eos_token_id=2), a)


def t5(a):
    c = tf.T5Config(vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_decoder_layers=2, num_heads=4,
                    feed_forward_proj="gated-gelu", decoder_start_token_id=0)
    return seeded(tf.T5ForConditionalGeneration, c, a)


def whisper(a):
    c = tf.WhisperConfig(vocab_size=VOCABULARY, d_model=32, encoder_layers=1, encoder_attention_heads=4, encoder_ffn_dim=48,
                         decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=48, num_mel_bins=8,
                         max_source_positions=20, max_target_positions=40, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                         decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None)
    return seeded(tf.WhisperForConditionalGeneration, c, a)


MODELS = {}
for base, make in dict(qwen3=qwen3, mistral=mistral, gemma2=gemma2, gemma3=gemma3, phi=phi, phi3=phi3).items():
    for exporter in ("ts", "dynamo", "dynamo23"):
        MODELS[f"{base}-tiny-{exporter}"] = (make, plain, exporter)
        MODELS[f"{base}-tiny-kv-{exporter}"] = (make, cached, exporter)
for base, make in dict(t5=t5, whisper=whisper).items():
    for exporter in ("ts", "dynamo"):
        MODELS[f"{base}-tiny-encoder-{exporter}"] = (make, encoder, exporter)
        MODELS[f"{base}-tiny-decoder-{exporter}"] = (make, lambda m: decoder(m, False), exporter)
        MODELS[f"{base}-tiny-decoder-past-{exporter}"] = (make, lambda m: decoder(m, True), exporter)


def write(module, export, path, exporter):
    args = tuple(export.inputs.values())
    names = dict(input_names=list(export.inputs), output_names=export.outputs)
    if exporter == "ts":
        torch.onnx.export(module, args, str(path), dynamo=False, opset_version=17, dynamic_axes=export.axes,
                          do_constant_folding=True, **names)
        return
    # One Dim for each name makes equal names equal sizes; "total" is past + sequence, which torch.export finds.
    dims = {a: torch.export.Dim(a, min=1) for k in export.inputs for a in export.axes[k].values() if a != "total"}
    dims["total"] = torch.export.Dim.AUTO
    shapes = tuple({i: dims[a] for i, a in export.axes[k].items()} for k in export.inputs)
    torch.onnx.export(module, args, str(path), dynamo=True, opset_version=23 if exporter == "dynamo23" else 20,
                      external_data=False, dynamic_shapes=(shapes,), verbose=False, **names)


def make(name, folder):
    build, form, exporter = MODELS[name]
    # transformers has no other form of what caps its scores.
    model = build("eager" if exporter == "ts" or build is gemma2 else "sdpa")
    export = form(model)
    module = Module(export, model)
    out = folder / name
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with torch.no_grad():
        want = module(*export.inputs.values())
    want = want if isinstance(want, tuple) else (want,)
    write(module, export, out / "model.onnx", exporter)
    proto = onnx.load(out / "model.onnx")
    for node in proto.graph.node:  # stack traces, larger than the weights
        del node.metadata_props[:]
        node.ClearField("doc_string")
    for value in proto.graph.value_info:
        del value.metadata_props[:]
    for value in [*proto.graph.input, *proto.graph.output, *proto.graph.initializer]:
        del value.metadata_props[:]
    onnx.save(proto, out / "model.onnx")
    used = {i.name for i in proto.graph.input}
    np.savez_compressed(out / "inputs.npz", **{k: v.numpy() for k, v in export.inputs.items() if k in used})
    np.savez_compressed(out / "outputs.npz", **{k: v.detach().numpy() for k, v in zip(export.outputs, want)})
    return (out / "model.onnx").stat().st_size


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    failed = 0
    for name in sys.argv[2:] or MODELS:
        try:
            print(f"{name:28} {make(name, Path(sys.argv[1])) / 1000:8.1f} kB", flush=True)
        except Exception as e:
            failed += 1
            print(f"{name:28} FAILED {type(e).__name__}: {str(e).strip()[:300]}", flush=True)
            if os.environ.get("TRACE"):
                raise
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
