"""Where the thinking of a completion ends, in the marks of the models we know."""

from __future__ import annotations

import re

_NAMES = (
    r"(?:seed:)?(?:think(?:ing)?(?:[_-]process)?|thoughts?|reason(?:ing)?|reflections?|scratchpad|analysis|cot|"
    r"chain[_-]of[_-]thought|(?:inner|internal)[_-]monologue)"
)
_MARK = re.compile(
    rf"<\|?+\s{{0,8}}+(?P<end>/?+)\s{{0,8}}+(?P<name>{_NAMES})(?P<more>\s[^<>]{{0,200}}+|\s{{0,8}}+/?+\|?+)>"
    r"|\[(?P<end2>/?+)(?P<name2>THINK)\]"
    r"|◁(?P<end3>/?+)(?P<name3>think)▷"
    r"|<\|(?:(?P<end4>end)|begin)_of_(?P<name4>thought)\|>"
    r"|<\|(?:(?P<end5>end)|start)_(?P<name5>thinking)\|>"
    r"|<\|channel\|?>\s{0,8}+(?:(?P<end6>final)|analysis|commentary|thought)(?![a-z])"
    r"|(?P<over><\|end\|>|<channel\|>)",
    re.IGNORECASE,
)
_FORMS = (("end", "name"), ("end2", "name2"), ("end3", "name3"), ("end4", "name4"), ("end5", "name5"))


def visible(text: str, opened: bool = False) -> str | None:
    """Return what follows the thinking, or None where the thinking never ends.

    A kind of thinking that is open is ended by its own closing mark only, however many marks of other kinds stand
    inside it. A closing mark counts by itself only where nothing is open: then the prompt had opened the thinking.

    Args:
        text: The completion; the time taken is linear in it.
        opened: Whether the prompt had already opened the thinking.
    """
    if not opened and not ("<" in text or "[" in text or "◁" in text):
        return text  # each mark starts with one of them
    start = _scan(text, opened)[0]
    return None if start is None else text[start:]


def count_thoughts(text: str) -> int:
    """Return how many blocks of thinking ``text`` has."""
    return _scan(text, False)[1]


def _scan(text: str, opened: bool) -> tuple[int | None, int]:
    """Return where the visible part starts (None: never), and the number of blocks."""
    kind, depth, start, blocks = "", 0, 0, 0
    for match in _MARK.finditer(text):
        name, closes = _read(match)
        if not name:
            continue
        if not depth:
            if not closes:
                kind, depth, blocks = name, 1, blocks + 1
            elif match["over"] is None:
                start, opened = match.end(), False
                blocks += name != "channel"
        elif name == kind:
            depth = 0 if closes and name == "channel" else depth + (-1 if closes else 1)
            if not depth:
                start = match.end()
    return (None if depth or opened else start), blocks


def _read(match: re.Match[str]) -> tuple[str, bool]:
    """Return the kind of a mark and whether it closes; no kind for a block that is empty by itself (``<think/>``)."""
    for end, name in _FORMS:
        if match[name]:
            if name == "name" and (match["more"] or "").rstrip(" |").endswith("/"):
                return "", False
            return match[name].lower() + name[4:], bool(match[end])
    return "channel", match["over"] is not None or match["end6"] is not None
