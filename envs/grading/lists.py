"""Values side by side: where the text of several values, or of the sides of an equation, is to be cut."""

from __future__ import annotations

import re

_JOINT = re.compile(
    r"\\[{}]|[(\[{)\]}]|\\(?:text|mbox|mathrm|textrm)\s?\{\s?,?\s?(?:and|or)\s?\}|,?(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])|[,;]"
)
_THOUSAND = re.compile(r"(?<=\d),\d{3}(?!\d)")
OPENING = frozenset({"(", "[", "{", r"\{"})
CLOSING = frozenset({")", "]", "}", r"\}"})
_LONE = re.compile(
    r"((?:[A-Za-z]\w?\s?=\s?)?[+-]?\s?(?:\\?\$|[€£])?\s?[+-]?)(\d{1,3}(?:,\d{3})+)(?!\d)([^,;]*)", re.ASCII
)
_AND_OR = re.compile(r"(?<![A-Za-z\\])(and|or)(?![A-Za-z])")


def encloses(text: str) -> bool:
    """Tell whether the first bracket of ``text`` is closed by its last sign."""
    depth = 0
    for match in _JOINT.finditer(text):
        depth += (match[0] in OPENING) - (match[0] in CLOSING)
        if depth == 0:
            return match.end() == len(text)
    return False


def split(text: str) -> list[str] | None:
    """Return the values that ``text`` holds side by side; None where brackets or separators do not fit.

    Where a comma with a blank behind it separates, commas before three digits do not: ``1,000, 2,000``.
    """
    joints = list(_JOINT.finditer(text))
    spaced = any(_separates(text, match) for match in joints)
    parts: list[str] = []
    used: set[str] = set()
    depth = start = 0
    for match in joints:
        sign = match[0]
        if sign in OPENING:
            depth += 1
        elif sign in CLOSING:
            depth -= 1
            if depth < 0:
                return None
        elif depth == 0 and not (sign == "," and spaced and _THOUSAND.match(text, match.start())):
            used.add(";" if sign == ";" else ",")
            part = text[start : match.start()].strip()
            if part or not parts or sign in ",;":
                parts.append(part)
            start = match.end()
    if depth or len(used) > 1:
        return None
    if not parts:
        return [text]
    parts.append(text[start:].strip())
    return parts if all(parts) else None


def _separates(text: str, match: re.Match[str]) -> bool:
    sign = match[0]
    return sign not in OPENING and sign not in CLOSING and (sign != "," or text[match.end() : match.end() + 1] == " ")


def without_thousands(text: str) -> str:
    """Return ``text`` without the commas of the one number that it is, with what is before and behind: ``$1,200``."""
    match = _LONE.fullmatch(text)
    if match is None or _AND_OR.search(match[3]):
        return text
    return match[1] + match[2].replace(",", "") + match[3]


def connective(text: str) -> str:
    """Return ``and`` or ``or``, whichever joins the values of ``text``; empty where neither or both do."""
    found = set(_AND_OR.findall(text))
    return found.pop() if len(found) == 1 else ""


def sides(text: str) -> list[str]:
    """Return what stands between the ``=`` of ``text`` that are in no brackets."""
    if "=" not in text:
        return [text]
    found, depth, start = [], 0, 0
    for index, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "=" and depth == 0:
            found.append(text[start:index].strip())
            start = index + 1
    return [*found, text[start:].strip()]
