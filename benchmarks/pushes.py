"""The planar pusher for a small policy: a start that is near, for experiments."""

from __future__ import annotations

import copy
from contextlib import closing
from functools import cache

from tetrathlon.agents.vla import VLAPolicy
from tetrathlon.algos.demonstrations import read
from tetrathlon.algos.imitation import clone
from tetrathlon.benchmarks.ladder_plays import CHUNK, TASK, demonstrations
from tetrathlon.envs.registry import make

ENV = TASK
SETTINGS = {"observation": "state", "chunk": CHUNK, "reward": "dense"}
"""Constructor arguments: numbers and an instruction, two actions at a time, paid for progress."""
_FIRST_SEED = 50_000_000
_SHOWN = 100


@cache
def _cloned(seed: int) -> VLAPolicy:
    with closing(make(ENV, **SETTINGS)) as env:
        policy = VLAPolicy(env.observation_space, env.action_space, log_std=-1.0, seed=seed)
    shown = demonstrations("state", _FIRST_SEED * (seed + 1), _SHOWN, narrow=False)
    clone(policy, read(shown, policy), steps=600, lr=1e-3, seed=seed)
    return policy


def near(seed: int = 0) -> VLAPolicy:
    """Return a policy that was shown 100 episodes of the expert, in 600 optimizer steps.

    Args:
        seed: Of all.
    """
    return copy.deepcopy(_cloned(seed))
