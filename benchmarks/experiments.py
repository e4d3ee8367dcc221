"""What is trained to see whether it learns, and what the options of an algorithm do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One way of training, the same for each seed."""

    name: str
    """Its name in files."""
    what: str
    """What it shows, in a sentence."""
    algorithm: str
    """Name of the algorithm, as on the command line."""
    env: str
    """Where."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Constructor arguments of the environment."""
    policy: str
    """Name of the start."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the algorithm."""
    updates: int
    """How many."""
    test_every: int = 20
    """Updates from one look at the test split to the next."""
    test_episodes: int = 200
    """Instances of a look, sampled at temperature 1; always the same."""
    aim: float | None = None
    """Success on the test split that was set as the aim before."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self)


_SMALL = {"groups": 8, "group_size": 8, "lr": 1e-5, "max_cost": 4096.0}
_ADDITION = {"digits": 1, "operators": "+", "answer_format": "plain", "max_tokens": 8}
_COUNTING = {"shots": 4, "answer_format": "plain", "max_tokens": 8}

EXPERIMENTS: tuple[Experiment, ...] = (
    *(
        Experiment(
            name=f"addition-{algorithm}",
            what="SmolLM2-135M-Instruct learns one-digit addition from right and wrong alone",
            algorithm=algorithm,
            env="tetrathlon/Arithmetic-v0",
            kwargs=_ADDITION,
            policy="smollm2",
            options=_SMALL,
            updates=60,
            aim=0.85,
        )
        for algorithm in ("grpo", "rloo")
    ),
    Experiment(
        name="letters-grpo",
        what="SmolLM2-135M-Instruct learns to count letters, with four examples in the prompt",
        algorithm="grpo",
        env="tetrathlon/LetterCount-v0",
        kwargs=_COUNTING,
        policy="smollm2",
        options=_SMALL,
        updates=60,
        aim=0.5,
    ),
)
