#!/usr/bin/env python3
"""Compares each normalizer and pre-tokenizer with Hugging Face's on every character: characters.py TEXT_DRIVER

The model is 256 byte tokens, so that ids spell out the text, and pieces get a mark in front. Unicode grows, and the tables
of `tokenizers` are of several ages: what differs for characters that are younger than Unicode 3.2, the one old version
that Python knows, is counted, not refused. Skips without `tokenizers`.
"""
import json
import sys
import tempfile
import unicodedata
from pathlib import Path

from compare import tokenizers
from records import drive, pack_texts, read_ids

NORMALIZERS = [{"type": name} for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt")] + [
    {"type": "Strip", "strip_left": True, "strip_right": True},
    {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"}]},
]
PATTERNS = [r"\s", r"\w", r"\W", r"\p{N}", r"[^\S\n]", r"(?i:k|s|ǆ)"]
PRE_TOKENIZERS = [{"type": name} for name in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer")] + [
    {"type": "Punctuation", "behavior": "Isolated"},
    {"type": "Digits", "individual_digits": False},
] + [{"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False} for p in PATTERNS]


def probe(normalizer, pre_tokenizer):
    marks = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False}
    vocab = {f"<0x{b:02X}>": b for b in range(256)}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": normalizer,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": ([pre_tokenizer] if pre_tokenizer else []) + [marks]},
        "post_processor": None, "decoder": None,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": True, "ignore_merges": False, "vocab": vocab, "merges": []},
    }


def main():
    driver = sys.argv[1]
    codes = [c for c in range(1, 0x20000) if unicodedata.category(chr(c)) != "Cs" and not 0x4E10 < c < 0x9F00 and not 0xAC20 < c < 0xD700]
    codes += [*range(0x2F800, 0x2FA20), *range(0xE0000, 0xE0200), 0x20000, 0x2A6D6, 0x10FFFD]
    texts = [f"a{chr(c)}b{chr(c)}{chr(c)}".encode() for c in codes]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (normalizer, pre_tokenizer) in enumerate([(n, None) for n in NORMALIZERS] + [(None, p) for p in PRE_TOKENIZERS]):
            path = str(Path(folder) / f"{number}.json")
            Path(path).write_text(json.dumps(probe(normalizer, pre_tokenizer)))
            reference = tokenizers.Tokenizer.from_file(path)
            expected = [e.ids for e in reference.encode_batch([t.decode() for t in texts])]
            out, _ = drive(driver, path, "encode", pack_texts(texts))
            bad = [c for c, a, b in zip(codes, read_ids(out), expected, strict=True) if a != b]
            old = [c for c in bad if unicodedata.ucd_3_2_0.category(chr(c)) != "Cn"]
            print(f"{json.dumps(normalizer or pre_tokenizer)[:100]}: {len(bad)} differ, {len(old)} of them in Unicode 3.2: {' '.join(f'{c:04X}' for c in old[:12])}")
            wrong += len(old)
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
