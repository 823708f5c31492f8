"""Texts that are almost queries or schemas, and some that are nothing at all, from a seed: for what must never fail but by
a diagnostic.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|[$@]?\w+|\s+|.', re.DOTALL)

ODD = [
    *("\x00", "\x1b", "\x7f", "\u00a0", "\u0085", "\u2028", "\u200b", "\u202e", "\u3000", "\ufeff", "\ufffd", "\uffff"),
    *("é", "e\u0301", "ß", "İ", "ı", "ſ", "K", "ⅷ", "٣", "१", "²", "🚢", "👩\u200d🚀", "\U0010ffff", "字"),
    *(
        "\r",
        "\r\n",
        "\t",
        "\\",
        "\\u0041",
        '"',
        "'",
        "`",
        "#",
        "/*",
        "*/",
        "//",
        "/* /* */",
        ";",
        "..",
        "...",
        "->",
        "--",
    ),
]
NUMBERS = [
    *(
        "9" * 19,
        "9" * 20,
        "9" * 400,
        "9" * 5_000,
        "0" * 5_000 + "1",
        "-" + "9" * 5_000,
        "1e309",
        "1e-400",
        "1e99999999999",
    ),
    *("1." + "1" * 5_000, "-0", "-0.0", "00", "1e+5", "1.e5", ".5", "5-3", "--1", "18446744073709551616", "2147483648"),
    *("-9223372036854775808", "0x10", "1_000", "16777217", "3.4028236e38", "5e-324"),
]
STRINGS = [
    '"' + "a" * 60_000 + '"',
    '"' + "é" * 20_000 + '"',
    '"\\q"',
    '"',
    '"\n"',
    '"\ud800"',
    '"' + "(" * 2_000 + '"',
    '""',
]
NAMES = [
    "a" * 60_000,
    "$" + "v" * 5_000,
    "A" * 5_000,
    "__a",
    "_",
    "$_",
    "$",
    "@",
    "@id",
    "@" + "a" * 5_000,
    "a.b.c",
    "Éa",
    "aé",
]

WORDS = """query match return order limit insert update set delete where from into exists count sum avg min max asc desc as now
date datetime search fuzzy match_text nearest bm25 rrf contains starts_with branch explain show reset all list merge create
and or not is null in true false interface node edge implements enum Vector String Bool I32 I64 U32 U64 F32 F64 Date DateTime
Blob @key @unique @index @range @check @card @embed @rename_from @description @instruction @mcp @src @dst @id { } ( ) [ ] : ,
. | * = != < <= > >= ; ? -> ..""".split()


def kind_of(token: str) -> str:
    """What may stand in a token's place: one letter for a kind, "" for what has no like."""
    first = token[0]
    if token in WORDS:
        return "t" if token in WORDS[WORDS.index("String") : WORDS.index("Blob") + 1] else ""
    if token in ("=", "!=", "<", ">"):
        return "="
    if first in '"$@':
        return first
    return "9" if first.isdigit() else "A" if first.isupper() else "a" if first.isalpha() else ""


