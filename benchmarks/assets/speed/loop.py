"""Runs one contender in a process of its own: ``python loop.py PROGRAM OPTIONS``.

PROGRAM is a Python file with ``PACKAGES``, the names of the packages that its numbers depend on, and
``start(**options)``, which makes everything ready and returns ``episodes(n)``: it plays n episodes and returns their
rewards. OPTIONS is JSON. Each line of standard input is a number of episodes to play; each answer is a line of JSON.
This file needs the standard library alone, so it runs in any virtual environment.
"""

import importlib
import json
import os
import platform
import sys
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path


def others_seconds():
    """Return the processor seconds of every process that this one started, ended or alive.

    A tool may run in a process that outlives its episode: such are found in /proc, where there is one.
    """
    times = os.times()
    return times.children_user + times.children_system + _descendants()


def _descendants():
    children, ticks = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it ended just now
            continue
        pid = int(entry.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        ticks[pid] = sum(map(int, fields[11:15]))  # of its own and of its ended children
    total, waiting = 0, [os.getpid()]
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            total += ticks[pid]
            waiting.append(pid)
    return total / os.sysconf("SC_CLK_TCK")


def main(program, options):
    """Start ``program``, then serve standard input until it ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    sys.dont_write_bytecode = True  # these folders are package data
    path = Path(program)
    sys.path.insert(0, str(path.parent))
    module = importlib.import_module(path.stem)
    episodes = module.start(**json.loads(options))
    versions = {"python": platform.python_version(), **{name: version(name) for name in module.PACKAGES}}
    print(json.dumps({"versions": versions}), file=replies, flush=True)
    for line in sys.stdin:
        others, own, start = others_seconds(), time.process_time(), time.perf_counter()
        rewards = episodes(int(line))
        seconds, cpu = time.perf_counter() - start, time.process_time() - own
        cpu += others_seconds() - others
        answer = {"seconds": seconds, "cpu_seconds": cpu, "rewards": Counter(map(float, rewards))}
        print(json.dumps(answer), file=replies, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
