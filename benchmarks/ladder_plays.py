"""What the ladder plays: demonstrations, from a part of the table or from all of it, and what a policy is tried by."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import Any

import numpy as np
import torch
from gymnasium.utils import seeding

from tetrathlon.agents.naming import make_policy
from tetrathlon.agents.policy import Acted, Policy, RandomPolicy
from tetrathlon.agents.result import counts
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.agents.vla import VLAPolicy
from tetrathlon.algos.batch import parts
from tetrathlon.algos.cloner import lessons
from tetrathlon.algos.demonstrations import read
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.pool import make_slots
from tetrathlon.envs.registry import make
from tetrathlon.envs.robots.instance import Instance
from tetrathlon.envs.robots.push import Push
from tetrathlon.envs.robots.scenes import compiled
from tetrathlon.envs.robots.senses import Observation
from tetrathlon.envs.robots.steering import direction

TASK = "tetrathlon/PushToZone-v0"
CHUNK = 2
NARROW = -0.8
"""In a narrow demonstration the hand begins behind the object: the cosine between the ways from the object to the hand
and to the zone is below."""
THROWN = 20
"""Control steps at random that a recovery begins with."""
EPISODES = {
    "pixels": {"test": 300, "recovery": 300, "blank": 100, "swapped": 100, "other": 100},
    "state": {"test": 300, "recovery": 300},
}
"""How many episodes of a kind a policy is tried by: the test split; the same after random steps; without a picture;
told of another object than the one that counts; told of another object, which then counts."""
_SLOTS = 64
_TEST_SEEDS, _LOSS_SEEDS, _LOSS_EPISODES = 900_000_000, 800_000_000, 64
_LOSS_COST = 512.0


def arguments(observation: Observation) -> dict[str, Any]:
    """Return the constructor arguments of the task for a policy."""
    return {"observation": observation, "chunk": CHUNK}


def instance_of(seed: int, split: str = "train") -> Instance:
    """Return what a reset from ``seed`` brings."""
    return Push().chosen(seeding.np_random(seed)[0], split, compiled(Push, "pusher").layout.robot)


def is_narrow(instance: Instance) -> bool:
    """Tell whether its hand is where narrow demonstrations begin."""
    thing = np.array(instance.objects[instance.target][:2])
    ways = [direction((np.array(at[:2]) - thing)[None])[0] for at in (instance.hand, instance.places[instance.place])]
    return float(ways[0] @ ways[1]) < NARROW


def demonstrations(observation: Observation, seed: int, n: int, *, narrow: bool, skip: int = 0) -> list[Episode]:
    """Let the expert play ``n`` episodes of single actions.

    Args:
        observation: What is recorded.
        seed: From which one on seeds are tried.
        n: How many.
        narrow: Whether only those count whose hand begins behind the object.
        skip: How many are passed over first.
    """
    fitting: Iterator[int] = (s for s in count(seed) if not narrow or is_narrow(instance_of(s)))
    starts = [Start(seed=s) for s in islice(fitting, skip, skip + n)]
    with contextlib.closing(make(TASK)) as env:
        return _played(make_policy("expert", env), starts, {"observation": observation, "split": "train"})


def _played(policy: Policy, starts: Sequence[Start], kwargs: dict[str, Any]) -> list[Episode]:
    with contextlib.closing(make_slots(TASK, min(_SLOTS, len(starts)), kwargs)) as slots:
        return Rollout(policy, slots, starts, greedy=True, env=TASK, kwargs=kwargs).episodes()


def measure(policy: VLAPolicy, observation: Observation) -> dict[str, Any]:
    """Return how a policy does, by the kinds of :data:`EPISODES`; the likeliest actions are taken."""
    was_training = policy.training
    policy.eval()
    told = {kind: _tried(policy, observation, kind, n) for kind, n in EPISODES[observation].items()}
    policy.train(was_training)
    return told


def _tried(policy: VLAPolicy, observation: Observation, kind: str, n: int) -> dict[str, Any]:
    actor: Policy = policy
    starts = [Start(seed=_TEST_SEEDS + i) for i in range(n)]
    if kind == "recovery":
        actor = _Thrown(policy, RandomPolicy(policy.action_space, seed=0))
    elif kind == "blank":
        actor = _Blind(policy)
    elif kind == "swapped":
        starts = [replace(start, seed=None, options={"instance": _misled(start)}) for start in starts]
    elif kind == "other":
        starts = [replace(start, options={"counterfactual": True}) for start in starts]
    episodes = _played(actor, starts, {**arguments(observation), "split": "test"})
    found = counts(episodes, 1, None)
    told: dict[str, Any] = {
        "success": found["success"],
        "costs": found["costs"],
        "steps": _control_steps(episodes),
    }
    if kind == "test":
        inside = [is_narrow(instance_of(_TEST_SEEDS + i, "test")) for i in range(n)]
        for name, part in (("inside", True), ("outside", False)):
            own = [each.is_success for each, at in zip(episodes, inside, strict=True) if at is part]
            told[name] = float(np.mean(own)) if own else None
    return told


def _control_steps(episodes: Sequence[Episode]) -> float | None:
    """Return the mean number of control steps of a success."""
    done = [sum(step.info["env_steps"] for step in each.steps) for each in episodes if each.is_success]
    return float(np.mean(done)) if done else None


def _misled(start: Start) -> Instance:
    """Return the instance of a start with an instruction that names another object."""
    assert start.seed is not None
    true = instance_of(start.seed, "test")
    return replace(true, instruction=Push().counterfactual(true, "test").instruction)


@torch.no_grad()
def loss(policy: VLAPolicy, observation: Observation) -> float:
    """Return the imitation loss on what the expert does in episodes of the train split that nobody was shown."""
    episodes = read(demonstrations(observation, _LOSS_SEEDS, _LOSS_EPISODES, narrow=False), policy)
    was_training = policy.training
    policy.eval()
    batch = lessons(policy, episodes, "action")
    sums = sum(float((policy.imitation_loss(part)[0] * part.mask).sum()) for part in parts(batch, _LOSS_COST))
    policy.train(was_training)
    return sums / int(batch.mask.sum())


class _Thrown:
    """Acts at random in the first control steps of an episode."""

    def __init__(self, policy: Policy, chance: Policy) -> None:
        self._policy, self._chance = policy, chance

    def act(self, observations: Any, memory: Any = None, **others: Any) -> Acted:
        mine = self._policy.act(observations, None, **others)
        past = [0 if each is None else each for each in memory or [None] * len(mine.actions)]
        thrown = np.asarray([step * CHUNK < THROWN for step in past])[:, None, None]
        actions = np.where(thrown, self._chance.act(observations, None, **others).actions, mine.actions)
        return Acted(actions, [step + 1 for step in past], mine.records)


class _Blind:
    """Is shown a black picture."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def act(self, observations: Any, memory: Any = None, **others: Any) -> Acted:
        return self._policy.act({**observations, "image": np.zeros_like(observations["image"])}, memory, **others)
