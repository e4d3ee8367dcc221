"""What a word, a sentence, a paragraph and a line of a reply are; the prompts say the same in words."""

from __future__ import annotations

import re

SENTENCE_MARKS = ".!?…。！？؟।"

_WORD = re.compile(r"\S+")
_ALPHANUMERIC = re.compile(r"[^\W_]")
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_SENTENCE_END = re.compile(rf"(?<![{SENTENCE_MARKS}])[{SENTENCE_MARKS}]++[\"'”’»)\]*_]*+(?=\s|\Z)")


def clean(reply: str) -> str:
    """Return ``reply`` with every line break a newline, and without blanks around it."""
    return reply.replace("\r\n", "\n").replace("\r", "\n").strip()


def words(text: str) -> list[str]:
    """Return what stands between blanks and holds a letter or a digit."""
    return [word for word in _WORD.findall(text) if _ALPHANUMERIC.search(word)]


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


def occurrences(text: str, word: str) -> int:
    """Return how often ``word`` stands in ``text`` as a word of its own, in any case."""
    return len(re.findall(rf"(?<!\w){re.escape(word.lower())}(?!\w)", text.lower()))
