"""Vision tasks for a small model that sees: starts that are near, for tests and experiments."""

from __future__ import annotations

import copy
import hashlib
import io
import random
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from tetrathlon.agents.evaluation import evaluate
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.tiny_vlm import tiny_vlm
from tetrathlon.algos.imitation import clone
from tetrathlon.envs.episode import Episode, Step, write_aside
from tetrathlon.envs.registry import make

_FIRST_SEED = 50_000_000
_LOOK, _LOOK_EVERY = 200, 25


@dataclass(frozen=True, kw_only=True)
class Sight:
    """A task, and how a model from scratch is brought near it."""

    env: str
    """Id of the task."""
    kwargs: Mapping[str, Any]
    """Its constructor arguments."""
    model: Mapping[str, Any] = field(default_factory=lambda: {"stride": 16, "channels": 8, "size": 64, "layers": 2})
    """Arguments of :func:`~tetrathlon.agents.tiny_vlm.tiny_vlm`."""
    easier: Mapping[str, Any] = field(default_factory=dict)
    """Constructor arguments that are others at first, and of half of what is shown later."""
    easier_enough: float = 0.85
    """How often it is right there, as sampled, when it has seen enough of that."""
    enough: float
    """How often it is right, as sampled, when it has seen enough of what the expert does."""
    steps: int
    """Most optimizer steps on that, in each task; models begin to look all at once, some sooner and some later."""
    clumsy_steps: int = 0
    """Optimizer steps after these, on what somebody does who is near it."""
    clumsy_lr: float = 1e-3
    """Learning rate of these; with a larger one much is forgotten."""
    share: float = 0.0
    """How often that one is wrong."""
    signs: str = ""
    """Signs of answers in a ring: what is wrong has one exchanged for the one beside it."""
    shown: int = 6000
    """Demonstrations of each kind."""
    lr: float = 4e-3
    """Learning rate of what the expert shows."""


_CELL = {
    "coordinates": "cell",
    "cells": 2,
    "others": 1,
    "size": 32,
    "shapes": 2,
    "diameter": 0.95,
    "answer_format": "plain",
    "max_tokens": 4,
}
SIGHTS: Mapping[str, Sight] = {
    "corner": Sight(
        env="tetrathlon/Point-v0",
        kwargs={**_CELL, "colors": 2},
        enough=0.75,
        steps=400,
        clumsy_steps=30,
        share=0.4,
        signs="AB",
        shown=2000,
    ),
    "point": Sight(
        env="tetrathlon/Point-v0",
        kwargs={**_CELL, "colors": 3, "cells": 4, "size": 64},
        easier={"cells": 2, "size": 32},
        enough=0.62,
        steps=1500,
        lr=3e-3,
    ),
    "count": Sight(
        env="tetrathlon/Count-v0",
        kwargs={
            "most": 3,
            "clutter": 1,
            "colors": 2,
            "shapes": 2,
            "diameter": 14,
            "answer_format": "plain",
            "max_tokens": 4,
        },
        enough=0.55,
        steps=1000,
    ),
    "ocr": Sight(
        env="tetrathlon/OCR-v0",
        kwargs={"lines": 1, "length": 1, "font": 24, "answer_format": "plain", "max_tokens": 4},
        enough=0.55,
        steps=1000,
    ),
}
"""By name: ``corner`` for tests, the others of 64 pixels for experiments."""


def near_miss(answer: str, signs: str, rng: random.Random) -> str:
    """Return an answer with one sign exchanged for the one before or after it.

    Args:
        answer: What is right.
        signs: Those that are exchanged, in a ring; ``answer`` has one at least.
        rng: Where it comes from.
    """
    place = rng.choice([place for place, sign in enumerate(answer) if sign in signs])
    beside = signs[(signs.index(answer[place]) + rng.choice((-1, 1))) % len(signs)]
    return answer[:place] + beside + answer[place + 1 :]


def demonstrations(sight: Sight, seed: int = 0, share: float = 0.0, *, easier: bool = False) -> list[Episode]:
    """Return what somebody answered in the train split.

    Args:
        sight: Where.
        seed: Of the instances, and of the errors.
        share: How often there is one.
        easier: Whether the task is the easier one.
    """
    rng = random.Random(seed)
    episodes = []
    with closing(make(sight.env, **_kwargs(sight, easier), split="train")) as env:
        for number in range(sight.shown):
            observation, info = env.reset(seed=_FIRST_SEED * (seed + 1) + number)
            said = env.unwrapped.expert_action()  # type: ignore[attr-defined]
            if rng.random() < share:
                said = near_miss(said, sight.signs, rng)
            episodes.append(Episode(steps=[Step(observation, said, 0.0, terminated=True)], info=info))
    return episodes


def model(sight: Sight, seed: int = 0) -> LanguagePolicy:
    """Return a model from scratch that reads the questions of a task in words."""
    words: dict[str, None] = {}
    for easier in (False, True):
        with closing(make(sight.env, **_kwargs(sight, easier))) as env:
            words |= dict.fromkeys(env.unwrapped.words)  # type: ignore[attr-defined]
    return tiny_vlm(words=tuple(words), context=128, max_tokens=4, batch_size=256, seed=seed, **sight.model)


@cache
def _cloned(name: str, seed: int) -> LanguagePolicy:
    sight = SIGHTS[name]
    policy = model(sight, seed)
    if sight.easier:
        _shown(policy, sight, seed, easier=True)
    _shown(policy, sight, seed)
    if sight.clumsy_steps:
        clone(policy, demonstrations(sight, seed, sight.share), steps=sight.clumsy_steps, lr=sight.clumsy_lr, seed=seed)
    return policy


def _shown(policy: LanguagePolicy, sight: Sight, seed: int, *, easier: bool = False) -> None:
    """Show what the expert does, until that is enough."""
    kwargs = _kwargs(sight, easier)
    enough = sight.easier_enough if easier else sight.enough

    def is_enough(step: int, loss: float) -> bool:
        if (step + 1) % _LOOK_EVERY:
            return False
        found = evaluate(
            policy, sight.env, kwargs=kwargs, episodes=_LOOK, slots=_LOOK, split="train", seed=seed, greedy=False
        )
        return found.success["mean"] >= enough

    shown = demonstrations(sight, seed, easier=easier)
    if sight.easier and not easier:
        shown += demonstrations(sight, seed, easier=True)  # what was learnt there is lost without
    clone(policy, shown, steps=sight.steps, lr=sight.lr, seed=seed, after=is_enough)


def _kwargs(sight: Sight, easier: bool) -> dict[str, Any]:
    return {**sight.kwargs, **(sight.easier if easier else {})}


def near(name: str, seed: int = 0, folder: str | None = None) -> LanguagePolicy:
    """Return a model that learnt from an expert, and at the end from somebody clumsy where there is one.

    So it looks at pictures, and both its samples and its likeliest answers are middling.

    Args:
        name: Of one of ``SIGHTS``.
        seed: Of all.
        folder: Where its weights are kept; None: nowhere.
    """
    sight = SIGHTS[name]
    recipe = hashlib.sha256(repr(sight).encode()).hexdigest()[:8]
    kept = None if folder is None else Path(folder) / f"{name}-{seed}-{recipe}.pt"
    if kept is not None and kept.exists():
        policy = model(sight, seed)
        policy.load_state_dict(torch.load(kept, weights_only=True))
        return policy
    policy = copy.deepcopy(_cloned(name, seed))
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        data = io.BytesIO()
        torch.save(policy.state_dict(), data)
        write_aside(kept, data.getvalue())
    return policy
