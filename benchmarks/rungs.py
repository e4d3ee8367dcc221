"""The rungs of the ladder: ways of training one robot task, beside each what it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tetrathlon.agents.chunks import Head
from tetrathlon.envs.robots.senses import Observation

BC_UPDATES = 20
"""Of cloning: the learning rate falls from one to the next."""


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One way of training."""

    name: str
    """Its name."""
    what: str
    """What it learns from, in a few words."""
    learner: Literal["bc", "dagger", "ppo", "grpo"] = "bc"
    """How it learns."""
    head: Head = "l1"
    """How the policy decides."""
    observation: Observation = "pixels"
    """What it sees."""
    start: str | None = None
    """Whose weights it begins with; None: it begins from nothing."""
    narrow: int = 0
    """Demonstrations in which the hand begins behind the object."""
    wide: int = 0
    """Demonstrations from all starts."""
    updates: int = BC_UPDATES
    """How many."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the algorithm."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Of the environment that is learnt in."""
    deviation: float | None = None
    """Standard deviation of the actions with which play begins; None: as it was learnt."""
    critic_updates: int = 0
    """Updates before the others in which the critic alone learns."""
    frozen: bool = False
    """Whether what sees and reads stays as it is, and the critic sees by it."""


_BC = {"lr": 2e-3, "decay": "cosine"}
_NUMBERS_BC = {"lr": 1e-3, "decay": "cosine"}
_PPO = {"horizon": 32, "piece": 1, "minibatches": 16, "lr": 3e-4, "gamma": 0.99, "lam": 0.95}
_DAGGER = {"beta": 0.5, "beta_decay": 0.8, "lr": 1e-3}
_DENSE = {"reward": "dense"}

RUNGS: tuple[Rung, ...] = (
    Rung(name="start", what="500 demonstrations", wide=500, options={**_BC, "steps": 50}),
    Rung(
        name="dagger",
        what="start, then 10 times 30 labelled episodes that it shares with the expert",
        learner="dagger",
        start="start",
        wide=500,
        updates=10,
        options={**_DAGGER, "episodes": 30, "slots": 30, "steps": 150},
        kwargs={"max_steps": 60},
    ),
    Rung(name="start-more", what="800 demonstrations", wide=800, options={**_BC, "steps": 125}),
    Rung(name="more", what="1,000 demonstrations", wide=1_000, options={**_BC, "steps": 200}),
    Rung(
        name="ppo",
        what="start, then its own play for progress, with frozen eyes",
        learner="ppo",
        head="gaussian",
        start="start",
        updates=80,
        options={**_PPO, "groups": 64, "epochs": 4},
        kwargs=_DENSE,
        deviation=0.37,
        critic_updates=10,
        frozen=True,
    ),
    Rung(
        name="numbers-narrow",
        what="150 narrow demonstrations",
        observation="state",
        narrow=150,
        options={**_NUMBERS_BC, "steps": 100},
    ),
    Rung(
        name="numbers-dagger",
        what="numbers-narrow, then 10 times 15 labelled episodes from all starts that it shares with the expert",
        observation="state",
        learner="dagger",
        start="numbers-narrow",
        narrow=150,
        updates=10,
        options={**_DAGGER, "episodes": 15, "slots": 15, "steps": 200},
        kwargs={"max_steps": 60},
    ),
    Rung(
        name="numbers-narrow-more",
        what="300 narrow demonstrations",
        observation="state",
        narrow=300,
        options={**_NUMBERS_BC, "steps": 200},
    ),
    Rung(
        name="numbers-narrow-and-wide",
        what="150 narrow demonstrations, 150 from all starts",
        observation="state",
        narrow=150,
        wide=150,
        options={**_NUMBERS_BC, "steps": 200},
    ),
    Rung(
        name="numbers-start",
        what="120 demonstrations",
        observation="state",
        head="gaussian",
        wide=120,
        options={**_NUMBERS_BC, "steps": 100},
    ),
    Rung(
        name="numbers-ppo",
        what="numbers-start, then its own play for progress",
        observation="state",
        learner="ppo",
        head="gaussian",
        start="numbers-start",
        updates=100,
        options={**_PPO, "groups": 128, "epochs": 6},
        kwargs=_DENSE,
        deviation=0.37,
        critic_updates=10,
    ),
    Rung(
        name="numbers-grpo",
        what="numbers-start, then its own play for progress in groups",
        observation="state",
        learner="grpo",
        head="gaussian",
        start="numbers-start",
        updates=100,
        options={"groups": 32, "lr": 2e-4, "epochs": 2, "minibatches": 4, "reduction": "decision_mean"},
        kwargs=_DENSE,
        deviation=0.37,
    ),
    Rung(
        name="numbers-longer",
        what="numbers-start, then as many steps of PPO's on the same demonstrations",
        observation="state",
        head="gaussian",
        start="numbers-start",
        wide=120,
        options={**_NUMBERS_BC, "steps": 480},
    ),
    Rung(
        name="numbers-more",
        what="1,000 demonstrations",
        observation="state",
        head="gaussian",
        wide=1_000,
        options={**_NUMBERS_BC, "steps": 480},
    ),
)
"""Written down before they were run on the seeds of the result; tried out on seed 10. A minibatch of a PPO step is 128
decisions (256 from numbers), of cloning 64."""
