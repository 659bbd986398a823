#!/usr/bin/env python3
"""Which sentences mean the same? similarity.py ARTIFACT [SENTENCE...]

Tokenizes the sentences as all-MiniLM-L6-v2 does, runs the compiled model (a
separate process that knows nothing of Python) on them as one batch and prints,
for each sentence, its nearest neighbour by cosine similarity.
"""
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test" / "models"))
from minilm import package_folder  # noqa: E402

SENTENCES = [
    "A cat is sleeping on the warm windowsill.",
    "The compiler turned a model into a single program.",
    "Interest rates rose again this quarter.",
    "A kitten naps in the sun by the window.",
    "Machine code was generated from a neural network.",
    "The central bank made borrowing more expensive.",
]


def inputs(sentences):
    tokenizer = Tokenizer.from_file(str(package_folder() / "tokenizer.json"))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(256)
    encoded = tokenizer.encode_batch(sentences)
    return {
        "input_ids": np.array([e.ids for e in encoded], np.int64),
        "attention_mask": np.array([e.attention_mask for e in encoded], np.int64),
        "token_type_ids": np.array([e.type_ids for e in encoded], np.int64),
    }


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    artifact, sentences = sys.argv[1], sys.argv[2:] or SENTENCES
    with tempfile.TemporaryDirectory() as folder:
        given, got = f"{folder}/in.npz", f"{folder}/out.npz"
        np.savez(given, **inputs(sentences))
        start = time.perf_counter()
        subprocess.run([artifact, "--run", f"--inputs={given}", f"--outputs={got}"], check=True, stderr=subprocess.DEVNULL)
        elapsed = time.perf_counter() - start
        embeddings = np.load(got)["sentence_embedding"]
    cosine = embeddings @ embeddings.T
    np.fill_diagonal(cosine, -1)
    print(f"\n{artifact} embedded {len(sentences)} sentences in {elapsed * 1e3:.0f} ms, process start included:\n")
    for i, sentence in enumerate(sentences):
        nearest = int(cosine[i].argmax())
        print(f"  {sentence}\n    is nearest to: {sentences[nearest]}  (cosine {cosine[i, nearest]:.2f})")


if __name__ == "__main__":
    main()
