"""What is trained to see whether it learns, and what the options of an algorithm do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tetrathlon.benchmarks.lookups import ENV as LOOKUP
from tetrathlon.benchmarks.lookups import settings as lookup_settings
from tetrathlon.benchmarks.sights import SIGHTS
from tetrathlon.benchmarks.sums import MOST_DOTS


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
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """With which it is made."""
    own_start: bool = False
    """Whether each seed has a start of its own, made with the argument ``seed``."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the algorithm."""
    updates: int
    """How many."""
    test_every: int = 20
    """Updates from one look at the test split to the next."""
    test_episodes: int = 200
    """Instances of a look, always the same."""
    greedy: bool = False
    """Whether a look takes the likeliest actions; else they are sampled at temperature 1."""
    aim: float | None = None
    """Success on the test split that was set as the aim before."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self)


_SMALL = {"groups": 8, "group_size": 8, "lr": 1e-5, "max_cost": 4096.0}
_ADDITION = {"digits": 1, "operators": "+", "answer_format": "plain", "max_tokens": 8}
_COUNTING = {"shots": 4, "answer_format": "plain", "max_tokens": 8}


def _study(name: str, what: str, *, dots: bool = False, updates: int = 25, **options: Any) -> Iterator[Experiment]:
    """Give GRPO on sums of small digits with one option changed."""
    settings = {"groups": 32, "group_size": 8, "lr": 1e-3, "epochs": 4, **options}
    yield Experiment(
        name=name,
        what=what,
        algorithm="grpo",
        env="Sums-v0",
        kwargs={"dots": MOST_DOTS} if dots else {},
        policy=f"tetrathlon.benchmarks.sums:{'near_with_dots' if dots else 'near'}",
        options=settings,
        updates=updates,
        test_every=5,
        test_episodes=400,
    )


_SEEN = {"point": "to name the cell of a thing", "count": "to count things of a kind", "ocr": "to read a digit"}


def _seen(name: str, what: str, *, pair: bool) -> Experiment:
    """Return GRPO on pictures and their twins, paid for each or for both."""
    paid = "paid for a picture and its twin together" if pair else "paid for each picture"
    return Experiment(
        name=f"{name}-grpo{'-pair' * pair}",
        what=f"a small model that sees learns {what}, {paid}",
        algorithm="grpo",
        env=SIGHTS[name].env,
        kwargs=SIGHTS[name].kwargs,
        policy="tetrathlon.benchmarks.sights:near",
        arguments={"name": name, "folder": "runs/sights"},
        own_start=True,
        options={
            "groups": 32,
            "group_size": 8,
            "variants": ("full", "twin"),
            "pair_reward": pair,
            "lr": 1e-3,
            "decay": "linear",
            "entropy_coef": 0.01,
            "epochs": 4,
            "minibatches": 1,
        },
        updates=150,
        test_every=25,
        test_episodes=400,
    )


_ASKED_HOPS, _ASKED_UPDATES = 3, 8


def _asked(algorithm: str, labels: int) -> Experiment:
    """Return imitation of so many turns of an expert, out of its own episodes (BC) or of the learner's (DAgger)."""
    turns = _ASKED_HOPS + 1
    of_learner = {"episodes": labels // (turns * _ASKED_UPDATES), "queries": labels}
    of_expert = {"episodes": labels // turns}
    return Experiment(
        name=f"lookup-{_ASKED_HOPS}-{algorithm}-{labels}",
        what=f"a model of characters is told {labels} turns of lookups of {_ASKED_HOPS} hops, with turns to spare",
        algorithm=algorithm,
        env=LOOKUP,
        kwargs=lookup_settings(_ASKED_HOPS, spare=3),
        policy="tetrathlon.benchmarks.lookups:near",
        arguments={"hops": _ASKED_HOPS},
        own_start=True,
        options={"steps": 25, "lr": 1e-3, **(of_learner if algorithm == "dagger" else of_expert)},
        updates=_ASKED_UPDATES,
        test_every=4,
        test_episodes=400,
    )


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
    Experiment(
        name="push-ppo",
        what="a pusher learns PushToZone from numbers, from scratch, paid for progress",
        algorithm="ppo",
        env="tetrathlon/PushToZone-v0",
        kwargs={"observation": "state", "reward": "dense", "chunk": 2},
        policy="vla",
        arguments={"log_std": -0.5},
        options={
            "groups": 128,
            "horizon": 32,
            "piece": 1,
            "minibatches": 16,
            "epochs": 8,
            "lr": 3e-4,
            "gamma": 0.99,
        },
        updates=120,
    ),
    *(
        Experiment(
            name=f"lookup-{hops}-{credit}",
            what=f"a model of characters learns lookups of {hops} hop{'s' * (hops > 1)}, with credit by {credit}",
            algorithm="ppo",
            env=LOOKUP,
            kwargs={**lookup_settings(hops), "progress_weight": 0.5},
            policy="tetrathlon.benchmarks.lookups:near",
            arguments={"hops": hops},
            options={
                "groups": 32,
                "group_size": 8,
                "lr": 1e-3,
                "entropy_coef": 0.01,
                "epochs": 4,
                "minibatches": 1,
                "credit": credit,
            },
            updates=16,
            test_every=4,
            test_episodes=400,
        )
        for hops in (1, 2, 3, 4)
        for credit in ("turn", "episode")
    ),
    *(_asked(algorithm, labels) for labels in (128, 512) for algorithm in ("bc", "dagger")),
    *(_seen(name, what, pair=pair) for name, what in _SEEN.items() for pair in (False, True)),
    *_study("clip-symmetric", "the ratio may rise as far as it may fall", epochs=8, clip_high=0.2),
    *_study("clip-higher", "the ratio may rise further than it may fall", epochs=8, clip_high=0.28),
    *_study("episode-mean", "a mean over each answer, then over answers", dots=True, reduction="episode_mean"),
    *_study("token-mean", "a mean over all tokens", dots=True, reduction="decision_mean"),
    *_study("with-std", "advantages divided by the deviation of the group", scale="std"),
    *_study("without-std", "advantages centred alone", scale="none"),
    *_study("sampling-plain", "every group is learnt from", groups=16, updates=40),
    *_study("sampling-dynamic", "groups without a signal are replaced", groups=16, resample=3, updates=40),
)
