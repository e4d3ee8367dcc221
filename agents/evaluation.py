"""How well a policy does in an environment: played, saved as it goes, and counted."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tetrathlon.agents.journal import Journal, by_start
from tetrathlon.agents.naming import make_policy, policy_name
from tetrathlon.agents.policy import Policy
from tetrathlon.agents.result import MOST_MESSAGES, Result, counts
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.envs.codec import encode
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.pool import make_slots
from tetrathlon.envs.registry import domain_of, known_id, make, split_argument

_MOST_SLOTS = 16


def evaluate(
    policy: str | Policy | Callable[..., Any],
    env_id: str,
    *,
    kwargs: dict[str, Any] | None = None,
    episodes: int = 100,
    split: str = "test",
    samples: int = 1,
    seed: int = 0,
    greedy: bool | None = None,
    temperature: float = 1.0,
    slots: int | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    on_episode: Callable[[Episode], None] | None = None,
    label: str | None = None,
) -> Result:
    """Play a policy and count.

    Every policy meets the same instances: their seeds depend on ``seed`` alone, and those of a shorter
    evaluation are the first of a longer one.

    With ``out``, whatever ends the run, no finished episode is lost. A run that is resumed plays the starts that are
    missing, also those whose environment crashed, and its result is that of one run, apart from the seconds. A policy
    that is given by name then draws from another seed, for the same one would give samples that are there already.

    Args:
        policy: A policy, or what :func:`~tetrathlon.agents.naming.make_policy` takes.
        env_id: Id of the environment.
        kwargs: Its constructor arguments; a ``split`` among them wins over ``split``.
        episodes: How many instances.
        split: Passed to environments that take it.
        samples: Episodes an instance, each from the same start.
        seed: Seed of the instances, and of a policy that is given by name.
        greedy: Ask for the most likely actions. None: yes with one sample, no with more.
        temperature: Sampling temperature of a language model that is given by name.
        slots: How many episodes are under way at once; None: up to 16. A policy that samples may answer
            differently with another number.
        out: Folder for the episodes, saved as they finish, and the result.
        resume: Go on with the evaluation in ``out``, if there is one; it may have had fewer episodes.
        on_episode: Called with each finished episode, those of an earlier run first.
        label: What the result calls the policy; None: its own name.

    Raises:
        ValueError: A number is below 1, ``greedy`` is asked of more than one sample, or ``resume`` has no ``out``.
        tetrathlon.agents.journal.JournalError: ``out`` holds an evaluation that is not to be resumed, or another one.
        gymnasium.error.UnregisteredEnv: There is no such environment.
        tetrathlon.agents.naming.PolicyError: There is no such policy.
    """
    for name, value in (("episodes", episodes), ("samples", samples), ("slots", slots)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value!r}")
    if greedy and samples > 1:
        raise ValueError(f"greedy asks for the one most likely answer; samples must be 1, got {samples}")
    if resume and out is None:
        raise ValueError("resume goes on with the evaluation in a folder; out must name it, got None")
    greedy = samples == 1 if greedy is None else greedy
    env_id = known_id(env_id)
    kwargs = {**split_argument(env_id, split), **(kwargs or {})}
    wall, cpu = time.perf_counter(), time.process_time()
    seeds = instance_seeds(seed, episodes)
    crashes: list[str] = []
    with contextlib.ExitStack() as closing:
        journal: Journal | None = None
        if out is not None:
            config = {
                "env": env_id,
                "kwargs": encode(kwargs),
                "policy": label or policy_name(policy),
                "temperature": temperature if isinstance(policy, str) else _temperature_of(policy),
                "seed": seed,
                "greedy": greedy,
                "samples": samples,
                "episodes": episodes,
            }
            journal = closing.enter_context(contextlib.closing(Journal(out, config, resume)))
        done = by_start(journal.finished() if journal is not None else [], seeds, samples)
        starts = [
            Start(seed=instance, group=group)
            for group, instance in enumerate(seeds)
            for number in range(group * samples, (group + 1) * samples)
            if number not in done
        ]

        def keep(episode: Episode) -> None:
            if journal is not None:
                journal.keep(episode)
            if on_episode is not None:
                on_episode(episode)

        if on_episode is not None:
            for episode in done.values():
                on_episode(episode)
        probe = closing.enter_context(contextlib.closing(make(env_id, **kwargs)))
        actor = make_policy(policy, probe, seed=_part_seed(seed, len(done)), temperature=temperature)
        answer_in = getattr(probe.unwrapped, "answer_in", None)
        if starts:
            pool = make_slots(env_id, min(slots or _MOST_SLOTS, len(starts)), kwargs)
            with contextlib.closing(pool):
                rollout = Rollout(actor, pool, starts, greedy=greedy, env=env_id, kwargs=kwargs, on_episode=keep)
                done = by_start([*done.values(), *rollout.episodes()], seeds, samples)
                crashes = rollout.crashes
        played = [done[number] for number in sorted(done)]
        result = Result(
            env=env_id,
            kwargs={name: value for name, value in kwargs.items() if name != "split"},
            domain=domain_of(env_id),
            split=kwargs.get("split"),
            policy=label or policy_name(policy),
            seed=seed,
            greedy=greedy,
            episodes=episodes,
            samples=samples,
            crashes={"count": len(crashes), "messages": crashes[:MOST_MESSAGES]},
            episodes_played=tuple(played),
            **counts(played, samples, answer_in if callable(answer_in) else None),
            seconds=time.perf_counter() - wall,
            cpu_seconds=time.process_time() - cpu,
        )
        if journal is not None:
            journal.finish(played, result.to_json())
    return result


def instance_seeds(seed: int, n: int) -> list[int]:
    """Return ``n`` different seeds of 32 bits that depend on ``seed`` alone; fewer are the first of more."""
    drawn = np.random.SeedSequence(seed).generate_state(n + 64, np.uint32).tolist()
    while len(found := list(dict.fromkeys(drawn))) < n:  # 32 bits repeat now and then
        drawn = np.random.SeedSequence(seed).generate_state(2 * len(drawn), np.uint32).tolist()
    return found[:n]


def _part_seed(seed: int, done: int) -> int:
    """Return the seed of a policy that begins after ``done`` episodes."""
    return seed if done == 0 else int(np.random.SeedSequence((seed, done)).generate_state(1)[0])


def _temperature_of(policy: Any) -> float | None:
    """Return what a policy says that it samples at, so that no folder holds episodes of two temperatures."""
    told = getattr(policy, "temperature", None)
    return float(told) if isinstance(told, int | float) and math.isfinite(told) else None
