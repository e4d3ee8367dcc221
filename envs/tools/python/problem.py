"""A problem that needs computing: what is asked, what answers it, and code that finds out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from textwrap import dedent

from tetrathlon.envs.grading.rationals import rational
from tetrathlon.envs.grading.writing import integer, plain, same_text
from tetrathlon.envs.text.coding.draft import Draw

TEXT = -1
"""In place of decimals: the answer is a text."""
_SHARE = Fraction(6, 10)
"""How far a rounded number may be off, in units of its last place: more digits than asked for are right too."""


@dataclass(frozen=True)
class Problem:
    """One problem."""

    question: str
    """What is asked."""
    answer: str
    """What answers it, computed without the sandbox."""
    cells: tuple[str, ...]
    """Code that prints the answer, in one or two cells."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What lies in the folder."""
    decimals: int = 0
    """Decimals of the answer; 0 for an integer, :data:`TEXT` for a text."""

    @property
    def request(self) -> str:
        """In which form the answer is to be given."""
        if self.decimals == TEXT:
            return "Answer with that text alone."
        if self.decimals:
            return f"Answer with the number alone, rounded to {self.decimals} decimals."
        return "Answer with the integer alone."


Kind = Callable[[Draw, int], Problem]
"""Draws a problem of one kind and of a level from 1 to 3."""


def cells(*sources: str) -> tuple[str, ...]:
    """Return cells as they are written in an indented text."""
    return tuple(dedent(source).strip() for source in sources)


def rounded(value: Fraction | float, decimals: int) -> str:
    """Return a number with that many decimals."""
    return f"{float(value):.{decimals}f}"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return rows as CSV."""
    return "\n".join(",".join(map(str, row)) for row in (head, *rows)) + "\n"


def renamed(problem: Problem, tag: str) -> Problem:
    """Return a problem with ``tag`` in the names of its files, so that what is asked is not the same for two."""
    question, code = problem.question, problem.cells
    files = {}
    for name, content in problem.files.items():
        stem, dot, end = name.rpartition(".")
        new = f"{stem}{tag}{dot}{end}"
        question, code = question.replace(name, new), tuple(cell.replace(name, new) for cell in code)
        files[new] = content
    return replace(problem, question=question, cells=code, files=files)


def is_answer(given: str, answer: str, decimals: int) -> bool:
    """Tell whether ``given`` says the same as ``answer``.

    Integers must be equal. Of rounded numbers more digits may be given, and half a unit of the last place and a tenth
    more may be off. Texts are equal but for case and blanks.
    """
    if decimals == TEXT:
        return same_text(given, answer)
    if decimals == 0:
        return integer(given) == int(answer)
    number = rational(plain(given))
    return number is not None and abs(number - Fraction(answer)) <= _SHARE / 10**decimals
