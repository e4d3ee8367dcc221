r"""An answer as it is written: the same number or text in Unicode, Markdown and LaTeX."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable
from functools import lru_cache

_MINUS = dict.fromkeys(map(ord, "−‐‑‒–﹣－"), "-")
_INTEGER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.0+)?", re.ASCII)
_CURRENCY = re.compile(r"([+-]?)\s*\\?\$")
_SIGN = re.compile(r"([+-])\s+")
_SPACES = re.compile(r"\{\\[,;: ]\}|\\[,;: ]|\\q?quad(?![a-zA-Z])|(?<!\\)~")
_NARROW = re.compile(r"\{?\\!\}?")
_STYLE = re.compile(r"\\(?:displaystyle|textstyle|bf|rm|large|Large)(?![a-zA-Z])\s*")
_WRAPPER = re.compile(r"\\(?:text|mathrm|mathbf|mathit|mathsf|textbf|textit|textrm|mbox|hbox|operatorname)\s*\{")
_PAIRS = (
    ("$$", "$$"),
    ("$", "$"),
    (r"\(", r"\)"),
    (r"\[", r"\]"),
    ("***", "***"),
    ("**", "**"),
    ("__", "__"),
    ("`", "`"),
    ("~", "~"),
)
_MOST_WRAPPERS = 8
_LONGEST_NUMBER = 400
_LONGEST_PLAIN = 10_000


def usual(text: str) -> str:
    """Return ``text`` in usual characters: NFC, without characters that do not show, each of the usual width.

    Superscripts, subscripts, fractions and circled numbers stay what they are: 4² is not 42.
    """
    if text.isascii():
        return text
    return "".join(map(_usual, unicodedata.normalize("NFC", text))).translate(_MINUS)


@lru_cache(maxsize=4096)
def _usual(sign: str) -> str:
    if unicodedata.category(sign) == "Cf":
        return ""
    if unicodedata.decomposition(sign).startswith(("<super>", "<sub>", "<fraction>", "<circle>", "<square>")):
        return sign
    return unicodedata.normalize("NFKC", sign)


def spaced(text: str) -> str:
    r"""Return ``text`` with the blanks of LaTeX (``\,``, ``\ ``, ``~``, ``\quad``) as blanks."""
    return _SPACES.sub(" ", _NARROW.sub("", text))


def plain(text: str) -> str:
    r"""Return ``text`` in usual characters, without what is around it and says nothing.

    That are blanks, math delimiters, bold marks, ``\text{...}`` and the like, single braces, and a final full stop.
    """
    text = usual(text[:_LONGEST_PLAIN]).strip()
    for _ in range(_MOST_WRAPPERS):
        before = text
        text = _without_pair(text)
        while not text.startswith("~") and (space := _SPACES.match(text)):  # ~5 is about 5
            text = text[space.end() :].lstrip()
        if text.endswith((r"\,", r"\;", r"\:", r"\!")):
            text = text[:-2]
        if style := _STYLE.match(text):
            text = text[style.end() :]
        if text.endswith(".") and not text.endswith(".."):
            text = text[:-1]
        text = text.strip()
        if text == before:
            break
    return text.rstrip(".").rstrip()


def _without_pair(text: str) -> str:
    for left, right in _PAIRS:
        if len(text) >= len(left) + len(right) and text.startswith(left) and text.endswith(right):
            return text[len(left) : -len(right)].strip()
    wrapper = _WRAPPER.match(text)
    if text.endswith("}") and (wrapper or text.startswith("{")):
        inside = text[wrapper.end() if wrapper else 1 : -1]
        if not set(inside) & set("{}" if wrapper else "{}:,\"'"):
            return inside.strip()
    return text


def integer(text: str) -> int | None:
    """Return the integer that ``text`` is, or None; thousands separators only in groups of three."""
    digits = text[1:] if text.startswith("-") else text
    if len(digits) < 16 and digits.isascii() and digits.isdigit():
        return int(text)
    if len(text) > _LONGEST_PLAIN:
        return None
    text = plain(text)
    if text.startswith("(") and text.endswith(")"):
        text = plain(text[1:-1])
    text = _NARROW.sub("", text).replace("{,}", ",").replace(r"{\,}", ",").replace(r"\,", ",")
    text = _CURRENCY.sub(r"\1", text, count=1) if _CURRENCY.match(text) else text
    text = _SIGN.sub(r"\1", text, count=1) if _SIGN.match(text) else text
    if len(text) > _LONGEST_NUMBER or not _INTEGER.fullmatch(text):
        return None
    return int(text.replace(",", "").partition(".")[0])


def same_text(answer: str, gold: str) -> bool:
    """Tell whether two texts are equal but for case, runs of blanks and what :func:`plain` takes away."""
    if len(answer) > _LONGEST_PLAIN and answer.strip() != gold.strip():
        return False
    return plain(answer).casefold().split() == plain(gold).casefold().split()


def key(text: str) -> Hashable:
    """Return what is equal for two ways to write one answer."""
    if len(text) > _LONGEST_PLAIN:
        return text.strip()
    number = integer(text)
    return tuple(plain(text).casefold().split()) if number is None else number
