"""What is measured: suites of entries, each an environment with its settings, its episodes and its seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tetrathlon.envs.codec import fingerprint
from tetrathlon.envs.registry import domain_of

METRICS = ("success",)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of a suite: what is played, on what, how often."""

    name: str
    """What tables and plots call it; unique within its suite."""
    env: str
    """Environment id."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Constructor arguments, JSON-able; never ``split``."""
    split: str = "test"
    """Which instances are asked."""
    metric: str = "success"
    """What is measured; success rates are the only one so far."""
    episodes: int = 32
    """Instances a seed."""
    samples: int = 1
    """Episodes an instance. With more than one they are sampled and pass@k is told, else a policy does what it takes
    for the best. Of pictures there is one: on it is measured what answers depend on."""
    seeds: tuple[int, ...] = (0,)
    """Added to the run's seed; each is an evaluation of its own, and a stratum of the bootstrap."""

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise ValueError(f"metric of {self.name!r} must be one of {METRICS}, got {self.metric!r}")
        if self.episodes < 1:
            raise ValueError(f"episodes of {self.name!r} must be at least 1, got {self.episodes!r}")
        if self.samples < 1 or (self.samples > 1 and self.domain == "vision"):
            raise ValueError(
                f"samples of {self.name!r} must be at least 1, and 1 in the domain vision, got {self.samples!r}"
            )
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds of {self.name!r} must be different integers, got {self.seeds!r}")
        if "split" in self.kwargs:  # it would win over the split that the report names
            raise ValueError(f"kwargs of {self.name!r} must not hold 'split'; give it as split=")
        object.__setattr__(self, "kwargs", MappingProxyType(dict(self.kwargs)))

    @property
    def domain(self) -> str:
        """The domain of its environment."""
        return domain_of(self.env)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A named list of entries; whoever changes what a number means raises the version."""

    name: str
    """What the command line calls it."""
    version: int
    """Results of different versions are never compared."""
    entries: tuple[Entry, ...]
    """In the order of the report."""
    policies: tuple[str, ...] = ("random", "expert", "smollm2")
    """Who is measured unless others are asked for."""

    def __post_init__(self) -> None:
        if not self.entries:
            raise ValueError(f"suite {self.name!r} must have an entry")
        names = [entry.name for entry in self.entries]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"entries of suite {self.name!r} share the names {twice}")

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains of its entries, in order."""
        return tuple(dict.fromkeys(entry.domain for entry in self.entries))

    @property
    def digest(self) -> str:
        """A hash of its entries: two runs of one digest asked the same."""
        return fingerprint(
            [
                [e.name, e.env, dict(e.kwargs), e.split, e.metric, e.episodes, e.samples, list(e.seeds)]
                for e in self.entries
            ]
        )[:16]

    def of(self, domains: Iterable[str] | None) -> tuple[Entry, ...]:
        """Return the entries of ``domains``; None: all.

        Raises:
            ValueError: The suite has no entry of a domain, or no domain is given.
        """
        if domains is None:
            return self.entries
        chosen = set(domains)
        if not chosen:
            raise ValueError("domains must name at least one domain")
        if unknown := sorted(chosen - set(self.domains)):
            raise ValueError(f"suite {self.name!r} has the domains {list(self.domains)}, not {unknown}")
        return tuple(entry for entry in self.entries if entry.domain in chosen)


_EPISODES = 40
"""Of an entry unless it says otherwise; cost grows with it, and intervals shrink with its root."""
_SHORT: Mapping[str, Any] = {"answer_format": "plain", "max_tokens": 12}
"""A 135M model loses the thread in long replies, and these answers are a word or a number."""


def _text(name: str, env: str, *, episodes: int = _EPISODES, samples: int = 1, **kwargs: Any) -> Entry:
    shape: Mapping[str, Any] = {"episodes": episodes, "samples": samples}
    return Entry(name=name, env=f"tetrathlon/{env}", kwargs={**_SHORT, **kwargs}, **shape)


def _long(name: str, env: str, episodes: int, **kwargs: Any) -> Entry:
    """Return an entry whose replies are long, so that there are fewer of them."""
    return Entry(name=name, env=f"tetrathlon/{env}", kwargs=kwargs, episodes=episodes)


def _tool(name: str, env: str, episodes: int, **kwargs: Any) -> Entry:
    """Return an entry of several turns, few enough for what a small model makes of them."""
    return _long(name, env, episodes, max_turns=5, **kwargs)


def _gym(name: str, task: str, **kwargs: Any) -> Entry:
    return _text(name, "ReasoningGym-v0", task=task, shots=4, **kwargs)


def _vision(name: str, env: str, **kwargs: Any) -> Entry:
    return _long(name, env, _EPISODES, answer_format="plain", **kwargs)


def _robot(name: str, env: str, **kwargs: Any) -> Entry:
    return Entry(name=name, env=f"tetrathlon/{env}", kwargs=kwargs, episodes=_EPISODES)


