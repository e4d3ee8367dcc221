"""What an update costs and in which phase; it needs torch alone, so it runs in any virtual environment."""

import json
import os
import platform
import sys
import time
from importlib.metadata import version

# What a library prints is no answer.
_REPLIES = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


class Clock:
    """Adds up processor seconds by phase, with those of every thread, and waits for the next order in between."""

    def __init__(self):
        self.phases = {}
        self._cpu = self._wall = 0.0

    def timed(self, phase, call):
        """Return ``call`` with its processor seconds noted under ``phase``."""

        def run(*args, **kwargs):
            start = time.process_time()
            try:
                return call(*args, **kwargs)
            finally:
                self.phases[phase] = self.phases.get(phase, 0.0) + time.process_time() - start

        return run

    def wait(self):
        """Wait for a line of standard input, and start the clock; at its end the process ends."""
        if not sys.stdin.readline():
            sys.exit()
        self.phases = {}
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def answer(self, **told):
        """Say what the update took."""
        cpu, seconds = time.process_time() - self._cpu, time.perf_counter() - self._wall
        answer(cpu_seconds=cpu, seconds=seconds, phases=self.phases, **told)


def answer(**told):
    """Write a line of JSON."""
    print(json.dumps(told), file=_REPLIES, flush=True)


def ready(packages, **told):
    """Say that all is loaded, and with which versions."""
    answer(versions={"python": platform.python_version(), **{name: version(name) for name in packages}}, **told)
