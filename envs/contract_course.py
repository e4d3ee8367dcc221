"""The part of the contract that is about the course of an episode: where it ends, and where it may be played."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium as gym

from tetrathlon.envs.spaces import null_sample
from tetrathlon.envs.subject import LONGEST_EPISODE, MOST_STEPS, ContractError, Moment, Subject, marks, play

_SKIP = "(an environment of another contract: skip='reset_needed')"


def check_reset_needed(subject: Subject) -> None:
    """A step after an end, of whatever kind, raises ``gymnasium.error.ResetNeeded``, without a wrapper too."""
    env = subject.make()
    *_, last = play(env, [{"seed": 1}], how="expert", most=LONGEST_EPISODE)
    if not last.ended:
        limit = getattr(gym.registry.get(subject.label), "max_episode_steps", None)  # a bare copy's spec forgets it
        why = (
            f"; its spec's max_episode_steps={limit} is kept by the wrapper TimeLimit, which the bare environment has "
            "not: let the environment itself end the episode"
            if limit is not None
            else ""
        )
        raise ContractError("reset_needed", f"no episode ended within {LONGEST_EPISODE} steps{why} {_SKIP}")
    _refuse_more(env, last, "the expert's")
    for moment in _other_ends(env):
        _refuse_more(env, moment, "a random player's")


def _other_ends(env: Any) -> Iterator[Moment]:
    """Yield ends of episodes that no expert plays: other code leads to a failure, and to the end of the time."""
    for seed in range(4):
        *_, last = play(env, [{"seed": seed}], how="random", seed=seed)
        if last.ended:
            yield last
    env.reset(seed=1)
    still = null_sample(env.action_space)
    for _ in range(MOST_STEPS):
        last = Moment(still, *env.step(still))
        if last.ended:
            yield last
            return


def _refuse_more(env: Any, last: Moment, whose: str) -> None:
    kind = "truncated" if last.truncated else "terminated"
    try:
        env.step(last.action)
    except gym.error.ResetNeeded:
        return
    except Exception as error:  # whatever else it raised is what was seen
        seen = f"raised {type(error).__name__}: {error}"
    else:
        seen = "was taken"
    raise ContractError(
        "reset_needed",
        f"a step after the end {seen} ({whose} episode, {kind}); raise gymnasium.error.ResetNeeded {_SKIP}",
    )


def check_threads(subject: Subject) -> None:
    """An episode that is played in a worker thread, as ``Slots(threads=...)`` does, is the same as in the main one."""
    resets: list[dict[str, Any]] = [{"seed": 0}, {"seed": 1}]
    here = marks(play(subject.make(), resets, how="expert"))
    other = subject.make()
    with ThreadPoolExecutor(1) as pool:
        there = pool.submit(lambda: marks(play(other, resets, how="expert"))).result()
    if here != there:
        raise ContractError(
            "threads",
            "the same actions led elsewhere in a worker thread: let nothing need the main thread (signals do, so "
            "graders with signal.alarm fail there)",
        )
