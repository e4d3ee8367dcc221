"""``tetrathlon/Math-v0`` on a file of rows, answered with what is written beside each."""

import functools
import gc
import json
from pathlib import Path

import gymnasium as gym

import tetrathlon  # noqa: F401  # registers the ids
from tetrathlon.envs.language.task import Task


def episodes_of(rows, seeded, **options):
    """Return ``episodes`` over ``rows`` of (question, gold answer, completion).

    Args:
        rows: What is asked.
        seeded: Whether each reset has a seed.
        **options: Of the environment.
    """
    path = Path("rows.jsonl").absolute()
    path.write_text("".join(json.dumps({"question": row[0], "answer": row[1]}) + "\n" for row in rows), "utf-8")
    completions = {Task(question, gold).id: completion for question, gold, completion in rows}
    env = gym.make("tetrathlon/Math-v0", data=str(path), **options)
    caches = [found for found in gc.get_objects() if _is_cache_of_ours(found)]
    played = 0

    def episodes(n):
        nonlocal played
        for cache in caches:  # a row that comes again in another turn is worked out again
            cache.cache_clear()
        rewards = []
        for seed in range(played, played + n):
            _, info = env.reset(seed=seed) if seeded else env.reset()
            rewards.append(env.step(completions[info["task_id"]])[1])
        played += n
        return rewards

    return episodes


def _is_cache_of_ours(found):
    return isinstance(found, functools._lru_cache_wrapper) and found.__module__.startswith("tetrathlon.")
