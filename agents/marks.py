"""Stand-ins for control tokens that data spell out, so that a chat template cannot take them for its own."""

from __future__ import annotations

import json
import re
from itertools import count
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


class Marks:
    """Stand-ins for control tokens in data, of letters that appear nowhere in it, so that any template copies them."""

    def __init__(self, names: re.Pattern[str], data: Any) -> None:
        used = set(re.findall("(?:mark|stand|turn)([0-9]+)x", json.dumps(data, ensure_ascii=False)))
        free = next(number for number in count() if str(number) not in used)
        self._names = names
        self._stem = f"mark{free}x"
        self.other = f"stand{free}x"
        """What a second set of stand-ins begins with; unlike the first from its first letter on."""
        self.word = f"turn{free}x"
        """Stands for a whole turn."""
        self.hidden: list[str] = []

    def hide(self, data: Any) -> Any:
        """Return ``data`` (JSON) cleaned, with stand-ins for its control tokens."""
        if isinstance(data, str):
            return self._names.sub(self._replace, clean(data))
        if isinstance(data, dict):
            return {self.hide(key): self.hide(value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return [self.hide(value) for value in data]
        return data

    def swap(self, data: Any) -> Any:
        """Return what :meth:`hide` gave (JSON) with the second set of stand-ins."""
        if isinstance(data, str):
            return data.replace(self._stem, self.other)
        if isinstance(data, dict):
            return {self.swap(key): self.swap(value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return [self.swap(value) for value in data]
        return data

    def show(self, text: str, stem: str | None = None) -> str:
        """Undo :meth:`hide`."""
        return re.sub(f"{stem or self._stem}([0-9]+)z", lambda match: self.hidden[int(match.group(1))], text)

    def _replace(self, match: re.Match[str]) -> str:
        self.hidden.append(match.group())
        return f"{self._stem}{len(self.hidden) - 1}z"


def clean(text: str) -> str:
    """Replace lone surrogates, which no tokenizer takes, by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)