class Garbler:
    """Makes one text after the other out of those it is given."""

    def __init__(self, seed: int, texts: Sequence[str]) -> None:
        self.rnd = random.Random(seed)
        self.texts = [text for text in texts if text]
        self.tokens = [TOKEN.findall(text) for text in self.texts]
        self.kinds: dict[str, list[str]] = {}
        for token in sorted({token for tokens in self.tokens for token in tokens}):
            self.kinds.setdefault(kind_of(token), []).append(token)
        self.makers: list[Callable[[], str]] = [
            *[self.alike] * 10,
            *[self.spliced] * 6,
            *[self.scratched] * 4,
            *[self.swollen] * 2,
            *[self.nested] * 2,
            self.cut,
            self.joined,
            self.words,
            self.noise,
        ]

    def text(self) -> str | bytes:
        made = self.rnd.choice(self.makers)()
        if self.rnd.random() < 0.03:
            return self.mangled(made.encode("utf-8", "surrogatepass"))
        return made

    def alike(self) -> str:
        """A text with tokens of others for those of the same kind: mostly well formed, and mostly wrong."""
        rnd, tokens = self.rnd, list(self.rnd.choice(self.tokens))
        changeable = [at for at, token in enumerate(tokens) if kind_of(token)]
        for at in rnd.choices(changeable, k=rnd.choice([1, 1, 2, 3, 8])) if changeable else ():
            kind = kind_of(tokens[at])
            own = [token for token in tokens if kind_of(token) == kind]
            tokens[at] = rnd.choice(own if rnd.random() < 0.5 else self.kinds[kind])
        return "".join(tokens)

    def spliced(self) -> str:
        """A text with tokens of others in some places."""
        rnd, tokens = self.rnd, list(self.rnd.choice(self.tokens))
        for _ in range(rnd.choice([1, 1, 1, 2, 2, 5, 20])):
            at = rnd.randrange(len(tokens) + 1)
            other = rnd.choice(self.tokens)
            begin = rnd.randrange(len(other))
            tokens[at : at + rnd.randrange(4)] = other[begin : begin + rnd.choice([0, 1, 1, 2, 6])]
        return "".join(tokens)

    def scratched(self) -> str:
        """A text with characters dropped, doubled, swapped or replaced."""
        rnd, text = self.rnd, self.rnd.choice(self.texts)
        for _ in range(rnd.choice([1, 1, 2, 3, 10])):
            at = rnd.randrange(len(text) + 1)
            kept = text[at : at + rnd.randrange(3)]
            text = (
                text[:at]
                + rnd.choice(["", kept * 2, kept[::-1], rnd.choice(ODD), rnd.choice(WORDS)])
                + text[at + len(kept) :]
            )
        return text

    def swollen(self) -> str:
        """A text with a token that is far too large, or of an odd kind."""
        rnd, tokens = self.rnd, list(self.rnd.choice(self.tokens))
        at = rnd.randrange(len(tokens) + 1)
        tokens[at : at + rnd.randrange(2)] = [rnd.choice([*NUMBERS, *STRINGS, *NAMES, *ODD])]
        return "".join(tokens)

    def nested(self) -> str:
        """A text with a part of it inside many brackets, or repeated in a long chain."""
        rnd, tokens = self.rnd, list(self.rnd.choice(self.tokens))
        begin = rnd.randrange(len(tokens))
        end = begin + rnd.randrange(1, 8)
        part = "".join(tokens[begin:end]) or "1"
        depth = rnd.choice([2, 99, 100, 101, 102, 400])
        before, after = rnd.choice(
            [
                *[("(", ")"), ("[", "]"), ("{", "}"), ("not ", ""), ("not { ", " }"), ("exists { $v: Vessel ", " }")],
                *[
                    ("count { $v: Vessel ", " } > 1"),
                    ("search(", ', "a")'),
                    ("rrf(bm25(", ', "a"), bm25($v.title, "a"))'),
                ],
                *[
                    ("count(", ")"),
                    ("contains(", ', "a")'),
                    ("$v.imo = 1 and ", ""),
                    ("$v.imo = 1 or ", ""),
                    ("1 = ", ""),
                ],
                *[
                    ("(", ""),
                    ("", ")"),
                    ("[[", "]"),
                    ("{", ""),
                    ("/* ", " */"),
                    ('"', ""),
                    ("Vector(", ")"),
                    ("enum(", ")"),
                ],
            ]
        )
        tokens[begin:end] = [before * depth, part, after * depth]
        return "".join(tokens)

    def cut(self) -> str:
        text = self.rnd.choice(self.texts)
        ends = sorted(self.rnd.randrange(len(text) + 1) for _ in range(2))
        return text[ends[0] : ends[1]] if self.rnd.random() < 0.5 else text[: ends[1]]

    def joined(self) -> str:
        some = [self.rnd.choice(self.texts) for _ in range(self.rnd.choice([2, 2, 3]))]
        return self.rnd.choice(["", " ", "\n", ";", "explain "]).join(some)

    def words(self) -> str:
        vocabulary = [*WORDS, "$v", "$w", "v", "title", "Vessel", "Port", "1", "2.5", '"a"', *ODD[:4]]
        return self.rnd.choice(["", " "]).join(self.rnd.choices(vocabulary, k=self.rnd.randrange(40)))

    def noise(self) -> str:
        return "".join(
            chr(self.rnd.choice([self.rnd.randrange(128), self.rnd.randrange(0x2100), 0x1F600])) for _ in range(30)
        )

    def mangled(self, text: bytes) -> bytes:
        at = self.rnd.randrange(len(text) + 1)
        return (
            text[:at]
            + self.rnd.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", b"\xef\xbb\xbf"])
            + text[at:]
        )
