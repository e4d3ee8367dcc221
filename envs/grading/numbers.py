r"""The number, or the value, that a plain reply answers."""

from __future__ import annotations

import re

from tetrathlon.envs.grading.amounts import changes, is_second_choice, minus_word
from tetrathlon.envs.grading.answers import has_field
from tetrathlon.envs.grading.hedges import DOUBTS, is_denied, is_offer, starts_with_or, words
from tetrathlon.envs.grading.latex import VULGAR
from tetrathlon.envs.grading.rationals import PERCENT, RATIONAL
from tetrathlon.envs.grading.reading import read
from tetrathlon.envs.grading.thinking import visible
from tetrathlon.envs.grading.values import Equation
from tetrathlon.envs.grading.writing import usual

_NUMBER = re.compile(r"\d+(?:,\d{3}(?!\d))*+(?:\.\d+)?", re.ASCII)
_VALUE = re.compile(rf"{RATIONAL}(?:{PERCENT})?", re.ASCII)
_EMPHASIS = re.compile(
    r"(?<![\w)\]}*])(\*{1,3})(?=[^\s*])([^*\n]{1,200})(?<=[^\s*])\1(?![\w(*])|`([^`\n]{1,200})`"
    r"|(?<![\w\\}^])_(?=[^\s_])([^_\n{}]{1,200})(?<=[^\s_])_(?!\w)"
)
_CLOCK = re.compile(r"\s?o['’]clock\b", re.IGNORECASE)
"""No "or" of Italian."""
_TAG = re.compile(r"</?(?:b|strong|i|em|u|p|span|code)>", re.IGNORECASE)
_FRACTION = re.compile(r"\\[dtc]frac(?![a-zA-Z])")
_STATED = re.compile(
    r"(?:answers?|solutions?|roots?|values?|results?)(?: set| of [A-Za-z])? (?:is|are):?(?=[ *$])"
    r"(?!.*(?:answer|solution) is)(.+)",
    re.IGNORECASE,
)
_LETTER = re.compile(r"(?<![\\A-Za-z])[A-Za-z]")
_LEAD = re.compile(r"(?P<sign>[+-]?)(?P<blank>[^\S\n]{0,8})(?:\\?[$€£]\s?)?$")
_TIGHT_BEFORE = re.compile(r"[\w.^_{/*²±~√⁻]$|(?<!\S)[—―]$|\d:$|\w\($")
_RELATION_BEFORE = re.compile(r"(?:!=|(?<![-=])>=?|<=?|[≠≤≥~≈±√^_×÷·]|\S[^\S\n]{0,3}[*/])[^\S\n]{0,8}$")
_BINARY_BEFORE = re.compile(r"[\w)\]}^_{/*!.%²]$")
_TIGHT_AFTER = re.compile(r"[\w^_{/*!²±%?°]|[.:,]\d")
_OTHER_AFTER = re.compile(
    r"\s{0,3}[-+*/^=×÷±~]\s{0,3}(?:[\d(\\$]|\w\b)|\s{0,3}\\?%|\s{0,3}\\(?:times|cdot|div|pm)|\s{0,3}percent"
)
_CALL = re.compile(r"!+(?=\s|$)")
_OR = re.compile(r"(?<![A-Za-z])or(?![A-Za-z])", re.IGNORECASE)
_MARKED = re.compile(r"####[ \t]?(-?\d{1,15})\s*\Z", re.ASCII)
_LEADS_TO = frozenset({"=", "==", "=>", "->", "→", "⇒", ":", "####", "=#", "=:"})
_SKIPPED = str.maketrans("", "", " \t\n\r\v\f$()[]\\`\"'€£")
_NEAR = 240
_LONGEST_LINE = 1_000


def last_number(text: str, opened: bool = False) -> str | None:
    r"""Return the number that a plain reply answers, with its sign; None where there is no single one.

    It is the last number, or the first on the line of the last ``####``. It must stand alone: a part of something
    else (``x_3``, ``2^{10}``, ``12:30``), one of several (``5 or 6``, ``5, 6``, ``5 6``), an operand (``2 + 5``) and a
    number that is ruled out or about right (``not 5``, ``~5``) are no answer.

    Args:
        text: The completion; the time taken is linear in it.
        opened: Whether the prompt had already opened the thinking.
    """
    after = visible(text, opened)
    if after is None or has_field(after):
        return None
    quick = _marked(after)
    return _last(after, _NUMBER) if quick is None else quick


