#!/usr/bin/env python3
"""Holds the tokenizers of this folder to expected.json, which Hugging Face's `tokenizers` computed: expected.py TEXT_DRIVER"""
import base64
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from records import drive, pack_ids, pack_texts, read_ids, read_texts

HERE = Path(__file__).resolve().parent


def main():
    driver = sys.argv[1]
    expected = json.loads((HERE / "expected.json").read_text())
    texts = [base64.b64decode(t) for t in expected["texts"]]
    problems = []
    for name, wanted in expected["tokenizers"].items():
        path = str(HERE / "tokenizers" / f"{name}.json")
        found = list(read_ids(drive(driver, path, "encode-special", pack_texts(texts))[0]))
        problems += [f"{name}: ids of {t}: {a}, expected {b}" for t, a, b in zip(texts, found, wanted["ids"], strict=True) if a != b]
        plain = [len(ids) for ids in read_ids(drive(driver, path, "encode", pack_texts(texts))[0])]
        if plain != wanted["plain"]:
            problems.append(f"{name}: numbers of tokens without special ones: {plain}, expected {wanted['plain']}")
        for mode in ("decode", "stream"):
            made = [t.decode() for t in read_texts(drive(driver, path, mode, pack_ids(wanted["ids"]))[0])]
            problems += [f"{name}: {mode} of {i}: {a!r}, expected {b!r}"
                         for i, a, b in zip(wanted["ids"], made, wanted["texts"], strict=True) if a != b]
    print("\n".join(problems) or f"{len(expected['tokenizers'])} tokenizers: right")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
