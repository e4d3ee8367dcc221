"""The program that runs given tests: it runs in the sandbox and never sees the code that is tested.

The tested functions are stand-ins here: they send their arguments to the host and return, or raise, what comes back.
Only plain data come back.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from tetrathlon.envs.text.coding.data import KindError, decode, encode
from tetrathlon.envs.text.coding.holder import Channel


class Fault(BaseException):
    """The tests ask for what cannot be done; no ``except Exception`` of a test may hide it."""


def stand_in(channel: Channel, name: str) -> Callable[..., Any]:
    """Return a function that is called by way of the host.

    Args:
        channel: To the host.
        name: What the function is called.
    """

    def function(*arguments: Any, **keywords: Any) -> Any:
        try:
            coded = [encode(item) for item in arguments], {key: encode(item) for key, item in keywords.items()}
        except KindError as error:
            raise Fault(f"{name} is called with {error}") from None
        channel.say({"call": name, "arguments": coded[0], "keywords": coded[1]})
        reply = channel.hear()
        if "error" not in reply:
            return decode(reply["value"])
        kind = getattr(builtins, reply["error"], None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            raise kind("raised by the tested code")
        raise Exception("raised by the tested code")

    function.__name__ = name
    return function


def main() -> None:
    """Set up as the first message says, then run a test for each message."""
    channel = Channel()
    request = channel.hear()
    names: dict[str, Any] = {"__name__": "tests"}
    try:
        exec(compile(request["preamble"], "<preamble>", "exec", dont_inherit=True), names)
        names |= {name: stand_in(channel, name) for name in request["names"]}
        tests = [compile(test, "<test>", "exec", dont_inherit=True) for test in request["tests"]]
        exec(compile(request["setup"], "<setup>", "exec", dont_inherit=True), names)
    except Fault as error:
        channel.say({"fault": str(error)[:300]})
        return
    except BaseException as error:  # whatever keeps the tests from starting
        channel.say({"broken": f"{type(error).__name__}: {error}"[:300]})
        return
    channel.say({"ready": True})
    while True:
        test = tests[channel.hear()["test"]]
        try:
            exec(test, names)
            channel.say({"passed": True})
        except Fault as error:
            channel.say({"fault": str(error)[:300]})
        except BaseException as error:  # a failed assertion, or whatever a wrong value makes a test raise
            channel.say({"passed": False, "error": type(error).__name__})
