#!/usr/bin/env python3
"""Makes the tiny models of test/models/tiny/genai-*: genai_models.py FOLDER [NAME...]

Random models of transformers go through the builder of the onnxruntime-genai wheel, as people's own do; inputs.npz is a
prompt with empty caches and outputs.npz what ONNX Runtime computes, for the builder's graphs are not all what PyTorch
computes (Gemma's Gelu). Needs torch, transformers, onnxruntime and onnxruntime-genai; tests do not.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import language_models as lm
import numpy as np
import onnx
import onnxruntime
import transformers as tf
from tokenizers import Tokenizer, models

SIZES = lm.SIZES | dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
SLIDING = dict(head_dim=16, sliding_window=5, layer_types=["sliding_attention", "full_attention"])
HEAD, ROOM = 16, 7  # of a head, and rows of a cache that drops old tokens


def llama():
    return lm.seeded(tf.LlamaForCausalLM, tf.LlamaConfig(**SIZES | dict(hidden_size=64)), "eager")


def qwen3():
    return lm.seeded(tf.Qwen3ForCausalLM, tf.Qwen3Config(**SIZES, head_dim=16), "eager")


def gemma2():
    c = tf.Gemma2Config(**SIZES | SLIDING, query_pre_attn_scalar=16, attn_logit_softcapping=2.0, final_logit_softcapping=3.0)
    return lm.seeded(tf.Gemma2ForCausalLM, c, "eager")


def mistral():
    return lm.seeded(tf.MistralForCausalLM, tf.MistralConfig(**SIZES, head_dim=16, sliding_window=5), "eager")


def gpt_oss():
    c = tf.GptOssConfig(**SIZES | SLIDING | dict(intermediate_size=32), num_local_experts=4, num_experts_per_tok=2)
    return lm.seeded(tf.GptOssForCausalLM, c, "eager")


MODELS = {f"genai-{name}": (make, precision) for name, make, precision in
          [("llama-int4", llama, "int4"), ("qwen3", qwen3, "fp32"), ("qwen3-int4", qwen3, "int4"), ("gemma2", gemma2, "fp32"),
           ("gpt-oss", gpt_oss, "fp32"), ("mistral", mistral, "fp32")]}


def build(model, precision, scratch):
    source, out = scratch / "source", scratch / "out"
    model.save_pretrained(source)
    vocabulary = {f"<0x{b:02X}>": b for b in range(lm.VOCABULARY - 1)} | {"<unk>": lm.VOCABULARY - 1}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>").save_pretrained(source)
    subprocess.run([sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", source, "-o", out, "-p", precision, "-e", "cpu",
                    "-c", scratch / "cache"], check=True, env=os.environ | dict(HF_HUB_OFFLINE="1"), stdout=subprocess.DEVNULL)
    return out / "model.onnx"


def inputs_for(proto):
    inputs = dict(input_ids=lm.random_ids(2, 9).numpy(), attention_mask=np.ones((2, 9), np.int64))
    for i in proto.graph.input:
        if i.name.startswith("past"):
            dims = i.type.tensor_type.shape.dim
            inputs[i.name] = np.zeros((2, dims[1].dim_value, ROOM if "sliding" in dims[2].dim_param else 0, HEAD), np.float32)
    return inputs


def make(name, folder):
    model, precision = MODELS[name][0](), MODELS[name][1]
    out = folder / name
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        proto = onnx.load(build(model, precision, Path(scratch)))
    onnx.save(proto, out / "model.onnx")
    inputs = inputs_for(proto)
    logits = onnxruntime.InferenceSession(out / "model.onnx").run(["logits"], inputs)[0]
    np.savez_compressed(out / "inputs.npz", **inputs)
    np.savez_compressed(out / "outputs.npz", logits=logits)
    return (out / "model.onnx").stat().st_size


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for name in sys.argv[2:] or MODELS:
        print(f"{name:28} {make(name, Path(sys.argv[1])) / 1000:8.1f} kB", flush=True)


if __name__ == "__main__":
    main()
