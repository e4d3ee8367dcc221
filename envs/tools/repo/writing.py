"""How an instance is written: words put in their places, and cases as files of tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tetrathlon.envs.text.coding.data import decode
from tetrathlon.envs.tools.repo.family import DO, PACKAGE, RAISE, VALUE, Case, Family
from tetrathlon.envs.tools.repo.library import Outcome
from tetrathlon.envs.tools.repo.mutation import UP

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_BETWEEN = "\0"
_VALUE = re.compile(r"\bV_\w+")


class Writer:
    """Puts drawn words into texts.

    Args:
        words: Word -> what it becomes.
        constants: Word -> its value.
    """

    def __init__(self, words: Mapping[str, str], constants: Mapping[str, Any]) -> None:
        self._words = dict(words)
        for key, value in constants.items():
            self._words[key] = literal(value)
        self._written: dict[str, str] = {}

    def write(self, text: str) -> str:
        """Return a text with the words in their places."""
        if text not in self._written:
            words = self._words
            self._written[text] = _IDENTIFIER.sub(lambda match: words.get(match[0], match[0]), text)
        return self._written[text]

    def write_all(self, case: Case) -> list[str]:
        """Return the lines of a case with the words in their places."""
        return self.write(_BETWEEN.join(code for _, code in case.lines)).split(_BETWEEN)


@dataclass(slots=True)
class Trial:
    """A case with values, and what is to come of it."""

    case: Case
    """The case."""
    values: Mapping[str, Any]
    """Its values."""
    expected: list[Outcome]
    """What comes of it."""


def imports_of(family: Family, public: Mapping[str, str], words: Iterable[str]) -> str:
    """Return what a text has to import that uses ``words``, a line for each module.

    Args:
        family: The family.
        public: Public name -> its module.
        words: The words.
    """
    used: dict[str, list[str]] = {module: [] for module in family.modules}
    for word in sorted(set(words) & public.keys()):
        used[public[word]].append(word)
    return "\n".join(f"from {PACKAGE}.{module} import {', '.join(some)}" for module, some in used.items() if some)


def write_tests(module: str, trials: Sequence[Trial], imports: str, writer: Writer, in_class: bool) -> str:
    """Return a file of tests.

    Args:
        module: The module that they are about.
        trials: The tests.
        imports: What they import.
        writer: What writes names.
        in_class: Whether they are methods of a ``unittest.TestCase``.
    """
    head = ["import unittest", "", imports] if in_class else [imports]
    taken: dict[str, int] = {}
    body: list[str] = []
    for trial in trials:
        name = _test_name(trial.case, writer)
        taken[name] = taken.get(name, 0) + 1
        name += f"_{taken[name]}" if taken[name] > 1 else ""
        body += ["", *([] if in_class else [""]), f"def {name}({'self' if in_class else ''}):"]
        body += [f"    {line}" for line in _test_lines(trial, writer, in_class)]
    if in_class:
        title = "".join(part.capitalize() for part in writer.write(module).split("_"))
        body = ["", "", f"class Test{title}(unittest.TestCase):", *(f"    {line}" if line else "" for line in body[1:])]
    return "\n".join([*head, *body]) + "\n"


def literal(value: Any) -> str:
    """Return a value as code has it, texts in double quotes."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(key)}: {literal(item)}' for key, item in value.items())}}}"
    return repr(value)


def with_ups(constants: Mapping[str, Any]) -> dict[str, Any]:
    """Return constants together with those that are one more."""
    return {**constants, **{f"{key}{UP}": value + 1 for key, value in constants.items() if key.startswith("N_")}}


def _test_name(case: Case, writer: Writer) -> str:
    written = writer.write(case.function).lower().replace(".", "_")
    return "_".join(["test", written, *case.label.split()])


def _test_lines(trial: Trial, writer: Writer, in_class: bool) -> list[str]:
    lines, outcomes = [], iter(trial.expected)
    for (kind, _), written in zip(trial.case.lines, writer.write_all(trial.case), strict=True):
        code = _VALUE.sub(lambda match: literal(trial.values[match[0]]), written)
        if kind == DO:
            lines += code.splitlines()
            continue
        outcome = next(outcomes)
        if kind == VALUE:
            lines.append(_asserted(code, decode(outcome["value"]), in_class))
        elif in_class:
            lines += [f"with self.assertRaises({outcome['error'][0]}):", f"    {code}"]
        else:
            error = outcome["error"][0]
            lines += ["try:", f"    {code}", f"except {error}:", "    pass"]
            lines += ["else:", f'    raise AssertionError("{error} expected")']
    return lines


def _asserted(code: str, value: Any, in_class: bool) -> str:
    exact = value is None or isinstance(value, bool)
    if in_class:
        return f"self.assert{'Is' if exact else 'Equal'}({code}, {literal(value)})"
    return f"assert {code} {'is' if exact else '=='} {literal(value)}"


def has_errors(trial: Trial) -> bool:
    """Tell whether something raises that was to have a value, or the other way round."""
    kinds = [kind for kind, _ in trial.case.lines if kind != DO]
    wanted = ["error" if kind == RAISE else "value" for kind in kinds]
    return wanted != [next(iter(outcome)) for outcome in trial.expected]