def last_value(text: str, opened: bool = False) -> str | None:
    r"""Return the value that a plain reply answers, as it is written; None where there is no single one.

    It is the line of the last ``####`` or the whole reply, where that is a value and nothing else (``35\%``,
    ``(0,4)``, ``27 and 8``, ``$\frac{\sqrt{3}}{2}$``); else the last number, fraction or percent, which must stand
    alone as :func:`last_number` says.

    Args:
        text: The completion; the time taken is linear in it.
        opened: Whether the prompt had already opened the thinking.
    """
    after = visible(text, opened)
    if after is None or has_field(after):
        return None
    if (quick := _marked(after)) is not None:
        return quick
    whole = after.rpartition("####")[2].strip()
    if "####" in after:
        whole = whole.partition("\n")[0].strip()
    if is_value(whole):
        is_sum = "=" in whole and isinstance(read(whole), Equation) and not _LETTER.search(whole)
        return _last(after, _VALUE) if is_sum else whole
    if (stated := _stated(after)) is not None:
        return stated
    return _last(_rewritten(after), _VALUE)


def is_value(text: str) -> bool:
    """Tell whether ``text`` is a value and nothing else; alternatives (``5 or 6``) are none."""
    return not has_field(text) and read(text) is not None and not _OR.search(text)


def _stated(after: str) -> str | None:
    """Return the value that the last line says the answer is (``the answers are 8 and 27``), or None."""
    line = after.rstrip().rpartition("\n")[2]
    if len(line) > _LONGEST_LINE or "####" in after or not (match := _STATED.search(line)):
        return None
    value = match[1].strip().removesuffix(".")
    return value if is_value(value) else None


def _rewritten(after: str) -> str:
    """Return ``after`` with its fractions as the last number is looked for."""
    after = _FRACTION.sub(r"\\frac", after)
    return after if after.isascii() else after.translate(VULGAR)


def _marked(after: str) -> str | None:
    """Return the integer that the last line is after ``####``; None where it takes the whole rule to tell."""
    if not after.isascii() or "`" in after or "*" in after:
        return None
    mark = _MARKED.search(after, max(after.rfind("####"), 0))
    return None if mark is None else mark[1]


def _last(after: str, kind: re.Pattern[str]) -> str | None:
    """Return the last of the numbers that ``kind`` finds, or the first on the line of the last ``####``."""
    after = _EMPHASIS.sub(lambda match: match[2] or match[3] or match[4], _TAG.sub("", usual(after)))
    if (mark := after.rfind("####")) >= 0:
        line = after[mark + 4 :].lstrip().split("\n", 1)[0]
        if found := kind.search(line):
            following = kind.search(line, found.end())
            if following and _is_one_of_several(line[found.end() : following.start()]):
                return None
            return _alone(line, found)
    before = last = None
    for match in kind.finditer(after):
        before, last = last, match
    if last is None or (before is not None and _is_one_of_several(after[before.end() : last.start()])):
        return None
    return _alone(after, last)


def _is_one_of_several(gap: str) -> bool:
    """Tell whether the text between two numbers makes the second one of a list or an operand."""
    signs = gap.translate(_SKIPPED)
    if words(gap):
        return is_offer(gap)
    return signs.rstrip("+-") not in _LEADS_TO  # a sign may follow "="


def _alone(text: str, number: re.Match[str]) -> str | None:
    """Return ``number`` with its sign, or None where it is not an answer by itself."""
    after = _CLOCK.sub("", text[number.end() : number.end() + _NEAR])
    before = text[max(number.start() - _NEAR, 0) : number.start()]
    if (call := _CALL.match(after)) and words(before):
        after = after[call.end() :]  # "It's 15!" is no factorial
    if _TIGHT_AFTER.match(after) or _OTHER_AFTER.match(after) or starts_with_or(after.split("\n", 1)[0]):
        return None
    lead = _LEAD.search(before)
    assert lead is not None  # it matches the empty end too
    before = before[: lead.start()]
    sign = lead["sign"]
    if sign and _BINARY_BEFORE.search(before.rstrip(" \t") if lead["blank"] else before):
        return None
    if not lead.group() and _TIGHT_BEFORE.search(before):
        return None
    if _RELATION_BEFORE.search(before) or changes(before, after):
        return None
    if worded := minus_word(before):
        before, subtracts = worded
        if sign or subtracts or changes(before, ""):
            return None
        sign = "-"
    sentence = re.split(r"[.!?\n;]", before)[-1]
    if is_denied(sentence, after) or is_second_choice(sentence):
        return None
    if (found := words(sentence)) and (found[-1] in DOUBTS or starts_with_or(found[-1])):
        return None
    return ("-" if sign == "-" else "") + number.group()
