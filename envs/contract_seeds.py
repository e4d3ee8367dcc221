"""The part of the contract that is about seeds: who decides what an episode is like, and who must not."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, zip_longest
from typing import Any

import numpy as np

from tetrathlon.envs.subject import ContractError, CopyError, Subject, equal, first_mark, go_on, mark, marks, play

_SEEDS = range(8)
_SPLIT_SEEDS = range(40)


def _global_generators() -> dict[str, Any]:
    now: dict[str, Any] = {"random": random.getstate(), "numpy.random": np.random.get_state()}
    if hasattr(torch := sys.modules.get("torch"), "get_rng_state"):
        now["torch"] = torch.get_rng_state().numpy().tobytes()  # type: ignore[union-attr]
    return now


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)  # of tuples of numbers a hundred times as fast
    except ValueError:  # an array among them has no one truth
        return equal(one, other)


@contextmanager
def _global_generators_kept() -> Iterator[None]:
    before = _global_generators()
    try:
        yield
    finally:
        random.setstate(before["random"])
        np.random.set_state(before["numpy.random"])


def check_global_rng(subject: Subject) -> None:
    """Neither reset nor step nor expert draws from, seeds or listens to a global generator."""
    env = subject.make()
    resets: list[dict[str, Any]] = [{"seed": 3}, {}, {"seed": 4}]
    with _global_generators_kept():
        random.seed(987_654_321)  # no state that an environment's own seeding would bring about
        np.random.seed(987_654_321)
        before = _global_generators()
        for moment in play(env, resets):
            after = _global_generators()
            if touched := [name for name in before if not _same(before[name], after.get(name))]:
                what = "reset" if moment.action is None else "step or expert_action"
                raise ContractError(
                    "global_rng",
                    f"{what} changed the global generator of {touched[0]}: draw from self.np_random only, which "
                    "super().reset(seed=seed) seeds",
                )
        played = []
        for seed in (1, 2):
            random.seed(seed)
            np.random.seed(seed)
            played.append(marks(play(subject.make(), resets[::2])))
    if played[0] != played[1]:
        raise ContractError(
            "global_rng",
            "the same reset seed gave other episodes after random.seed(1) than after random.seed(2): all randomness "
            "must come from self.np_random",
        )


def check_interleaving(subject: Subject) -> None:
    """Two copies that take turns play what one plays alone, a reset without seed included."""
    resets: list[dict[str, Any]] = [{"seed": 11}, {}, {"seed": 12}, {}]
    alone = marks(play(subject.make(), resets))
    first, second = play(subject.make(), resets), play(subject.make(), resets)
    head = marks(islice(second, 1))  # one moment ahead, so that their resets do not coincide
    turns = [(one.mark if one else None, other.mark if other else None) for one, other in zip_longest(first, second)]
    for seen in ([one for one, _ in turns if one], [*head, *(other for _, other in turns if other)]):
        if seen != alone:
            where = next((i for i, (a, b) in enumerate(zip_longest(seen, alone)) if a != b), 0)
            raise ContractError(
                "interleaving",
                f"beside another copy, moment {where} of {len(alone)} was another than alone, with the same seeds and "
                "actions: keep all state in the instance and draw from self.np_random only",
            )


def check_new_process(subject: Subject) -> None:
    """A seed gives the same first observation in a new process with another PYTHONHASHSEED."""
    env = subject.make()
    here = [first_mark(env, seed=seed) for seed in _SEEDS]
    try:
        there = subject.first_marks_elsewhere(_SEEDS)
    except CopyError as error:
        raise ContractError("new_process", str(error)) from error
    if other := [seed for seed, a, b in zip(_SEEDS, here, there, strict=True) if a != b]:
        raise ContractError(
            "new_process",
            f"reset(seed={other[0]}) gave another first observation or task_id in a new process ({len(other)} of "
            f"{len(here)} seeds): let nothing depend on hash(), the order of a set, the clock or the machine",
        )


def check_splits(subject: Subject) -> bool | None:
    """Train and test share no instance."""
    if not subject.takes("split"):
        return False
    tasks: list[set[str]] = []
    sights: list[set[str]] = []
    for split in ("train", "test"):
        env = subject.make(split=split)
        resets: list[dict[str, Any]] = [{"seed": seed} for seed in _SPLIT_SEEDS]
        resets += [{"seed": 0, "options": {"index": index}} for index in _SPLIT_SEEDS]
        begun = [env.reset(**reset) for reset in resets]
        tasks.append({mark(info.get("task_id", observation)) for observation, info in begun})
        sights.append({mark(observation) for observation, _ in begun})
    kinds = [("task_id", tasks)]
    moment = next(go_on(env, how="expert"))
    if moment.terminated:  # of a single turn, the first observation is all there is
        kinds.append(("first observation", sights))
    for name, (train, test) in kinds:
        if shared := train & test:
            raise ContractError(
                "splits",
                f"{len(shared)} of {len(test)} instances of the test split (by {name}) came up in train too: let a "
                "hash of an instance's content decide its split",
            )
    return None


def check_random_access(subject: Subject) -> bool | None:
    """``reset(options={"index": i})`` gives the i-th instance, whatever was played before."""
    env, other = subject.make(), subject.make()

    def at(copy: Any, index: int, **reset: Any) -> str:
        return first_mark(copy, options={"index": index}, **reset)

    if all(at(env, 0, seed=seed) == first_mark(env, seed=seed) for seed in range(4)):
        if "task_id" not in env.reset(seed=0)[1]:
            return False
        raise ContractError(
            "random_access",
            'reset ignores options={"index": i}: give the i-th instance of the split, or skip="random_access"',
        )
    wanted = [at(env, index, seed=0) for index in range(5)]
    marks(play(env, [{"seed": 9}, {}]))
    for where, seen in (
        ("twice in one copy", [at(env, index) for index in range(5)]),
        ("after another seed", [at(env, index, seed=123) for index in range(5)]),
        ("in another copy, from the last to the first", [at(other, i) for i in reversed(range(5))][::-1]),
    ):
        if seen != wanted:
            raise ContractError(
                "random_access",
                f"the same index gave other instances {where}: let index alone decide, with a generator of its own",
            )
    if len(set(wanted)) == 1:
        raise ContractError("random_access", "the indices 0 to 4 all gave the same instance")
    return None
