r"""The final answer of a completion: one rule, shared by every task, in training and in evaluation.

The final answer is the last ``\boxed{...}`` or ``<answer>...</answer>`` after the thinking ends. Fields with
nothing but "or", "and", commas and the like between them are one answer that holds alternatives, so they equal
no single value; nor do numbers of a plain reply with nothing but such words between them. A completion that was
cut, inside its thinking or inside its answer field, has no answer.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice

_THINKING = r"think(?:ing)?|thought|reason(?:ing)?|reflection|scratchpad|analysis"
_THINK_OPEN = re.compile(rf"<\s*(?:{_THINKING})\s*>|\[THINK\]", re.IGNORECASE)
_THINK_CLOSE = re.compile(rf"<\s*/\s*(?:{_THINKING})\s*>|\[/THINK\]", re.IGNORECASE)
_FIELD = re.compile(r"\\f?boxed\s*\{|<\s*answer\s*>", re.IGNORECASE)
_TAG = re.compile(r"<\s*(/?)\s*answer\s*>", re.IGNORECASE)
_BRACES = re.compile(r"\\[{}\\]|[{}]")
_COMMAND = re.compile(r"\\(?:text|mathrm|textbf|mbox)\b|\\[a-zA-Z]+|\\.")
_WORD = re.compile(r"[^\W\d_]+")
_CONNECTORS = frozenset(
    ["or", "and", "either", "maybe", "perhaps", "possibly", "alternatively", "also", "nor", "else", "vs", "versus"]
) | frozenset(["o", "y", "e", "ou", "et", "oder", "und", "или", "и", "或", "或者", "和", "及", "または", "か", "と"])
_MINUS = dict.fromkeys(map(ord, "−‐‑‒–﹣－"), "-")
_INTEGER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.0+)?", re.ASCII)
_NUMBER = re.compile(r"(?:(?<![\w)\]}])[+-])?\d+(?:,\d{3})*(?!\d)(?:\.\d+)?", re.ASCII)
_LIST_SIGNS = frozenset({",", ";", "/", "|", "&", "、"})
_CURRENCY = re.compile(r"([+-]?)\s*\\?\$")
_LONGEST_NUMBER = 400
_LONGEST_PLAIN = 10_000


@dataclass(frozen=True, slots=True)
class _Field:
    start: int
    content: tuple[int, int]
    end: int


def visible(text: str, opened: bool = False) -> str | None:
    """Return what follows the thinking, or None where the thinking never ends.

    Args:
        text: The completion.
        opened: Whether the prompt had already opened the thinking.
    """
    start = 0
    for match in _THINK_CLOSE.finditer(text):
        start = match.end()
    if start == 0 and opened:
        return None
    if _THINK_OPEN.search(text, start):
        return None
    return text[start:]


@lru_cache(maxsize=4)
def final_answer(text: str, opened: bool = False) -> str | None:
    r"""Return the final answer of a completion, or None where it has none.

    Args:
        text: The completion, of any length; the time taken is linear in it.
        opened: Whether the prompt had already opened the thinking.

    Returns:
        The content of the last field, stripped. Neighbouring fields that differ come back together with what
        joins them (``5 or 6``), which equals no single value.
    """
    text_after = visible(text, opened)
    if text_after is None:
        return None
    fields = _fields(text_after)
    if not fields:
        return None
    neighbours = [fields[-1]]
    for field in reversed(fields[:-1]):
        if not _joins(text_after[field.end : neighbours[-1].start]):
            break
        neighbours.append(field)
    neighbours.reverse()
    contents = [_unwrap(text_after[slice(*field.content)]) for field in neighbours]
    if len(set(contents)) == 1:
        return contents[0]
    joined = contents[0]
    for before, field, content in zip(neighbours, neighbours[1:], contents[1:], strict=False):
        gap = text_after[before.end : field.start].strip() or ";"
        joined += f" {gap} {content}"  # never glued: "12" and "500" with a comma between are not 12,500
    return joined.strip()


def plain_answer(text: str, opened: bool = False) -> str | None:
    """Return the last line with anything on it after the thinking, for replies that were to be the answer alone.

    Args:
        text: The completion.
        opened: Whether the prompt had already opened the thinking.

    Returns:
        The line, stripped; None where there is none, or where an answer field was cut.
    """
    after = visible(text, opened)
    if after is None or _FIELD.search(after):
        return None
    return next((line.strip() for line in reversed(after.splitlines()) if line.strip()), None)


def last_number(text: str, opened: bool = False) -> str | None:
    """Return the last number of a plain reply, or the one after its last ``####``; None where there is none.

    A number has a digit and keeps its sign; a sign right after a digit, letter or bracket is a minus between two
    numbers.

    Args:
        text: The completion.
        opened: Whether the prompt had already opened the thinking.
    """
    after = visible(text, opened)
    if after is None or _FIELD.search(after):
        return None
    after = after.translate(_MINUS)
    if (mark := after.rfind("####")) >= 0:
        marked = list(islice(_NUMBER.finditer(after, mark + 4), 2))
        if marked:
            hedged = len(marked) == 2 and _offers(after[marked[0].end() : marked[1].start()])
            return None if hedged else marked[0].group()
    before = last = None
    for match in _NUMBER.finditer(after):
        before, last = last, match
    if last is None or (before is not None and _offers(after[before.end() : last.start()])):
        return None
    return last.group()


def _offers(gap: str) -> bool:
    """Tell whether the text between two numbers makes them alternatives or a list (``5 or 6``, ``5, 6``, ``5/6``)."""
    words = _WORD.findall(gap)
    return _joins(gap) if words else gap.strip(" $*`") in _LIST_SIGNS


def _fields(text: str) -> list[_Field] | None:
    """Return the outermost answer fields in order, or None where the last one is not closed."""
    fields: list[_Field] = []
    position = 0
    while match := _FIELD.search(text, position):
        end = _close_box(text, match.end()) if match.group().endswith("{") else _close_tag(text, match.end())
        if end is None:
            return None
        fields.append(_Field(match.start(), (match.end(), end[0]), end[1]))
        position = end[1]
    return fields


def _close_box(text: str, position: int) -> tuple[int, int] | None:
    depth = 1
    for match in _BRACES.finditer(text, position):
        token = match.group()
        depth += (token == "{") - (token == "}")
        if depth == 0:
            return match.start(), match.end()
    return None


def _close_tag(text: str, position: int) -> tuple[int, int] | None:
    depth = 1
    for match in _TAG.finditer(text, position):
        depth += -1 if match.group(1) else 1
        if depth == 0:
            return match.start(), match.end()
    return None


def _unwrap(content: str) -> str:
    """Take a field out of the field that holds nothing else: an answer tag around a box."""
    content = content.strip()
    for _ in range(4):
        match = _FIELD.match(content)
        if match is None:
            return content
        box = match.group().endswith("{")
        end = _close_box(content, match.end()) if box else _close_tag(content, match.end())
        if end is None or end[1] != len(content):
            return content
        content = content[match.end() : end[0]].strip()
    return content


def _joins(gap: str) -> bool:
    if len(gap) > 200:
        return False
    return all(word.lower() in _CONNECTORS for word in _WORD.findall(_COMMAND.sub(" ", gap)))


def plain(text: str) -> str:
    """Return ``text`` without surrounding blanks, math delimiters, bold marks and a final full stop.

    Characters of another width or font become the usual ones (NFKC), but superscripts, subscripts, fractions and
    circled numbers stay what they are: 4² is not 42.
    """
    text = text[:_LONGEST_PLAIN]
    if not text.isascii():
        text = "".join(map(_usual, text)).translate(_MINUS)
    text = text.strip()
    for left, right in (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"), ("`", "`")):
        if len(text) >= len(left) + len(right) and text.startswith(left) and text.endswith(right):
            text = text[len(left) : -len(right)].strip()
    return text.rstrip(".").rstrip()


@lru_cache(maxsize=4096)
def _usual(sign: str) -> str:
    if unicodedata.decomposition(sign).startswith(("<super>", "<sub>", "<fraction>", "<circle>", "<square>")):
        return sign
    return unicodedata.normalize("NFKC", sign)


def integer(text: str) -> int | None:
    """Return the integer that ``text`` is, or None; thousands separators only in groups of three."""
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    if len(text) > _LONGEST_PLAIN:
        return None
    text = plain(text).replace("{,}", ",").replace(r"\,", ",")
    text = _CURRENCY.sub(r"\1", text, count=1) if _CURRENCY.match(text) else text
    if len(text) > _LONGEST_NUMBER or not _INTEGER.fullmatch(text):
        return None
    return int(Fraction(text.replace(",", "")))


def same_text(answer: str, gold: str) -> bool:
    """Tell whether two texts are equal but for case, runs of blanks and what :func:`plain` takes away."""
    if len(answer) > _LONGEST_PLAIN and answer.strip() != gold.strip():
        return False
    return plain(answer).casefold().split() == plain(gold).casefold().split()
