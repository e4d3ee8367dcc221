r"""The final answer of a completion: one rule, shared by every task, in training and in evaluation.

The final answer is the last ``\boxed{...}`` or ``<answer>...</answer>`` after the thinking ends. Different fields
with words of alternatives between them ("or", "otherwise", "Option 2") are one answer that equals no single value,
unless a word there corrects the first ("wrong", "instead", "so"); a field that is said to be wrong ("it is not
\\boxed{15}") is none. A completion that was cut, inside its thinking or
inside its answer field, has no answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from tetrathlon.envs.grading.amounts import changes, minus_word
from tetrathlon.envs.grading.hedges import follows_or, is_denied, is_hedge, may_hedge, precedes_or
from tetrathlon.envs.grading.thinking import visible
from tetrathlon.envs.grading.writing import integer, key

_ATTRIBUTES = r"(?:\s[^<>/]{0,200}+)?+"
_FIELD = re.compile(rf"\\f?boxed\s{{0,8}}+\{{|<\s{{0,8}}+answer{_ATTRIBUTES}>", re.IGNORECASE)
_TAG = re.compile(rf"<\s{{0,8}}+(/?+)\s{{0,8}}+answer{_ATTRIBUTES}>", re.IGNORECASE)
_BRACES = re.compile(r"\\[{}\\]|[{}]")
_EQUALS = re.compile(r"[\s$]*(?:=|\\(?:implies|Rightarrow|to)(?![a-zA-Z])|⇒|→|[=-]>)[\s$]*")
_OPERATOR = re.compile(r"[\s$]*(?:[-+*/×÷·−^]|\\(?:times|cdot|div)(?![a-zA-Z]))[\s$]*")
_ONE_BOX = re.compile(
    r"(?P<before>[A-Za-z ,:*$\n]*+)\\boxed\{"
    r"(?P<content>(?:[^{}\\<\[◁]++|\\(?!f?boxed)[a-z]++|\{[^{}\\<\[◁]*+\})*+)\}[.$*\s]*+"
)
"""A short reply with one box and nothing that bears on it; most replies are such, and the whole rule is slower."""
_WHOLE_BOX = re.compile(r"\\boxed\{([^{}\\<\[◁]*+)\}")
"""A reply that is one box, with nothing of LaTeX inside."""
_SHORT = 400
_NEAR = 60
_PERCENT = re.compile(r"[\s$]{0,3}(?:\\?%|percent\b(?! point))")
_BLANK_CONTENTS = frozenset({"", "and", "or", "und", "oder", "et", "...", "…"})
"""What stands in a field that is only talked about: "in \\boxed{}", "between <answer> and </answer>"."""


@dataclass(frozen=True, slots=True)
class Field:
    """One outermost answer field of a text."""

    kind: str
    """``boxed`` or ``tag``."""
    content: str
    """What is in it, stripped, without fields around all of it."""
    holds_field: bool
    """Whether another field is inside."""
    start: int
    end: int

    @property
    def is_blank(self) -> bool:
        """Whether nothing is answered in it."""
        return self.content.lower() in _BLANK_CONTENTS


def final_answer(text: str, opened: bool = False) -> str | None:
    r"""Return the final answer of a completion, or None where it has none.

    Args:
        text: The completion, of any length; the time taken is linear in it.
        opened: Whether the prompt had already opened the thinking.

    Returns:
        The content of the last field, stripped. Alternatives come back together with what joins them
        (``5 or 6``), which equals no single value.
    """
    if not opened and (box := _WHOLE_BOX.fullmatch(text)):
        return box[1].strip()
    if not may_hold_field(text):
        return None
    if not opened and len(text) <= _SHORT and (quick := _ONE_BOX.fullmatch(text)):
        before, content = quick.groups()
        if not before or not (may_hedge(before) or _bears(before, "")):
            return content.strip()
    return _final_answer(text, opened)


@lru_cache(maxsize=4)
def _final_answer(text: str, opened: bool = False) -> str | None:
    after = visible(text, opened)
    found = None if after is None else fields(after)
    if not found or after is None:
        return None
    last = found[-1]
    if last.is_blank:
        return last.content
    if len(after) == last.end - last.start:
        return last.content  # no words around it that could bear on it
    while found and is_denied(after[max(found[-1].start - 200, 0) : found[-1].start], after[found[-1].end :][:200]):
        found.pop()
    if not found:
        return None
    last = found[-1]
    neighbours = [last]
    rest = [field for field in found[:-1] if not field.is_blank]
    while rest and _joins(after, rest, neighbours[-1]):
        neighbours.append(rest.pop())
    neighbours.reverse()
    joined = neighbours[0].content
    if len(neighbours) == 1 or len({key(field.content) for field in neighbours}) == 1:
        joined = last.content
    else:
        for before, field in pairwise(neighbours):
            gap = " ".join(after[before.end : field.start].split()) or ";"
            joined += f" {gap} {field.content}"  # never glued: "12" and "500" with a comma between are not 12,500
    if (other := precedes_or(after[max(neighbours[0].start - 200, 0) : neighbours[0].start], last.content)) is not None:
        joined = f"{other} or {joined}"
    if (other := follows_or(after[last.end : last.end + 200], last.content)) is not None:
        joined = f"{joined} or {other}"
    lead, behind = after[max(neighbours[0].start - _NEAR, 0) : neighbours[0].start], after[last.end :][:_NEAR]
    if _PERCENT.match(behind) and "%" not in joined:
        joined += "%"
    elif _bears(lead, behind):  # words around a box make another number of it: it is none by itself
        joined = f"{' '.join(lead.split()[-2:])} {joined} {' '.join(behind.split()[:2])}"
    return joined.strip()


def _bears(before: str, behind: str) -> bool:
    """Tell whether words right beside a field make another number of what is in it: ``negative``, ``million``."""
    return changes(before[-_NEAR:], behind) or minus_word(before[-_NEAR:]) is not None


def _joins(text: str, before: list[Field], field: Field) -> bool:
    """Tell whether the last of ``before`` belongs to one answer with ``field``."""
    left = before[-1]
    gap = text[left.end : field.start]
    if not _EQUALS.fullmatch(gap):
        return is_hedge(gap)
    if integer(left.content) is None or integer(left.content) == integer(field.content):
        return False
    is_sum = len(before) > 1 and _OPERATOR.fullmatch(text[before[-2].end : left.start])
    return not is_sum  # 16 = 15 holds two answers, 7 + 8 = 15 one


def plain_answer(text: str, opened: bool = False, lines: bool = False) -> str | None:
    """Return the last line with anything on it after the thinking, for replies that were to be the answer alone.

    Args:
        text: The completion.
        opened: Whether the prompt had already opened the thinking.
        lines: Whether answers have several lines: then all that follows the thinking is the answer.

    Returns:
        The line, stripped; None where there is none, or where an answer field was cut.
    """
    after = visible(text, opened)
    if after is None or has_field(after):
        return None
    if lines:
        return after.strip("\r\n").rstrip() or None
    return next((line.strip() for line in reversed(after.splitlines()) if line.strip()), None)


def may_hold_field(text: str) -> bool:
    """Tell, fast, whether ``text`` has one of the signs with which every answer field opens."""
    return "{" in text or "<" in text


def has_field(text: str) -> bool:
    """Tell whether an answer field opens in ``text``."""
    if not may_hold_field(text):
        return False
    if text.isascii() and "boxed" not in (lower := text.lower()) and "answer" not in lower:
        return False
    return _FIELD.search(text) is not None


def fields(text: str) -> list[Field] | None:
    """Return the outermost answer fields in order, or None where the last one is not closed."""
    found: list[Field] = []
    if not may_hold_field(text):
        return found
    position = 0
    while match := _FIELD.search(text, position):
        end = _close(text, match)
        if end is None:
            return None
        content = text[match.end() : end[0]]
        kind = "boxed" if match.group().endswith("{") else "tag"
        found.append(Field(kind, _unwrap(content), has_field(content), match.start(), end[1]))
        position = end[1]
    return found


def _close(text: str, opening: re.Match[str]) -> tuple[int, int] | None:
    """Return where the content of a field ends and where the field does."""
    depth = 1
    if opening.group().endswith("{"):
        start, end = opening.end(), text.find("}", opening.end())
        if end >= 0 and text.find("{", start, end) < 0 and text.find("\\", start, end) < 0:
            return end, end + 1
        for match in _BRACES.finditer(text, opening.end()):
            depth += (match.group() == "{") - (match.group() == "}")
            if depth == 0:
                return match.start(), match.end()
        return None
    for match in _TAG.finditer(text, opening.end()):
        depth += -1 if match.group(1) else 1
        if depth == 0:
            return match.start(), match.end()
    return None


def _unwrap(content: str) -> str:
    """Take a field out of the field that holds nothing else: an answer tag around a box."""
    content = content.strip()
    for _ in range(4):
        match = _FIELD.match(content)
        end = match and _close(content, match)
        if match is None or end is None or end[1] != len(content):
            return content
        content = content[match.end() : end[0]].strip()
    return content
