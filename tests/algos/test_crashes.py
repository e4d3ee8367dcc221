"""A run that is killed at any moment, or finds its disk full or its files damaged, goes on as if nothing had been."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.algos.mortal import EVERY, Host, algorithm
from tests.algos.toys import MLPPolicy
from tetrathlon.algos.checkpoint import Checkpoints
from tetrathlon.algos.on_policy import PPO


class Pole(MLPPolicy):
    """A policy whose stream of actions is part of its state."""

    def get_extra_state(self) -> dict[str, Any]:
        return {"generator": self.generator.get_state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.generator.set_state(state["generator"])


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    made = Host()
    yield made
    made.close()


def state(folder: Path) -> tuple[int, dict[str, Any]]:
    """Return the step and the state of the newest checkpoint."""
    found = Checkpoints(folder / "checkpoints").load()
    assert found is not None
    return found


def same(one: Any, other: Any) -> bool:
    """Return whether two states are equal, bit for bit."""
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def metrics(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of ``metrics.jsonl``, without what the clock says."""
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [{name: value for name, value in line.items() if "seconds" not in name} for line in lines]


def check_same_run(run: Path, whole: Path, updates: int) -> None:
    step, reached = state(run)
    assert step == updates == state(whole)[0]
    assert same(reached, state(whole)[1])
    assert [line["update"] for line in metrics(run)] == list(range(updates))
    assert metrics(run) == metrics(whole)


def test_a_run_killed_twenty_times_ends_as_one_never_stopped(host: Host, tmp_path: Path) -> None:
    moments = random.Random(0)
    run, whole = tmp_path / "run", tmp_path / "whole"
    noted = kept = 0
    reached = []
    for _ in range(20):
        ended, _ = host.run("language", run, 10**6, event=moments.randrange(50), delay=moments.uniform(0, 0.05))
        assert ended == signal.SIGKILL
        if (run / "metrics.jsonl").is_file():
            noted = (run / "metrics.jsonl").read_bytes().count(b"\n")
        if list(run.glob("checkpoints/step-*")):
            assert state(run)[0] >= kept  # nothing that was kept is lost
            kept = state(run)[0]
        assert (noted - 1) // EVERY * EVERY <= kept <= noted
        reached.append(kept)
    assert len(set(reached)) > 5, reached  # else the kills came before there was anything to lose
    assert host.run("language", run, kept + 3)[0] == 0
    assert host.run("language", whole, kept + 3)[0] == 0
    check_same_run(run, whole, kept + 3)
    assert not list(run.glob("checkpoints/.*"))  # what kills left half written is swept up


