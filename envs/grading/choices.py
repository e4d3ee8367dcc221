"""The letter of an option that a plain reply answers."""

from __future__ import annotations

import re

from tetrathlon.envs.grading.answers import has_field
from tetrathlon.envs.grading.hedges import is_denied, starts_with_or
from tetrathlon.envs.grading.thinking import visible
from tetrathlon.envs.grading.writing import plain, usual

_MARKS = str.maketrans("", "", "*`$_")
_ALONE = re.compile(r"[(\[]?(?P<letter>[A-Za-z])[)\]]?[.:]?")
_STATED = re.compile(
    r"\b(?i:(?:answers?|options?|choices?)(?:\s(?:is|would be|must be))?:?\s(?:(?:is|option|choice|letter|the)\s){0,2})"
    r"(?P<letter>[(\[][A-Za-z][)\]]|[a-z](?=\W*$)|(?!I [a-z])[A-Z](?![A-Za-z'’]))"
)
_LABEL = re.compile(r"(?:\((?P<bracketed>[A-Za-z])\)|(?P<letter>[A-Z])[).:])(?=\s)")
_FURTHER = re.compile(r"[\s,;/&]{1,3}(?:and\s)?[(\[]?[A-Z](?![A-Za-z'’])")
"""Another letter right behind the first."""
_NEAR = 80


def last_choice(text: str, opened: bool = False) -> str | None:
    """Return the one letter that a plain reply answers; None where there is none, or where there are several.

    It is the whole last line (``B``, ``(B).``), or the letter that it names as the answer (``the answer is B``) or
    begins with (``B) 12``).

    Args:
        text: The completion; the time taken is linear in it.
        opened: Whether the prompt had already opened the thinking.
    """
    after = visible(text, opened)
    if after is None or has_field(after):
        return None
    line = usual(after.rstrip().rpartition("\n")[2]).rpartition("####")[2].translate(_MARKS)
    line = " ".join(line.split())
    if letter := choice(line):
        return letter
    found = list(_STATED.finditer(line))
    if not found:
        label = _LABEL.match(line)
        labels = {(other["bracketed"] or other["letter"]).upper() for other in _LABEL.finditer(line)}
        return (label["bracketed"] or label["letter"]) if label and len(labels) == 1 else None
    named = {match["letter"].strip("()[]") for match in found}
    rest = line[found[-1].end() : found[-1].end() + _NEAR]
    if len({name.upper() for name in named}) > 1 or is_denied("", rest) or starts_with_or(rest) or _FURTHER.match(rest):
        return None
    return named.pop()


def choice(text: str) -> str | None:
    """Return the letter that ``text`` is, or None."""
    match = _ALONE.fullmatch(plain(text))
    return None if match is None else match["letter"]
