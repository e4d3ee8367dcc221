"""Programs that attack their tests: none is paid, none raises, and the next one is graded as ever."""

from __future__ import annotations

import json
import re
import secrets
import time

import pytest

from tetrathlon.envs.text.coding.grader import Asserts, Budget, Calls, Tests
from tetrathlon.envs.text.coding.tasks import Case

BUDGET = Budget(seconds=3.0)
SQUARES = Calls("f", tuple(Case((number,), number * number + 1) for number in range(12)))
RIGHT = "def f(n):\n    return n * n + 1\n"


def _channel(forge: str) -> str:
    return f"import json, os, sys\ndef send(message): os.write(4, (json.dumps(message) + chr(10)).encode())\n{forge}\n"


REQUEST = """
def frames():
    frame = sys._getframe()
    while frame:
        yield frame
        frame = frame.f_back

def nonce():
    return next(frame.f_locals["request"]["nonce"] for frame in frames() if "request" in frame.f_locals)
"""
ATTACKS = {
    "exit early": "import sys\nsys.exit(0)",
    "exit hard": "import os\nos._exit(0)",
    "exit in the function": "import sys\ndef f(n): sys.exit(0)",
    "print passes": "print('12 passed')\nprint('all 12 tests passed')\ndef f(n): print('OK')",
    "patch builtins": "import builtins\nbuiltins.all = builtins.any = lambda *a: True\n"
    "builtins.__build_class__ = None\nbuiltins.isinstance = lambda *a: True\n"
    "builtins.len = lambda a: 12\ndef f(n): return 0",
    "patch json": "import json, sys\njson.dumps = lambda *a, **k: '{\"passed\": 12}'\njson.loads = lambda *a: {}\n"
    "def f(n): return 0",
    "patch the harness": "import sys\nfor name, module in list(sys.modules.items()):\n"
    "    if 'coding' in name:\n        for key in vars(module):\n"
    "            if callable(getattr(module, key)):\n                setattr(module, key, lambda *a, **k: True)\n"
    "def f(n): return 0",
    "patch unittest": "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\ndef f(n): return 0",
    "patch time": "import time\ntime.monotonic = time.time = time.perf_counter = lambda: 0\ndef f(n): return 0",
    "forge replies early": _channel("for k in range(20): send({'value': 1, 'nonce': '0' * 16})\ndef f(n): return 0"),
    "forge verdicts": _channel("send({'passed': True})\nsend({'passed': 12, 'total': 12})\ndef f(n): return 0"),
    "forge without newlines": "import os\nos.write(4, b'x' * 1000)\ndef f(n): return n * n + 1",
    "forge deep replies": "import os\nos.write(4, b'[' * 100000 + b'\\n')\ndef f(n): return n * n + 1",
    "forge odd replies": "import os\nos.write(4, b'5\\nnull\\n[]\\n{}\\n')\ndef f(n): return n * n + 1",
    "forge binary replies": "import os\nos.write(4, b'\\xff\\x00\\n')\ndef f(n): return n * n + 1",
    "forge deep values": _channel(
        REQUEST + "deep = '[' * 150 + ']' * 150\ndef f(n):\n"
        "    os.write(4, ('{\"nonce\": \"' + nonce() + '\", \"value\": ' + deep + '}\\n').encode()); os._exit(0)"
    ),
    "forge odd values": _channel(REQUEST + "def f(n): send({'nonce': nonce(), 'value': {'t': {'t': 0}}}); os._exit(0)"),
    "forge errors": _channel(
        REQUEST + "def f(n): send({'nonce': nonce(), 'error': ['x'] * 9, 'reason': {}}); os._exit(0)"
    ),
    "close the channel": "import os\nos.close(3)\nos.close(4)\ndef f(n): return n * n + 1",
    "close all": "import os\nos.closerange(0, 100)\ndef f(n): return n * n + 1",
    "flood the channel": "import os\nwhile True: os.write(4, b'x' * 65536)",
    "flood the output": "while True: print('x' * 65536)",
    "return much": "def f(n): return 'x' * 10_000_000",
    "return many": "def f(n): return [0] * 5_000_000",
    "return deep": "def f(n):\n    a = []\n    for _ in range(100_000): a = [a]\n    return a",
    "return a loop": "def f(n):\n    a = []\n    a.append(a)\n    return a",
    "return a huge number": "def f(n): return 1 << 50_000_000",
    "return an equal to all": "class A:\n    def __eq__(self, other): return True\n    def __hash__(self): return 1\n"
    "def f(n): return A()",
    "return an equal int": "class A(int):\n    def __eq__(self, other): return True\n    def __hash__(self): return 1\n"
    "def f(n): return A(-5)",
    "return a liar": "class A:\n    @property\n    def __class__(self): return int\n"
    "    def __eq__(self, other): return True\ndef f(n): return A()",
    "return a liar of lists": "class A(list):\n    def __eq__(self, other): return True\n"
    "    def __iter__(self): 1 / 0\ndef f(n): return A()",
    "return a trap": "class A(dict):\n    def items(self):\n        while True: yield 1, 2\ndef f(n): return A()",
    "raise oddly": "class A(BaseException):\n    def __str__(self): raise self\n    __repr__ = __str__\n"
    "A.__name__ = 'passed' * 1000\ndef f(n): raise A()",
    "raise from the bottom": "def f(n): raise BaseException('passed')",
    "raise KeyboardInterrupt": "raise KeyboardInterrupt",
    "kill itself": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "kill the parent": "import os, signal\ntry:\n    os.kill(os.getppid(), 9)\nexcept OSError: pass\n"
    "try:\n    os.kill(-1, 9)\nexcept OSError: pass\ndef f(n): return 0",
    "crash": "import ctypes\nctypes.string_at(0)",
    "overflow the stack": "import sys\nsys.setrecursionlimit(10**9)\ndef f(n): return f(n)",
    "use up memory": "x = []\nwhile True: x.append(bytearray(10**7))",
    "fork": "import os\nos.fork()\nos.fork()\ndef f(n): return 0",
    "fork bomb": "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError: pass",
    "exec": "import os, sys\nos.execv(sys.executable, ['python', '-c', 'print(12)'])",
    "compile deep": "x = " + "-" * 90_000 + "1",
    "compile deep brackets": "x = " + "(" * 40_000 + ")" * 40_000,
    "compile a power": "def f(n): return 9 ** 9 ** 9",
    "trace": "import sys\nsys.settrace(lambda *a: (_ for _ in ()).throw(SystemExit))\ndef f(n): return 0",
    "exit hooks": "import atexit, os\natexit.register(os.write, 4, b'{\"passed\": true}\\n')\nraise SystemExit",
    "threads": "import threading, os\ndef go():\n    while True: os.write(1, b'x')\n"
    "[threading.Thread(target=go).start() for _ in range(5)]\nimport sys\nsys.exit()",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_pays(name: str) -> None:
    begun = time.monotonic()
    budget = Budget(seconds=0.5, memory_mb=256)
    verdict = SQUARES.judge(ATTACKS[name], budget)
    assert verdict.passed <= 1  # f(0) is 1: a guess
    if not re.search("(timeout|cpu)$", verdict.note):
        assert Asserts(("f",), ("assert f(3) == 10", "assert f(4) == 17")).judge(ATTACKS[name], budget).passed == 0
    assert SQUARES.judge(RIGHT, BUDGET).is_right
    assert time.monotonic() - begun < 12


def test_a_second_reply_is_never_another_calls() -> None:
    code = _channel(
        REQUEST + "def f(n):\n    send({'nonce': nonce(), 'value': n * n + 1})\n    return n * n + 1"
    )  # right, but doubled: the second reply would shift all later ones
    verdict = SQUARES.judge(code, BUDGET)
    assert verdict.passed == 1 and "channel" in verdict.note


SPY = """
import gc, os, re, sys
PATTERN = re.compile(rb"zq[0-9a-f]{32}")

def search(data):
    found = PATTERN.search(data if isinstance(data, bytes) else str(data).encode(errors="replace"))
    return found and found[0].decode()

def frames():
    frame = sys._getframe()
    while frame:
        yield frame.f_locals
        yield frame.f_globals
        frame = frame.f_back

def memory(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            span, rights = line.split()[:2]
            start, end = (int(part, 16) for part in span.split("-"))
            if rights.startswith("rw") and end - start < 1 << 26:
                try:
                    mem.seek(start)
                    yield mem.read(end - start)
                except OSError:
                    continue

def look():
    for values in frames():
        yield repr(values)
    for thing in gc.get_objects():
        try:
            yield repr(thing)
        except Exception:
            continue
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            for file in ("cmdline", "environ"):
                try:
                    yield open(f"/proc/{name}/{file}", "rb").read()
                except OSError:
                    continue
            try:
                yield from memory(name)
            except OSError:
                continue
    for folder in (".", "/tmp", "/dev/shm"):
        for place, _, names in os.walk(folder):
            for name in names:
                try:
                    yield open(os.path.join(place, name), "rb").read(1 << 20)
                except OSError:
                    continue

def f(n):
    for data in look():
        if found := search(data):
            return found
    return "nothing"
"""


def test_what_is_expected_is_not_to_be_found() -> None:
    secret = "zq" + secrets.token_hex(16)
    hidden: list[Tests] = [
        Calls("f", (Case((0,), secret), Case((1,), secret))),
        Asserts(("f",), (f"assert f(0) == {secret!r}", f"x = {secret!r}\nassert f(1) == x")),
    ]
    for tests in hidden:
        assert tests.judge(SPY, Budget(seconds=10.0)).passed == 0
    known = f"SECRET = {secret!r}\n" + SPY  # the search itself works: it finds what is there
    assert hidden[0].judge(known, Budget(seconds=10.0)).passed == 2


def test_notes_are_short_and_json() -> None:
    for code in ATTACKS["raise oddly"], "class " + "A" * 5_000 + ": pass\ndef f(n): return " + "A" * 5_000 + "()":
        note = SQUARES.judge(code, BUDGET).note
        assert len(note) <= 300 and json.loads(json.dumps(note)) == note
