#!/usr/bin/env python3
"""Makes the small tokenizers of this folder and what they must give: make_tokenizers.py

One of each kind with the real ones' settings (regular expressions, normalizers, decoders, templates, added tokens), trained
on the project's own files and on words of many scripts (corpus.py), with small vocabularies; and expected.json, ids and texts
of some lines as Hugging Face's `tokenizers` computes them. Needs `tokenizers`, and `sentencepiece` for t5's precompiled
normalization rules, which are a few of NFKC's.
"""
import base64
import json
import random
import tempfile
from pathlib import Path

import corpus
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

OUT = Path(__file__).resolve().parent / "tokenizers"
GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{COUNT}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3, QWEN = GPT4.replace("{COUNT}", "{1,3}"), GPT4.replace("{COUNT}", "")
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
BYTE_LEVEL_ONLY = {**BYTE_LEVEL, "use_regex": False}


def training_text():
    rng = random.Random(5)
    for i, line in enumerate(corpus.code_lines()):
        if i % 3 == 0:
            yield line
        if i % 40 == 0:
            # Few enough characters for small vocabularies.
            yield "".join(c for c in " ".join(corpus.word(rng) for _ in range(6)) if ord(c) < 0x600) + "\n"


def train(model, trainer, pre_tokenizer, normalizer=None):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator(training_text(), trainer)
    return json.loads(tokenizer.to_str())


def byte_level(size, specials=(), pre=None, **settings):
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(specials), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False, **settings)
    return train(models.BPE(), trainer, pre or pre_tokenizers.ByteLevel(add_prefix_space=False))


def split(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def added(content, number, **how):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} | how


