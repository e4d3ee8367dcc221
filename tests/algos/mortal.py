"""Runs that are killed, and the process that starts them: torch is read once, and every run is a fork of it.

As a program it reads orders from its input, a line of JSON each, and answers each with a line.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from tests.algos.toys import TablePolicy
from tetrathlon.agents.char_lm import char_lm
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.dagger import DAgger
from tetrathlon.algos.on_policy import GRPO, PPO
from tetrathlon.algos.trainer import Trainer
from tetrathlon.envs.spaces import UnicodeText

LETTERS = "abcd"
EVERY = 2
"""Updates from one checkpoint to the next."""


class Guess(gym.Env[Any, Any]):
    """Shows one of four letters, which is the right answer, by name or by number."""

    def __init__(self, text: bool = False) -> None:
        self.text = text
        self.observation_space = UnicodeText(1) if text else gym.spaces.Discrete(len(LETTERS))
        self.action_space = UnicodeText(8) if text else gym.spaces.Discrete(len(LETTERS))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        number = int(self.np_random.integers(len(LETTERS)))
        self.shown = LETTERS[number] if self.text else number
        return self.shown, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.shown, float(action == self.shown), True, False, {}


class Table(TablePolicy):
    """A table policy whose stream of actions is part of its state."""

    def get_extra_state(self) -> dict[str, Any]:
        return {"generator": self.generator.get_state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.generator.set_state(state["generator"])


def algorithm(kind: str, folder: str | Path, every: int = EVERY) -> Trainer[Any]:
    """Return the run in ``folder``, new or gone on with.

    Of a table with a reference, or with an expert whose labels are kept; or of a language model.
    """
    if "Guess-v0" not in gym.registry:
        gym.register("Guess-v0", entry_point="tests.algos.mortal:Guess")
    kept: dict[str, Any] = {"run": folder, "resume": True, "checkpoint_every": every}
    if kind == "table":
        return GRPO(Table(4, 4, seed=3), "Guess-v0", groups=2, group_size=4, lr=0.05, kl_coef=0.1, epochs=2, **kept)
    if kind == "labels":
        asked: dict[str, Any] = {"beta": 0.8, "beta_decay": 0.5, "query": "every", "every": 2}
        table = Table(len(LETTERS), len(LETTERS), seed=3)
        return DAgger(table, "Guess-v0", expert=np.asarray, episodes=8, steps=3, lr=0.05, **asked, **kept)
    policy: TrainablePolicy = char_lm(
        characters=LETTERS, size=16, layers=1, heads=2, context=16, max_tokens=3, critic="head"
    )
    return PPO(policy, "Guess-v0", kwargs={"text": True}, groups=8, lr=1e-3, epochs=2, minibatches=2, **kept)


class Host:
    """A process that has read torch, and its forks."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.algos.mortal"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def run(
        self,
        kind: str,
        folder: Path,
        updates: int,
        *,
        every: int = EVERY,
        event: int | None = None,
        delay: float | None = None,
    ) -> tuple[int, int]:
        """Run up to ``updates`` updates in a process of its own.

        Args:
            kind: See :func:`algorithm`.
            folder: Of the run.
            updates: See :meth:`~tetrathlon.algos.trainer.Trainer.learn`.
            every: Updates from one checkpoint to the next.
            event: Number of the event on its files before which it is killed; None: it is not.
            delay: Seconds from that event to the kill; None: it kills itself there and then.

        Returns:
            The signal that ended it, 0 if it came to its end, and how many events there were.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        order = {"kind": kind, "folder": str(folder), "updates": updates, "every": every}
        self._process.stdin.write(json.dumps({**order, "event": event, "delay": delay}) + "\n")
        self._process.stdin.flush()
        ended, events = json.loads(self._process.stdout.readline())
        return ended, events

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(30) == 0


def _watch(folder: str, touched: Callable[[], None]) -> None:
    """Call ``touched`` before each event on a file in ``folder``, and before what was written is on the disk."""

    def hear(event: str, args: tuple[Any, ...]) -> None:
        if event.startswith(("open", "os.", "shutil.")) and any(str(arg).startswith(folder) for arg in args):
            touched()

    sys.addaudithook(hear)
    sync = os.fsync

    def synced(file: Any) -> None:
        touched()
        sync(file)

    setattr(os, "fsync", synced)  # noqa: B010


def _play(order: dict[str, Any], mouth: int) -> None:
    last = order["event"] if order["delay"] is None else None
    seen = 0

    def touched() -> None:
        nonlocal seen
        if seen == last:
            os.kill(os.getpid(), signal.SIGKILL)
        seen += 1
        os.write(mouth, b".")

    _watch(order["folder"], touched)
    algorithm(order["kind"], order["folder"], order["every"]).learn(order["updates"])


def _serve(order: dict[str, Any]) -> tuple[int, int]:
    """Fork a run, kill it if that is asked; return the signal that ended it, and how many events there were."""
    ear, mouth = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            _play(order, mouth)
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    os.close(mouth)
    events = 0
    while told := os.read(ear, 1):
        if order["delay"] is not None and events == order["event"]:
            time.sleep(order["delay"])
            os.kill(pid, signal.SIGKILL)
        events += len(told)
    os.close(ear)
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError(f"the run ended with code {os.WEXITSTATUS(status)}")
    return (os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0), events


@cache
def _warm(kind: str) -> None:
    """Do an update here, so that no fork has to read what the first one reads."""
    with tempfile.TemporaryDirectory() as folder:
        algorithm(kind, folder).learn(1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    gc.disable()  # a collection in a fork would copy all that it looks at
    for line in sys.stdin:
        order = json.loads(line)
        _warm(order["kind"])
        print(json.dumps(_serve(order)), flush=True)
    os._exit(0)  # taking torch apart takes seconds