QUICK = Suite(
    name="quick",
    version=6,
    # Shots where they help SmolLM2-135M-Instruct to answer at all; in sums it copies the answers shown.
    entries=(
        _text("1-digit sums", "Arithmetic-v0", digits=1),
        _text("1-digit + and -", "Arithmetic-v0", episodes=16, samples=4, digits=1, operators="+-"),
        _text("2-digit sums", "Arithmetic-v0", digits=2, shots=4),
        _text("copy", "Symbolic-v0", operations=["copy"], shots=4, max_tokens=16),
        _text("reverse", "Symbolic-v0", operations=["reverse"], length=3, shots=4, max_tokens=12),
        _text("larger number", "Symbolic-v0", operations=["larger"], shots=4),
        _text("sort", "Symbolic-v0", operations=["sort"], size=3, largest=99, shots=4, max_tokens=16),
        _text("letter count", "LetterCount-v0", shots=4),
        _text("countdown", "Countdown-v0", shots=4, max_tokens=24),
        _gym("chain sum", "chain_sum", config={"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}),
        _gym("greatest divisor", "gcd"),
        _gym("letters in a text", "letter_counting"),
        _gym("leg counting", "leg_counting"),
        _gym("spell backward", "spell_backward", max_tokens=16),
        _text("word problem", "Math-v0", shots=4, max_tokens=24),
        _long("instruction", "Format-v0", 24, count=1, max_tokens=96),
        _long("function", "Code-v0", 16, max_tokens=128),
        _tool("facts", "Lookup-v0", 24, least_hops=1, most_hops=2, letters=True, brief=True, shots=2, max_tokens=48),
        _tool("database", "SQL-v0", 12, level=1, shots=1, max_tokens=64),
        _tool("computing", "Python-v0", 12, most_level=1, shots=1, max_tokens=96),
        _tool("files", "Files-v0", 12, level=1, shots=1, max_tokens=64),
        _vision("point at a cell", "Point-v0", coordinates="cell", cells=3, others=1, colors=2, shapes=2, size=32),
        _vision("count", "Count-v0", most=3, clutter=1, colors=2, shapes=2, diameter=14, size=32),
        _vision("read", "OCR-v0", length=1, lines=1, size=32),
        _robot("push", "PushToZone-v0", observation="state"),
        _robot("push by eye", "PushToZone-v0"),
        _robot("reach", "Reach-v0", observation="state"),
        _robot("pick and lift", "PickAndLift-v0", observation="state"),
        _robot("place in a bin", "PlaceIn-v0", observation="state"),
    ),
    policies=("random", "expert", "smollm2", "blind", "ocr", "bc:100"),
)
"""Runs in minutes on two CPU cores, a 135M language model and the cloning of experts included. Each policy plays what
it can: a language model has no business with a robot, nor what is cloned on the spot with sums in words."""


def _standard(name: str, env: str, episodes: int = 200, *, samples: int = 1, **kwargs: Any) -> Entry:
    shape: Mapping[str, Any] = {"episodes": episodes, "samples": samples, "seeds": (0, 1, 2)}
    return Entry(name=name, env=f"tetrathlon/{env}", kwargs=kwargs, **shape)


STANDARD = Suite(
    name="standard",
    version=2,
    entries=(
        _standard("arithmetic", "Arithmetic-v0"),
        _standard("symbols", "Symbolic-v0"),
        _standard("letters", "LetterCount-v0"),
        _standard("countdown", "Countdown-v0", 100, samples=8),
        _standard("word problems", "Math-v0", 100, samples=8),
        _standard("functions", "Code-v0", 100, samples=8),
        _standard("instructions", "Format-v0", count=3),
        *(
            _standard(task.replace("_", " "), "ReasoningGym-v0", task=task)
            for task in ("complex_arithmetic", "maze", "number_sorting", "propositional_logic", "word_ladder")
        ),
        _standard("lookups", "Lookup-v0"),
        _standard("databases", "SQL-v0"),
        _standard("interpreter", "Python-v0"),
        _standard("files", "Files-v0"),
        _standard("service desk", "ServiceDesk-v0", 100),
        _standard("repositories", "RepoRepair-v0", 100),
        _standard("counting", "Count-v0"),
        _standard("pointing", "Point-v0"),
        _standard("boxes", "Box-v0"),
        _standard("reading", "OCR-v0"),
        _standard("charts", "Chart-v0"),
        _standard("zooming", "Zoom-v0"),
        _standard("reach", "Reach-v0"),
        _standard("push", "PushToZone-v0"),
        _standard("push with an arm", "PushToZone-v0", robot="arm"),
        _standard("push past a vase", "PushFragile-v0"),
        _standard("pick and lift", "PickAndLift-v0"),
        _standard("place on a plate", "PlaceOn-v0"),
        _standard("place in a bin", "PlaceIn-v0"),
    ),
    policies=(
        *("random", "expert", "blind", "ocr", "bc:1000"),
        *("hf:Qwen/Qwen3-4B-Instruct-2507", "hf:Qwen/Qwen2.5-VL-7B-Instruct"),
    ),
)
"""Every task at its own settings, three seeds, models that need a GPU (24 GB) and hours of it."""

SUITES: dict[str, Suite] = {suite.name: suite for suite in (QUICK, STANDARD)}


def find(name: str) -> Suite:
    """Return the suite of that name.

    Raises:
        ValueError: There is none.
    """
    if name not in SUITES:
        raise ValueError(f"suite must be one of {sorted(SUITES)} or matrix, got {name!r}")
    return SUITES[name]
