#!/usr/bin/env python3
"""Compares Tenon's tokenizers with Hugging Face's: compare.py TEXT_DRIVER [--megabytes=N] TOKENIZER.json...

Ids with and without special tokens, decoded text with and without them, and decoding one id at a time
must be the same on mixed text (corpus.py). Skips (exit status 77) without the package `tokenizers`.
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import corpus
from records import drive, pack_ids, pack_texts, read_ids, read_texts

try:
    import tokenizers
except ImportError:
    print("skipped: no package tokenizers")
    sys.exit(77)


def first_difference(found, expected):
    for i, (a, b) in enumerate(zip(found, expected)):
        if a != b:
            return i
    return min(len(found), len(expected))


class Comparison:
    def __init__(self, driver, path, texts):
        self.driver, self.path, self.texts = driver, path, texts
        self.reference = tokenizers.Tokenizer.from_file(path)
        self.reference.no_truncation()
        self.reference.no_padding()
        self.wrong = 0

    def report(self, what, number, detail):
        self.wrong += 1
        if self.wrong <= 5:
            print(f"{self.path}: {what} of text {number}: {detail}")

    def encode(self, special):
        decoded = [t.decode(errors="replace") for t in self.texts]
        expected = [e.ids for e in self.reference.encode_batch(decoded, add_special_tokens=special)]
        out, speed = drive(self.driver, self.path, "encode-special" if special else "encode", pack_texts(self.texts))
        found = list(read_ids(out))
        for i, (a, b) in enumerate(zip(found, expected, strict=True)):
            if a != b:
                at = first_difference(a, b)
                name = self.reference.id_to_token
                before = self.reference.decode(b[max(0, at - 6):at], skip_special_tokens=False)
                self.report("ids", i, f"at {at} after {before!r}: {[name(x) for x in a[at:at + 6]]}, "
                                      f"expected {[name(x) for x in b[at:at + 6]]}")
        return expected, speed

    def decode(self, ids):
        for mode, skip in (("decode", True), ("decode-special", False), ("stream", True)):
            expected = self.reference.decode_batch(ids, skip_special_tokens=skip)
            out, _ = drive(self.driver, self.path, mode, pack_ids(ids))
            for i, (a, b) in enumerate(zip(read_texts(out), expected, strict=True)):
                if a != b.encode():
                    at = first_difference(a, b.encode())
                    self.report(mode, i, f"at {at}: {a[max(0, at - 20):at + 20]}, expected {b.encode()[max(0, at - 20):at + 20]}")

    def run(self):
        ids, speed = self.encode(special=False)
        self.encode(special=True)
        self.decode(ids)
        print(f"{self.path}: {len(self.texts)} texts, {sum(map(len, ids))} ids, encoded {speed}: "
              f"{'the same' if not self.wrong else str(self.wrong) + ' differences'}")
        return self.wrong == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("tokenizers", nargs="+")
    parser.add_argument("--megabytes", type=float, default=10)
    args = parser.parse_args()
    right = True
    for path in args.tokenizers:
        specials = [t.content for t in tokenizers.Tokenizer.from_file(path).get_added_tokens_decoder().values()]
        texts = list(corpus.records(args.megabytes, specials=specials[:20]))
        right &= Comparison(args.driver, path, texts).run()
    sys.exit(not right)


if __name__ == "__main__":
    main()
