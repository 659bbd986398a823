"""Mixed text for comparing tokenizers: the same bytes each time.

Scripts, emoji, code, odd white space, accents composed and not, control characters and
ill-formed UTF-8; `records` yields texts of about 2 KB as bytes.
"""
import random
import unicodedata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# First and last letters of scripts, for words of their characters.
BLOCKS = [
    (0x61, 0x7A), (0x41, 0x5A), (0xC0, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x531, 0x586), (0x5D0, 0x5EA),
    (0x620, 0x64A), (0x904, 0x939), (0x985, 0x9B9), (0xE01, 0xE5B), (0x10A0, 0x10FF), (0x1200, 0x1248),
    (0x1E00, 0x1EFF), (0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0xF900, 0xFA6D),
    (0xFF01, 0xFF5E), (0x1D400, 0x1D4FF), (0x20000, 0x2A6D6), (0x2460, 0x24FF), (0xFB00, 0xFB06), (0x13A0, 0x13F5),
]
SPACES = [" ", " ", " ", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\u00a0", "\u2003", "\u3000", "\u200b", "\u2028",
          "\u0085", "\u1680", "\u202f", "\ufeff", "\x0b", "\x0c", "        ", " \n", "\n ", "\u180e", "\u2060"]
EMOJI = ["😀", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "🇫🇷🇬🇧", "❤️", "☃", "🏳️‍🌈", "🧑🏿‍🚀", "1️⃣", "™", "…", "—", "“quoted”", "‘s", "'s", "'S", "'ſ",
         "don't", "I'LL", "we've", "1234567", "3.14159", "٣٤٥", "½", "Ⅷ", "a_b", "x\u0301\u0323", "e\u0301", "İstanbul",
         "ﬁne", "ﬃ", "K\u212a", "\u1e9b\u0323", "ǅ", "ß", "ΑΣ", "가각", "각", "クロネコ", "ｶﾞ"]
CONTROLS = ["\x00", "\x01", "\x1f", "\x7f", "\u200d", "\u200e", "\ufffd", "\u00ad", "\ue000", "\U000e0001", "\ufe0f"]
BROKEN = [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80\x80"]


def code_lines():
    """Of the project's own files: others have characters that are newer than what the libraries know."""
    for path in sorted(ROOT.glob("*/**/*.cpp")) + sorted(ROOT.glob("*/**/*.py")):
        if not path.relative_to(ROOT).parts[0].startswith(("build", ".")):
            yield from path.read_text(errors="replace").splitlines(keepends=True)


def word(rng):
    low, high = rng.choice(BLOCKS if rng.random() < 0.5 else BLOCKS[:1])
    text = "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 9)))
    if rng.random() < 0.1:
        text = unicodedata.normalize("NFD", text)
    if rng.random() < 0.1:
        text = text.capitalize()
    return text


def pieces(rng, lines, specials):
    kind = rng.random()
    if kind < 0.35:
        return word(rng).encode()
    if kind < 0.62:
        return rng.choice(SPACES).encode()
    if kind < 0.80:
        return lines[rng.randrange(len(lines))].encode(errors="replace")
    if kind < 0.88:
        return rng.choice(EMOJI).encode()
    if kind < 0.93:
        return chr(rng.choice(b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~0123456789")).encode() * rng.randint(1, 4)
    if kind < 0.95:
        return rng.choice(CONTROLS).encode()
    if kind < 0.96:
        return rng.choice(BROKEN)
    if kind < 0.98 and specials:
        return (rng.choice(["", " ", "  ", "\n"]) + rng.choice(specials) + rng.choice(["", " ", "  ", "x"])).encode()
    # Any character at all that the tables of every library know: those of `tokenizers` are as old as Unicode 8.
    while True:
        code = rng.randrange(0x20, 0x30000)
        if not 0xD800 <= code < 0xE000 and unicodedata.ucd_3_2_0.category(chr(code)) != "Cn":
            return chr(code).encode()


def records(megabytes, seed=1, specials=()):
    rng = random.Random(seed)
    lines = list(code_lines())
    total = 0
    yield from (b"", b" ", b"  ", b"\n", b"Hello, world!", "▁a ▁ b".encode(), b"\xff")
    while total < megabytes * 1e6:
        parts, size = [], 0
        while size < 2000:
            parts.append(pieces(rng, lines, list(specials)))
            size += len(parts[-1])
        text = b"".join(parts)
        total += len(text)
        yield text
