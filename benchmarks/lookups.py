"""Lookup for a model of characters: what it reads as words, and a start that is near, for tests and experiments."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache
from typing import Any

from tetrathlon.agents.char_lm import char_lm
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.policy import EXPERT_KEY, Acted
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.algos.imitation import clone
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.pool import make_slots
from tetrathlon.envs.tools.lookup import ATTRIBUTES, Lookup

ENV = "tetrathlon/Lookup-v0"
_ATTRIBUTE = re.compile(r'(?<="attribute": ")[^"]*')
_NUMBER = re.compile(r"(?<=<answer>)\d+")
SHARE = 0.35
"""How often a turn of those that a start is shown is wrong."""
_FIRST_SEED = 50_000_000
_SLOTS = 64


def settings(hops: int, spare: int = 0) -> dict[str, Any]:
    """Return the constructor arguments of lookups that a small model can learn.

    Args:
        hops: How deep the questions are.
        spare: Turns beyond what the expert needs.
    """
    return {
        "least_hops": hops,
        "most_hops": hops,
        "letters": True,
        "brief": True,
        "max_turns": hops + 1 + spare,
        "max_tokens": 16,
    }


class Clumsy:
    """Does what the expert says, and something near it now and then: another attribute, or a number beside the answer.

    Args:
        share: How often, in each turn.
        seed: Of when and what.
    """

    asks = True

    def __init__(self, share: float, seed: int) -> None:
        self.share = share
        self._rng = random.Random(seed)

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        """See :meth:`tetrathlon.agents.policy.Policy.act`."""
        actions = [self._slipped(info[EXPERT_KEY]) for info in infos or ()]
        return Acted(tuple(actions), [()] * len(actions), [None] * len(actions))

    def _slipped(self, action: str) -> str:
        if self._rng.random() >= self.share:
            return action
        if _ATTRIBUTE.search(action):
            return _ATTRIBUTE.sub(self._rng.choice(ATTRIBUTES), action)
        return _NUMBER.sub(lambda match: str(int(match[0]) + self._rng.choice((-1, 1))), action)


def demonstrations(n: int, share: float, seed: int, kwargs: Mapping[str, Any]) -> list[Episode]:
    """Return episodes of somebody clumsy, in the train split."""
    with closing(make_slots(ENV, min(n, _SLOTS), {**kwargs, "split": "train"})) as slots:
        starts = [Start(seed=_FIRST_SEED * (seed + 1) + number) for number in range(n)]
        return Rollout(Clumsy(share, seed), slots, starts).episodes()


def model(seed: int = 0, **options: Any) -> LanguagePolicy:
    """Return a model from scratch that reads lookups in words."""
    return char_lm(words=Lookup(letters=True).words, context=192, max_tokens=16, batch_size=256, seed=seed, **options)


@cache
def _cloned(hops: int, seed: int) -> LanguagePolicy:
    policy = model(seed)
    clone(policy, demonstrations(2000, SHARE, seed, settings(hops)), steps=100 * hops, lr=2e-3, seed=seed)
    return policy


def near(hops: int = 1, seed: int = 0) -> LanguagePolicy:
    """Return a model that was shown 2,000 episodes of somebody clumsy, in 100 optimizer steps a hop.

    Args:
        hops: How deep the questions are.
        seed: Of all.
    """
    return copy.deepcopy(_cloned(hops, seed))
