"""What a word, a sentence, a paragraph and a line of a reply are; the prompts say the same in words."""

from __future__ import annotations

import html
import re
import unicodedata

SENTENCE_MARKS = ".!?…。！？؟।"

_WORD = re.compile(r"\S+")
_ALPHANUMERIC = re.compile(r"[^\W_]")
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_SENTENCE_END = re.compile(rf"(?<![{SENTENCE_MARKS}])[{SENTENCE_MARKS}]++[\"'”’»)\]*_]*+(?=\s|\Z)")
_SYMBOLS = "\u3005-\u30ff\u3400-\u9fff\U00020000-\U0002ffff"  # Chinese and Japanese: no blanks between words
_TOKEN = re.compile(rf"[{_SYMBOLS}]|[^\W_{_SYMBOLS}]+")
_TAG = re.compile(r"<[/!]?[A-Za-z-][^<>]{0,200}+>")
# What Unicode calls ignorable (format characters, joiners, variation selectors), and controls that are no blanks.
_HIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_LIKE_BLANKS = re.compile("[\u115f\u1160\u2800\u3164\uffa0]")
_LOOSE_MARKS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]+")
_MOST_MARKS = 8
_ORDINALS = str.maketrans("", "", "ªº")


def clean(reply: str) -> str:
    """Return ``reply`` with every line break a newline, and without blanks or a byte order mark around it."""
    return reply.replace("\r\n", "\n").replace("\r", "\n").strip().removeprefix("\ufeff").strip()


def shown(reply: str) -> str:
    """Return ``reply`` as :func:`clean` does, without what nobody sees."""
    return clean(_LIKE_BLANKS.sub(" ", _HIDDEN.sub("", reply)))


def folded(text: str) -> str:
    """Return ``text`` as it is compared with what must not come: letters in full width or mathematical ones are plain.

    Marks that belong to no letter (a line through it, a circle around it) are left out.
    """
    return text if text.isascii() else _LOOSE_MARKS.sub("", normalized(text))


def normalized(text: str) -> str:
    """Return ``text`` in the form NFKC, in linear time: of a long run of combining marks only the first ones stay."""
    if text.isascii():
        return text
    kept, run = [], 0
    for letter in text:  # they are put into order in quadratic time
        run = run + 1 if unicodedata.combining(letter) else 0
        if run <= _MOST_MARKS:
            kept.append(letter)
    return unicodedata.normalize("NFKC", "".join(kept))


def words(text: str) -> list[str]:
    """Return what stands between blanks and holds a letter or a digit."""
    return [word for word in _WORD.findall(text) if _ALPHANUMERIC.search(word)]


def tokens(text: str) -> list[str]:
    """Return the runs of letters and digits in small letters; a Chinese or Japanese character is one by itself."""
    return _TOKEN.findall(text.lower())


def sentences(text: str) -> list[str]:
    """Return the pieces that end at ``.``, ``!`` or ``?`` before a blank or the end; a rest without a mark is one too.

    Pieces without a letter or a digit are none.
    """
    pieces, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        pieces.append(text[start : end.end()])
        start = end.end()
    pieces.append(text[start:])
    return [piece.strip() for piece in pieces if _ALPHANUMERIC.search(piece)]


def paragraphs(text: str) -> list[str]:
    """Return the blocks between blank lines."""
    return [block for block in _BLANK_LINES.split(text) if block.strip()]


def lines(text: str) -> list[str]:
    """Return the lines with anything on them."""
    return [line for line in text.split("\n") if line.strip()]


def is_filled(text: str) -> bool:
    """Tell whether ``text`` shows a letter or a digit; ``&nbsp;`` and ``<br>`` show none."""
    if "<" in text or "&" in text:
        text = shown(_TAG.sub("", html.unescape(text)))
    return _ALPHANUMERIC.search(text) is not None


def has_capital(text: str) -> bool:
    """Tell whether a letter of ``text`` is a capital, of whatever kind."""
    return any(map(str.isupper, text)) or any(letter.istitle() for letter in text)


def has_small(text: str) -> bool:
    """Tell whether a letter of ``text`` is small, of whatever kind; ``ª`` and ``º`` are signs."""
    return any(map(str.islower, text.translate(_ORDINALS)))


def occurrences(text: str, word: str) -> int:
    """Return how often ``word`` stands in ``text`` as a word of its own, in any case; ``_`` is no part of a word."""
    return len(re.findall(rf"(?<![^\W_]){re.escape(word.lower())}(?![^\W_])", text.lower()))
