"""What ``--help`` shows: docstrings, without the marks that are for those who read the code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from textwrap import wrap
from typing import Any

_ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")
_WIDTH = 80


def readable(command: type[Any]) -> type[Any]:
    """Return ``command`` with a docstring that explains its options in running text."""
    from docstring_parser import parse_from_object

    known: dict[str, str] = {}
    for each in reversed(command.__mro__):
        if "__annotations__" in vars(each):
            known |= {told.arg_name: told.description or "" for told in parse_from_object(each).params}
    head = [_plain(part) for part in (command.__doc__ or "").split("\n\n")]
    options = [f"    {field.name}: {_plain(known[field.name])}" for field in fields(command) if field.name in known]
    text = "\n\n".join(head) + "\n\nAttributes:\n" + "\n".join(options)
    return dataclass(frozen=True, kw_only=True)(type(command.__name__, (command,), {"__doc__": text}))


def algorithms_help(algorithms: Mapping[str, type[Any]]) -> str:
    """Return what ``tetrathlon train --help`` says: which algorithms there are."""
    rows = ["usage: tetrathlon train ALGO ID --policy NAME [OPTIONS]", "", "Train a policy.", "", "algorithms:"]
    for name, algorithm in algorithms.items():
        first = _plain((algorithm.__doc__ or "").split("\n\n")[0])
        rows += wrap(f"{name:<10} {first}", _WIDTH, initial_indent="  ", subsequent_indent=" " * 13)
    return "\n".join([*rows, "", "The options of one: tetrathlon train ALGO --help"])


def _plain(text: str) -> str:
    return " ".join(_ROLE.sub(r"\1", text).replace("``", "").split())
