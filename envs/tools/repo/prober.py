"""The program that tries a repository: it runs in the sandbox, and knows what to do but not what has to come of it.

The tested code runs in its process and may do to it what it likes. It can only change what it itself answers: what is
expected, and who compares, is elsewhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

from tetrathlon.envs.text.coding.data import DataError, encode
from tetrathlon.envs.text.coding.holder import Channel

FOLDER = "repository"
"""Where the files lie; it comes last in the path, so that no file can stand for a module of the library."""
_PLAIN = (str, bool, type(None))  # which are their own encoding
_MOST_NAMES = 12
_LONGEST_NAME = 100


def outcomes(
    lines: Iterable[tuple[str, Any]], names: dict[str, Any], caught: type[BaseException] = Exception
) -> list[dict[str, Any]]:
    """Return what comes of the lines of a case that are looked at.

    A value is its encoding, an error the names of its class and of the bases of that. A statement that raises is the
    last outcome. Whether a line is to raise is not said here: the tested code might read it.

    Args:
        lines: ``value`` for an expression that is looked at, ``do`` for a statement; and its code, compiled or not.
        names: Their global names.
        caught: What may be raised.
    """
    found: list[dict[str, Any]] = []
    for kind, code in lines:
        try:
            if kind == "value":
                value = eval(code, names)
                found.append({"value": value if type(value) in _PLAIN else encode(value)})
            else:
                exec(code, names)
        except DataError:
            found.append({"error": ["DataError"]})
        except caught as error:
            found.append({"error": _classes(error)})
            if kind == "do":
                break
    return found


def _classes(error: BaseException) -> list[str]:
    return [str(one.__name__)[:_LONGEST_NAME] for one in type(error).__mro__[:_MOST_NAMES]]


def settle(files: dict[str, str], folder: str) -> None:
    """Write files into a folder, and let modules be imported from it after all others."""
    for path, text in files.items():
        where = os.path.join(folder, path)
        os.makedirs(os.path.dirname(where), exist_ok=True)
        with open(where, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    here = os.getcwd()
    sys.path[:] = [place for place in sys.path if place not in ("", here)] + [os.path.join(here, folder)]
    sys.dont_write_bytecode = True


def main() -> None:
    """Answer the one message: the files, and the lines of each case; the reply has the outcomes of each."""
    channel = Channel()
    request = channel.hear()
    settle(request["files"], FOLDER)
    found = []
    for lines in request["cases"]:
        found.append(outcomes(lines, {"__name__": "case"}, BaseException))
    channel.say({"nonce": request["nonce"], "outcomes": found})
