"""The command line: what there is, be the agent or watch one, evaluate, record, run the suite, look at a run.

Exit codes: 0 done, 1 something failed, 2 the command was wrong, 130 stopped by ctrl-C.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import traceback
from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any, Union

import tyro

import tetrathlon
from tetrathlon.agents.policy import ActionError
from tetrathlon.commands import Bench, Compare, Envs, Play, View
from tetrathlon.envs.registry import load_plugins
from tetrathlon.evaluating import Eval, Record
from tetrathlon.manual import algorithms_help, readable
from tetrathlon.training import Train, train_command
from tetrathlon.usage import UsageError, nearest

COMMANDS: dict[str, type[Any]] = {
    "envs": Envs,
    "play": Play,
    "eval": Eval,
    "record": Record,
    "train": Train,
    "bench": Bench,
    "view": View,
}
_MARKERS = (tyro.conf.FlagCreatePairsOff,)
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_EDGE = re.compile("^ *[│|]| *[│|] *$")
_RULE = re.compile("^[ ─-]+$")
_PARSING = re.compile("^Error parsing \\w+: ")  # what follows is what an option's own check says
_MEANING = 8  # what is indented as far explains the name above it


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The words after ``tetrathlon``; None: those of this process.

    Returns:
        The exit code.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a model may write what the terminal cannot show
            stream.reconfigure(errors="replace" if stream is sys.stdin else "backslashreplace")
    try:
        return _main(words)
    except UsageError as error:
        return _complain(words, str(error), 2)
    except KeyboardInterrupt:
        return _complain(words, "stopped", 130)
    except BrokenPipeError:  # whoever read our output has gone, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ImportError, OSError, ActionError) as error:  # a missing package, a file that cannot be written
        return _complain(words, str(error) or type(error).__name__, 1)
    except Exception:  # a policy or an environment is foreign code: its author needs to see where it failed
        traceback.print_exc()
        return 1


def _main(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        return _help()
    if words[0] == "--version":
        print(f"tetrathlon {tetrathlon.__version__}")
        return 0
    name = words[0]
    if name not in COMMANDS:
        kind = "option" if name.startswith("-") else "command"
        hint = nearest(name, [*COMMANDS, "--help", "--version"])
        raise UsageError(f"there is no {kind} {name!r}{hint} (there are {', '.join(COMMANDS)})")
    rest = words[1:]
    if name == "train" and rest[:1] in (["-h"], ["--help"]):
        from tetrathlon.algos import ALGORITHMS

        print(algorithms_help(ALGORITHMS))
        return 0
    if name == "train":
        command = _parse(" ".join(words[:2]), *train_command(rest))
    elif words[:2] == ["bench", "compare"]:
        command = _parse("bench compare", Compare, words[2:])
    else:
        command = _parse(name, COMMANDS[name], rest)
    if command is None:
        return 0
    _load_plugins()
    return command.run()


def _help() -> int:
    every: Any = Union[tuple(Annotated[cls, tyro.conf.subcommand(name)] for name, cls in COMMANDS.items())]  # noqa: UP007
    with contextlib.suppress(SystemExit):
        tyro.cli(
            every,
            prog="tetrathlon",
            description="Language, tool, vision and robot tasks as Gymnasium environments.",
            args=["--help"],
            config=_MARKERS,
        )
    return 0


def _parse(name: str, command: type[Any], words: list[str]) -> Any:
    """Return the command with its options, or None where only help was asked for."""
    options = [f"--{option.name.replace('_', '-')}" for option in fields(command)]
    if {"-h", "--help"} & set(words):
        command = readable(command)
    else:
        for word in words:
            option = word.partition("=")[0].replace("_", "-")
            if option.startswith("--") and option not in options:
                raise UsageError(f"there is no option {option!r}{nearest(option, options)}")
    # tyro draws a box; what is wrong is to be one line.
    caught = io.StringIO()
    try:
        with contextlib.redirect_stderr(caught):
            parsed, extra = tyro.cli(
                command, prog=f"tetrathlon {name}", args=words, return_unknown_args=True, config=_MARKERS
            )
    except SystemExit as end:
        if end.code:
            raise UsageError(_flat(caught.getvalue())) from end
        return None
    if extra:
        raise UsageError(f"did not expect {' '.join(extra)!r}")
    return parsed


def _flat(box: str) -> str:
    """Return what a box of tyro says, on one line, without its title and its advice."""
    said: list[str] = []
    for row in _COLOUR.sub("", box).splitlines()[1:]:
        inside = _EDGE.sub("", row)
        if not _RULE.match(inside):
            said.append(inside)
        elif said:  # without Unicode a rule stands below the title too
            break
    if said and said[0].split()[:2] == ["Missing", "from"]:
        said = [row for row in said if len(row) - len(row.lstrip()) < _MEANING]
    return _PARSING.sub("", " ".join(" ".join(said).split()))


def _load_plugins() -> None:
    try:
        load_plugins()
    except Exception as error:  # another package's broken plug-in must not take the command line with it
        print(f"tetrathlon: a plug-in failed: {type(error).__name__}: {error}", file=sys.stderr)


def _complain(words: list[str], message: str, code: int) -> int:
    name = f"tetrathlon {words[0]}" if words and words[0] in COMMANDS else "tetrathlon"
    print(f"{name}: {' '.join(message.split())}", file=sys.stderr)
    return code
