"""The answer of a question: written from rows, and compared with what an agent says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tetrathlon.envs.grading.lists import encloses, split
from tetrathlon.envs.grading.rationals import rational
from tetrathlon.envs.grading.writing import integer, key, plain, same_text
from tetrathlon.envs.tools.sql.question import Question

_BETWEEN = ", "
_LEAST, _MOST_NAMES = 5, 8
_HALF_CENT = Fraction(1, 200)
_CLEAR = 0.0005
"""How far a number must be from where it could be rounded either way, and from the next one in a ranking."""
_LONGEST = 2_000
_WHOLE = re.compile(r"\d+", re.ASCII)
_PLACES = re.compile(r"\d+\.\d\d%?", re.ASCII)
_OR = re.compile(r"\bor\b", re.IGNORECASE)
_CURRENCY = re.compile(r"\A(?:\\?\$|[€£])\s?|\s?(?:\\?\$|[€£])\Z")
_QUOTES = "\"'“”‘’"


def write(question: Question, rows: Sequence[Sequence[Any]]) -> str | None:
    """Return the answer that the rows of a question's query give; None where it would be too easy or not the only one.

    Too easy are small counts and empty results. Not the only one is what ties, what two ways of rounding write
    differently, and a list in which a name comes twice.
    """
    if question.take and not _is_ranked(rows, question.take):
        return None
    rows = rows[: question.take] if question.take else rows
    if not question.ordered and not 2 <= len(rows) <= _MOST_NAMES:
        return None
    if question.shown == 1 and len({str(row[0]) for row in rows}) < len(rows):
        return None
    parts = []
    for value in (value for row in rows for value in row[: question.shown]):
        if isinstance(value, str):
            parts.append(value)
        elif isinstance(value, int) and value >= _LEAST:
            parts.append(str(value))
        elif isinstance(value, float) and value > 0 and abs(value * 100 % 1 - 0.5) > _CLEAR:
            parts.append(f"{value:.2f}")
        else:
            return None
    if question.percent:
        return None if parts[0] in ("0.00", "100.00") else f"{parts[0]}%"
    return _BETWEEN.join(parts if question.ordered else sorted(parts)) or None  # of SQLite's order nothing is promised


def request(question: Question, answer: str) -> str:
    """Return how a question asks for its answer to be written."""
    has_places = any(_PLACES.fullmatch(part) for part in answer.split(_BETWEEN))
    return f"Answer with {question.form}{', rounded to 2 decimals' if has_places else ''}."


def same(answer: str, gold: str, ordered: bool) -> bool:
    """Tell whether ``answer`` says what ``gold`` does.

    Whole numbers must be equal, others within half a cent: both ways of rounding, and no rounding, are right. A percent
    sign may be left out where it belongs, and stands nowhere else. Texts are equal but for case and marks around them.

    Args:
        answer: Of an agent, of any length.
        gold: What :func:`write` returned.
        ordered: Whether the order of its parts counts.
    """
    wanted = gold.split(_BETWEEN)
    if len(answer) > _LONGEST:
        return False
    if len(wanted) == 1:
        return _same_part(answer, gold)
    text = plain(answer)
    if text[:1] in ("(", "[", "{") and encloses(text):
        text = text[1:-1].strip()
    parts = split(text)
    if parts is None or len(parts) != len(wanted) or _OR.search(text):
        return False
    if not ordered:
        parts, wanted = _sorted(parts), _sorted(wanted)
    return all(_same_part(part, one) for part, one in zip(parts, wanted, strict=True))


def _is_ranked(rows: Sequence[Sequence[Any]], take: int) -> bool:
    """Tell whether the first rows, and those only, are first by the value in the second column."""
    values = [row[1] for row in rows[: take + 1]]
    if len(values) <= take:
        return False
    return all(a != b and (isinstance(a, str) or abs(a - b) > _CLEAR) for a, b in pairwise(values))


def _same_part(part: str, gold: str) -> bool:
    if _WHOLE.fullmatch(gold):
        return integer(part) == int(gold)
    if _PLACES.fullmatch(gold):
        number = rational(_CURRENCY.sub("", plain(part), count=1), points=True)
        has_sign = "%" in part or "percent" in part
        is_close = number is not None and abs(number - Fraction(gold.removesuffix("%"))) <= _HALF_CENT
        return is_close and (gold.endswith("%") or not has_sign)
    return same_text(_bare(part), gold)


def _sorted(parts: list[str]) -> list[str]:
    return sorted(map(_bare, parts), key=lambda part: str(key(part)))


def _bare(part: str) -> str:
    return plain(part).strip(_QUOTES)