@pytest.mark.parametrize("done", [0, 2])
def test_a_kill_at_each_event_on_its_files_costs_a_run_nothing(host: Host, tmp_path: Path, done: int) -> None:
    """Every opening, renaming, removing and syncing of an update: of the first, and of one with two checkpoints."""
    before, whole, once = tmp_path / "before", tmp_path / "whole", tmp_path / "once"
    host.run("table", whole, done + 1, every=1)
    if done:
        host.run("table", before, done, every=1)
    else:
        before.mkdir()
    shutil.copytree(before, once)
    _, events = host.run("table", once, done + 1, every=1)
    assert events > 20
    for event in range(events):
        run = tmp_path / f"run{event}"
        shutil.copytree(before, run)
        assert host.run("table", run, done + 1, every=1, event=event)[0] == signal.SIGKILL
        if done:
            assert state(run)[0] >= done
        assert host.run("table", run, done + 1, every=1)[0] == 0
        check_same_run(run, whole, done + 1)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of five updates, with checkpoints after the fourth and the fifth."""
    algorithm("table", tmp_path / "run").learn(5)
    return tmp_path / "run"


def test_a_run_that_died_before_its_first_checkpoint_notes_its_start_once(tmp_path: Path) -> None:
    class Looks:
        """Sees the start, and dies in an update."""

        dies = True

        def before(self, metrics: dict[str, float]) -> None:
            metrics["looked"] = 1.0

        def __call__(self, number: int, metrics: dict[str, float]) -> None:
            if self.dies:
                raise KeyboardInterrupt

    made = algorithm("table", tmp_path)
    made.callbacks = [looks := Looks()]
    with pytest.raises(KeyboardInterrupt):
        made.learn(2)
    looks.dies = False
    made = algorithm("table", tmp_path)
    made.callbacks = [looks]
    made.learn(2)
    assert [line["update"] for line in metrics(tmp_path)] == [-1, 0, 1]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def empty(path: Path) -> None:
    shutil.rmtree(path)
    path.mkdir()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: os.truncate(path / "state.pt", (path / "state.pt").stat().st_size // 2),
    "nothing in it": lambda path: os.truncate(path / "state.pt", 0),
    "a bit flipped": lambda path: flip(path / "state.pt"),
    "a bit of the digest flipped": lambda path: flip(path / "state.sha256"),
    "a digest that is no text": lambda path: (path / "state.sha256").write_bytes(b"\xff" * 64),
    "no digest": lambda path: (path / "state.sha256").unlink(),
    "no state": lambda path: (path / "state.pt").unlink(),
    "an empty folder": empty,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_checkpoint_is_named_and_done_again(
    run: Path, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(run, whole)
    newest = run / "checkpoints/step-00000005"
    damage(newest)
    with pytest.warns(UserWarning, match=rf"{newest} is damaged \(.+\); the one before it is taken"):
        assert len(algorithm("table", run).learn(5)) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_same_run(run, whole, 5)


def test_a_damaged_checkpoint_of_later_does_not_outlive_a_new_one_of_earlier(run: Path) -> None:
    for path in (run / "checkpoints").iterdir():
        path.rename(path.with_name(path.name.replace("5", "8")))
    flip(run / "checkpoints/step-00000008/state.pt")
    with pytest.warns(UserWarning, match="step-00000008 is damaged"):
        algorithm("table", run).learn(6)
    assert sorted(os.listdir(run / "checkpoints")) == ["step-00000004", "step-00000006"]


def test_no_checkpoint_is_taken_where_all_are_damaged(run: Path) -> None:
    kept = metrics(run)
    for path in (run / "checkpoints").iterdir():
        empty(path)
    with pytest.warns(UserWarning), pytest.raises(ValueError, match=rf"all checkpoints in {run}/checkpoints are dam"):
        algorithm("table", run).learn(9)
    assert metrics(run) == kept


@contextmanager
def room(size: int) -> Iterator[None]:
    """Let no file grow beyond ``size`` bytes: writing fails in the middle, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_stops_a_run_that_goes_on_when_there_is_room(run: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(run, whole)
    algorithm("table", whole).learn(7)
    again = algorithm("table", run)
    size = (run / "checkpoints/step-00000005/state.pt").stat().st_size
    with room(size // 2), pytest.raises(OSError, match=f"checkpoint step-00000006 cannot be written to {run}/check"):
        again.learn(7)
    assert sorted(os.listdir(run / "checkpoints")) == ["step-00000004", "step-00000005"]
    algorithm("table", run).learn(7)
    check_same_run(run, whole, 7)


def test_no_metrics_are_lost_in_a_full_disk(run: Path, tmp_path: Path) -> None:
    algorithm("table", run).learn(41)  # now they are longer than a checkpoint, for which there will be room
    whole = tmp_path / "whole"
    shutil.copytree(run, whole)
    algorithm("table", whole).learn(44)
    with room((run / "metrics.jsonl").stat().st_size + 20), pytest.raises(OSError):
        algorithm("table", run).learn(44)
    algorithm("table", run).learn(44)
    check_same_run(run, whole, 44)


def test_a_configuration_that_cannot_be_read_is_named(run: Path) -> None:
    os.truncate(run / "config.json", 20)
    with pytest.raises(ValueError, match=f"{run}/config.json"):
        algorithm("table", run)


@pytest.mark.parametrize("vector", ["auto", "no"])
def test_stretches_of_play_go_on_as_if_nothing_had_been(tmp_path: Path, vector: str) -> None:
    def play(folder: str) -> PPO:
        options: dict[str, Any] = {"horizon": 8, "groups": 2, "vector": vector, "epochs": 1}
        run = tmp_path / folder
        return PPO(Pole(4, 2), "CartPole-v1", run=run, resume=True, checkpoint_every=EVERY, **options)

    play("whole").learn(3 * EVERY)
    play("run").learn(2 * EVERY)
    play("run").learn(3 * EVERY)
    check_same_run(tmp_path / "run", tmp_path / "whole", 3 * EVERY)