def template(*pieces):
    """Strings are special tokens with their ids as (token, id), None is the text."""
    single = [{"Sequence": {"id": "A", "type_id": 0}} if p is None else {"SpecialToken": {"id": p[0], "type_id": 0}} for p in pieces]
    return {"type": "TemplateProcessing", "single": single, "pair": single + [{"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {p[0]: {"id": p[0], "ids": [p[1]], "tokens": [p[0]]} for p in pieces if p}}


def gpt2():
    made = byte_level(900, ["<|endoftext|>"])
    n = len(made["model"]["vocab"])
    made["added_tokens"] += [added("<mask>", n, lstrip=True), added("<pad>", n + 1, rstrip=True, special=False),
                             added("zebra", n + 2, single_word=True, normalized=True, special=False), added("<mask><mask>", n + 3)]
    return made | {"pre_tokenizer": BYTE_LEVEL, "decoder": BYTE_LEVEL, "post_processor": {**BYTE_LEVEL, "trim_offsets": False}}


def llama3():
    pre = pre_tokenizers.Sequence([pre_tokenizers.Split(tokenizers_regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    made = byte_level(1000, pre=pre)
    n = len(made["model"]["vocab"])
    names = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    made["added_tokens"] = [added(name, n + i) for i, name in enumerate(names)]
    made["model"]["ignore_merges"] = True
    # Words that no merge makes, which ignore_merges finds.
    for i, word in enumerate(("Ġnevermerged", "Ġwhole")):
        made["model"]["vocab"][word] = n + i
        made["added_tokens"] = [t | {"id": t["id"] + 1} for t in made["added_tokens"]]
    return made | {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [split(LLAMA3), BYTE_LEVEL_ONLY]}, "decoder": BYTE_LEVEL,
                   "post_processor": {"type": "Sequence", "processors": [BYTE_LEVEL, template((names[0], n + 2), None)]}}


def qwen():
    pre = pre_tokenizers.Sequence([pre_tokenizers.Split(tokenizers_regex(QWEN), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    made = byte_level(1000, pre=pre)
    n = len(made["model"]["vocab"])
    made["added_tokens"] = [added(name, n + i) for i, name in enumerate(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])]
    return made | {"normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split(QWEN), BYTE_LEVEL_ONLY]},
                   "decoder": BYTE_LEVEL_ONLY, "post_processor": BYTE_LEVEL_ONLY}


def sentencepiece_bpe(size):
    """A vocabulary as Llama 2's: unknown, start, end, bytes, merged pieces, characters."""
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, limit_alphabet=200)
    made = train(models.BPE(), trainer, pre_tokenizers.Metaspace())["model"]
    names = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    pieces = ["▁" * 2 ** k for k in range(1, 5)] + list(made["vocab"])
    merges = [["▁" * 2 ** k, "▁" * 2 ** k] for k in range(4)] + made["merges"]
    return {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(dict.fromkeys(names + pieces))}, "merges": merges}


def wrap(model, **parts):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
            "post_processor": None, "decoder": None, "model": model} | parts


SPIECE_DECODER = {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}


def llama2(model):
    return wrap(model, added_tokens=[added(name, i, normalized=i == 2) for i, name in enumerate(["<unk>", "<s>", "</s>"])],
                normalizer={"type": "Sequence", "normalizers": [
                    {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
                post_processor=template(("<s>", 1), None), decoder=SPIECE_DECODER)


def llama2_metaspace(model):
    return wrap(model, added_tokens=[added(name, i) for i, name in enumerate(["<unk>", "<s>", "</s>"])],
                pre_tokenizer={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
                post_processor=template(("<s>", 1), None), decoder=SPIECE_DECODER)


def bert():
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=1200, special_tokens=names, show_progress=False, limit_alphabet=300)
    made = train(models.WordPiece(unk_token="[UNK]"), trainer, pre_tokenizers.BertPreTokenizer(), normalizers.BertNormalizer())
    return made | {"post_processor": template(("[CLS]", 2), None, ("[SEP]", 3)), "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}}


def charsmap():
    """SentencePiece's compiled form of a few rules."""
    import sentencepiece
    rules = {"ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "…": "...", "\u00a0": " ", "\u3000": " ", "\t": " ", "\n": " ", "\r": " ", "\r\n": " ", "e\u0301": "\u00e9",
             "½": "1/2", "™": "TM", "\u212b": "\u00c5", "\uff76": "\u30ab", "\uff76\uff9e": "\u30ac", "\u1100\u1161": "\uac00", "\u200b": "", "İ": "I\u0307"}
    rules |= {chr(c): chr(c - 0xFEE0) for c in range(0xFF01, 0xFF5F)}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rules.tsv"
        table.write_text("".join(" ".join(f"{ord(c):X}" for c in k) + "\t" + " ".join(f"{ord(c):X}" for c in v) + "\n" for k, v in rules.items()))
        (Path(folder) / "text.txt").write_text("".join(c for line in training_text() for c in line if c == "\n" or " " <= c < "\x7f")[:200000])
        prefix = str(Path(folder) / "m")
        sentencepiece.SentencePieceTrainer.train(input=str(Path(folder) / "text.txt"), model_prefix=prefix, vocab_size=300, hard_vocab_limit=False,
                                                 normalization_rule_tsv=str(table), minloglevel=2)
        from sentencepiece import sentencepiece_model_pb2
        proto = sentencepiece_model_pb2.ModelProto()
        proto.ParseFromString(Path(prefix + ".model").read_bytes())
        return base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()


def unigram(size, specials, unk):
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=specials, unk_token=unk, show_progress=False)
    return train(models.Unigram(), trainer, pre_tokenizers.Metaspace(), normalizers.NFKC())["model"]


def t5(table):
    model = unigram(1500, ["<pad>", "</s>", "<unk>"], "<unk>")
    n = len(model["vocab"])
    extra = [added(f"<extra_id_{i}>", n + i) for i in range(3)]
    marks = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    return wrap(model, added_tokens=[added("<pad>", 0), added("</s>", 1), added("<unk>", 2), *extra],
                normalizer={"type": "Sequence", "normalizers": [
                    {"type": "Precompiled", "precompiled_charsmap": table}, {"type": "Strip", "strip_left": False, "strip_right": True},
                    {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}]},
                pre_tokenizer=marks, post_processor=template(None, ("</s>", 1)), decoder=marks)


def unigram_bytes():
    """Unigram with byte fallback, behind pre-tokenizers of every other kind."""
    names = ["<unk>"] + [f"<0x{b:02X}>" for b in range(256)]
    model = unigram(1800, names, "<unk>") | {"byte_fallback": True}
    return wrap(model, added_tokens=[added("<unk>", 0)],
                normalizer={"type": "Sequence", "normalizers": [{"type": "Nmt"}, {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]},
                pre_tokenizer={"type": "Sequence", "pretokenizers": [
                    {"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "MergedWithPrevious"},
                    {"type": "Digits", "individual_digits": True}, split(r"[A-Z_]", "MergedWithNext"), split(r"[aeiou]+x", "Contiguous"),
                    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}]},
                decoder={"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}]})


def clip():
    pre = pre_tokenizers.Sequence([pre_tokenizers.Split(tokenizers_regex(CLIP), "removed", invert=True), pre_tokenizers.ByteLevel(False)])
    made = byte_level(1100, ["<|startoftext|>", "<|endoftext|>"], pre, end_of_word_suffix="</w>")
    # Characters at the end of a word have tokens of their own.
    vocab = made["model"]["vocab"]
    for c in sorted(pre_tokenizers.ByteLevel.alphabet()):
        vocab.setdefault(c + "</w>", len(vocab))
    made["model"]["unk_token"] = "<|endoftext|>"
    return made | {"normalizer": {"type": "Sequence", "normalizers": [
                       {"type": "NFC"}, {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}, {"type": "Lowercase"}]},
                   "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split(CLIP, "Removed", True), BYTE_LEVEL]},
                   "post_processor": {"type": "RobertaProcessing", "sep": ["<|endoftext|>", 1], "cls": ["<|startoftext|>", 0],
                                      "trim_offsets": False, "add_prefix_space": False},
                   "decoder": {"type": "BPEDecoder", "suffix": "</w>"}}


def roberta():
    """GPT-2 with a space in front, a string split and BERT's post-processor."""
    made = byte_level(700, ["<s>", "</s>", "<mask>"])
    made["added_tokens"][2]["lstrip"] = True
    return made | {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                       {"type": "Split", "pattern": {"String": "--"}, "behavior": "Removed", "invert": False}, {**BYTE_LEVEL, "add_prefix_space": True}]},
                   "decoder": BYTE_LEVEL, "post_processor": {"type": "BertProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0]}}


def word_level():
    words = ["[UNK]", "the", "of", "return", "const", "if", "(", ")", ";", "=", "é", "—"]
    return wrap({"type": "WordLevel", "vocab": {w: i for i, w in enumerate(words)}, "unk_token": "[UNK]"}, pre_tokenizer={"type": "Whitespace"})


def tokenizers_regex(pattern):
    from tokenizers import Regex
    return Regex(pattern)


LINES = [
    b"", b" ", b"Hello, world! How's it going? I'LL see you at 12345.", "naïve café — “quoted” …".encode(), b"  leading and   inner\tspaces \n\n next\r\n",
    "Привет мир, שלום עולם, مرحبا, नमस्ते, 你好世界, こんにちは, 안녕하세요, ไทย".encode(), "👩‍👩‍👧‍👦 👍🏽 🇩🇪🇫🇷 ❤️".encode(), b"def f(x):\n    return x**2  # square\n",
    b"broken \xff\xc3 utf-8 \xe2\x82 here \xf0\x9f\x98", "e\u0301 x\u0323\u0301 ﬁ ﬃ ½ ① Å ｶﾞ \u3000 İ".encode(), b"<mask> a <mask><mask>b<pad>  c zebra zebras",
    b"<|begin_of_text|>user<|eot_id|> <|im_start|>x<|im_end|> <s>a</s> [MASK] [SEP] <extra_id_0>", b"\x00\x01\x7f null and control",
    b"a nevermerged whole thing--with--dashes", "▁▁ ▁a ▁".encode(), b"x" * 120, b"don't can't 's 'S", "the return of é — ( )".encode(),
]


def main():
    OUT.mkdir(exist_ok=True)
    spiece = sentencepiece_bpe(700)
    made = {"gpt2": gpt2(), "llama3": llama3(), "qwen": qwen(), "llama2": llama2(spiece), "llama2-metaspace": llama2_metaspace(spiece), "bert": bert(),
            "t5": t5(charsmap()), "unigram-bytes": unigram_bytes(), "clip": clip(), "roberta": roberta(), "word-level": word_level()}
    expected = {"texts": [base64.b64encode(t).decode() for t in LINES], "tokenizers": {}}
    for name, data in made.items():
        path = OUT / f"{name}.json"
        path.write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")
        reference = Tokenizer.from_file(str(path))
        ids = [reference.encode(t.decode(errors="replace")).ids for t in LINES]
        # The decoder of suffixes fails on nothing at all.
        expected["tokenizers"][name] = {"ids": ids, "texts": [reference.decode(i) if i else "" for i in ids],
                                        "plain": [len(reference.encode(t.decode(errors="replace"), add_special_tokens=False).ids) for t in LINES]}
        print(f"{name}: {len(data['model']['vocab'])} tokens, {path.stat().st_size / 1e3:.0f} KB")
    (OUT.parent / "expected.json").write_text(json.dumps(expected, separators=(",", ":")).replace('"ids"', '\n"ids"') + "\n")


if __name__ == "__main__":
    main()
