"""A program as an answer: the last block of code of a completion."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable
from typing import NamedTuple

from tetrathlon.envs.grading.thinking import count_thoughts, visible
from tetrathlon.envs.language.formats import AnswerFormat

_FENCE = re.compile(r"^[ \t]{0,12}(?P<marks>`{3,100}|~{3,100})(?P<info>[^\n]*)$", re.MULTILINE)
_LANGUAGES = frozenset({"python", "python3", "py", "py3"})
_LONGEST_BARE = 20_000


class Block(NamedTuple):
    """A fenced block."""

    language: str
    """The first word behind the opening fence, in small letters."""
    inside: str
    is_closed: bool

    @property
    def text(self) -> str:
        """What stands in it, without the indentation that all of it shares."""
        return textwrap.dedent(self.inside.removeprefix("\n").removesuffix("\n"))


class CodeFormat(AnswerFormat):
    """The answer is a program: the last block in a fence that says it is Python, after the thinking ends.

    Where no fence names a language that is Python, the last one that names none counts. A reply without a fence is
    the program itself if it parses as Python. Where the last fence is never closed, the reply was cut and has no
    answer.
    """

    def __init__(self) -> None:
        super().__init__("Reply with the whole program in one ```python block.", "```python\n%s\n```")

    def write(self, answer: str) -> str:
        """Return a completion that answers ``answer``."""
        return self.pattern % answer.rstrip("\n")

    def read(self, completion: str, echoes: Iterable[str] = ()) -> str | None:
        """See :meth:`AnswerFormat.read`."""
        after = visible(completion)
        if after is None:
            return None
        found = blocks(after)
        if not found:
            return after.strip() if _is_program(after) else None
        if not found[-1].is_closed:
            return None
        code = [block for block in found if block.language in _LANGUAGES]
        code = code or [block for block in found if not block.language]
        return code[-1].text if code and code[-1].inside.strip() else None

    def keeps(self, completion: str) -> bool:
        """See :meth:`AnswerFormat.keeps`."""
        after = visible(completion)
        if after is None or count_thoughts(completion) > 1:
            return False
        found = blocks(after)
        return (
            len(found) == 1 and found[0].is_closed and found[0].language in _LANGUAGES and bool(found[0].inside.strip())
        )


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of ``text`` in order; the time taken is linear in its length."""
    found: list[Block] = []
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        marks, info = fence["marks"], fence["info"].strip()
        if opening is None:
            if marks[0] == "~" or "`" not in info:
                opening = fence
        elif marks[0] == opening["marks"][0] and len(marks) >= len(opening["marks"]) and not info:
            found.append(_block(opening, text[opening.end() : fence.start()], True))
            opening = None
    if opening is not None:
        found.append(_block(opening, text[opening.end() :], False))
    return found


def _block(opening: re.Match[str], inside: str, is_closed: bool) -> Block:
    words = opening["info"].strip(" \t\r{}.").lower().split()
    return Block(words[0] if words else "", inside, is_closed)


def _is_program(text: str) -> bool:
    """Tell whether all of ``text`` is Python that does something: a bare word or number is none."""
    if len(text) > _LONGEST_BARE:
        return False
    try:
        body = ast.parse(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(not isinstance(node, ast.Expr) or isinstance(node.value, ast.Call) for node in body)
