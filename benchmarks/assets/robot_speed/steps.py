"""Environment steps of a robot task with random actions: in our batch, or in Gymnasium's vectors of single ones."""

import itertools

import gymnasium as gym
import numpy as np

import tetrathlon  # noqa: F401  (registers the ids)

PACKAGES = ("tetrathlon", "gymnasium", "mujoco", "numpy")
_ROUNDS = 256  # actions are drawn beforehand, and used again after so many steps


def start(kind, env_id, n, kwargs, threads=1):
    """Return ``episodes``: one is N environment steps here, which pay 1 for having been made.

    Args:
        kind: ``batch``, ``sync``, ``async``, or ``single``: one environment in a loop.
        env_id: The task.
        n: N; the autoreset mode is NEXT_STEP.
        kwargs: Arguments of the environment.
        threads: Of ``batch``.
    """
    if kind == "single":
        env = gym.make(env_id, **kwargs)
        shape, step = env.action_space.shape, _step_of(env)
    else:
        how = {"vectorization_mode": kind}
        if kind == "batch":
            how = {"vectorization_mode": "vector_entry_point", "threads": threads}
        env = gym.make_vec(env_id, n, **how, **kwargs)
        assert env.metadata["autoreset_mode"] is gym.vector.AutoresetMode.NEXT_STEP
        shape, step = env.single_action_space.shape, env.step
    env.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1, 1, (_ROUNDS, n, *shape)).astype(np.float32)
    turns = itertools.cycle(actions)

    def episodes(count):
        for _ in range(count):
            step(next(turns))
        return [1] * count

    return episodes


def _step_of(env):
    """Return how N actions are done one after the other; an episode that is over takes one for its reset, as there."""
    over = False

    def step(actions):
        nonlocal over
        for action in actions:
            if over:
                env.reset()
                over = False
            else:
                _, _, terminated, truncated, _ = env.step(action)
                over = terminated or truncated

    return step
