"""A library of a family as it runs in this process: the text is ours, with or without faults, never an agent's."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import CodeType, SimpleNamespace
from typing import Any

from tetrathlon.envs.text.coding.data import decode
from tetrathlon.envs.tools.repo.family import PACKAGE, Case, Family
from tetrathlon.envs.tools.repo.prober import outcomes

Outcome = dict[str, Any]
"""What came of one line: ``value``, encoded, or ``error``, the names of its classes."""
TOLERANCE = 1e-6
_MOST_CODES = 8_192


class Library:
    """A library, loaded.

    Args:
        family: Its family.
        constants: The values of its constants.
        texts: Module -> text in place of the right one.
    """

    def __init__(self, family: Family, constants: Mapping[str, Any], texts: Mapping[str, str] | None = None) -> None:
        self._modules: dict[str, SimpleNamespace] = {}
        self._builtins = {**vars(builtins), "__import__": self._import}
        self.names: dict[str, Any] = {}
        """What its modules define, all together."""
        texts = texts or {}
        for module, right in family.modules.items():
            names = {"__name__": f"{PACKAGE}.{module}", "__builtins__": self._builtins, **constants}
            exec(_compiled(texts.get(module, right), module), names)
            self._modules[f"{PACKAGE}.{module}"] = SimpleNamespace(**names)
            self.names |= names

    def run(self, case: Case, values: Mapping[str, Any]) -> list[Outcome]:
        """Return what comes of a case."""
        fresh = {key: value[:] if isinstance(value, list) else value for key, value in values.items()}
        return outcomes(case.codes, {**self.names, **fresh})

    def _import(self, name: str, globals: Any = None, locals: Any = None, names: Any = (), level: int = 0) -> Any:
        found = self._modules.get(name)
        return __import__(name, globals, locals, names, level) if found is None else found


def agree(outcome: Any, expected: Outcome) -> bool:
    """Tell whether an outcome, of whatever origin, is the expected one.

    Values are equal as Python has it, with floats within 1e-6; None, True and False equal themselves alone. Where an
    error is expected, one of a class below will do.
    """
    if not isinstance(outcome, dict):
        return False
    if "error" in expected:
        classes = outcome.get("error")
        return isinstance(classes, list) and expected["error"][0] in classes
    if "value" not in outcome:
        return False
    if outcome["value"] == expected["value"] and type(outcome["value"]) is type(expected["value"]):
        return True
    try:
        return _equal(decode(outcome["value"]), decode(expected["value"]))
    except Exception:  # whoever wrote it need not have kept to the encoding
        return False


def agree_all(found: Any, expected: Iterable[Outcome]) -> bool:
    """Tell whether the outcomes of a case are the expected ones."""
    wanted = list(expected)
    return isinstance(found, list) and len(found) == len(wanted) and all(map(agree, found, wanted))


def _equal(value: Any, expected: Any) -> bool:
    if expected is None or isinstance(expected, bool):
        return value is expected
    if isinstance(value, float) or isinstance(expected, float):
        return isinstance(value, int | float) and abs(value - expected) <= TOLERANCE * max(1.0, abs(expected))
    if isinstance(expected, list | tuple):
        return type(value) is type(expected) and len(value) == len(expected) and all(map(_equal, value, expected))
    if isinstance(expected, dict):
        return (
            isinstance(value, dict)
            and value.keys() == expected.keys()
            and all(_equal(value[key], expected[key]) for key in expected)
        )
    return bool(value == expected)


@lru_cache(_MOST_CODES)
def _compiled(text: str, module: str) -> CodeType:
    return compile(text, f"<{module}>", "exec", dont_inherit=True)
