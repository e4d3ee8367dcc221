"""Says how good a policy is while it learns, and keeps the time that this takes out of the account.

It needs Gymnasium and NumPy alone, so it runs in any virtual environment, the same for every contender.
"""

import json
import platform
import sys
import time
from importlib.metadata import version

import gymnasium as gym
import numpy as np

GOAL = 475.0  # the reward_threshold of CartPole-v1
CHECKED, CONFIRMED = 20, 100  # episodes
_CHECK_SEEDS, _CONFIRM_SEEDS = 1_000_000, 2_000_000


class Judge:
    """Plays greedy episodes every ``interval`` environment steps.

    The goal is reached at a check whose 20 episodes, the same at every check, have a mean of 475, if 100 episodes of
    seeds that are asked this once have it too.
    """

    def __init__(self, interval):
        self.interval = interval
        self.curve = []
        self.crossed = self.reached = None
        self._envs = [gym.make("CartPole-v1") for _ in range(CONFIRMED)]
        self._next = interval
        self._confirmations = 0
        self._away = 0.0
        self._start = time.process_time()

    def done(self, env_steps, act):
        """Return whether the goal is reached; ``act`` makes actions [N] of observations [N, 4]."""
        if env_steps < self._next:
            return False
        self._next = (env_steps // self.interval + 1) * self.interval
        before = time.process_time()
        spent = before - self._start - self._away
        mean = self._mean(act, range(_CHECK_SEEDS, _CHECK_SEEDS + CHECKED))
        point = {"env_steps": env_steps, "cpu_seconds": round(spent, 3), "mean": mean}
        if mean >= GOAL:
            self.crossed = self.crossed or point
            first = _CONFIRM_SEEDS + CONFIRMED * self._confirmations
            self._confirmations += 1
            point = {**point, "confirmed": self._mean(act, range(first, first + CONFIRMED))}
            if point["confirmed"] >= GOAL:
                self.reached = point
        self.curve.append(point)
        self._away += time.process_time() - before
        return self.reached is not None

    def _mean(self, act, seeds):
        envs = self._envs[: len(seeds)]
        seen = np.stack([env.reset(seed=seed)[0] for env, seed in zip(envs, seeds, strict=True)])
        lengths, alive = np.zeros(len(envs)), list(range(len(envs)))
        while alive:
            still = []
            for i, action in zip(alive, act(seen[alive]), strict=True):
                seen[i], _, terminated, truncated, _ = envs[i].step(int(action))
                lengths[i] += 1
                if not (terminated or truncated):
                    still.append(i)
            alive = still
        return float(lengths.mean())


def main(learn, packages):
    """Run ``learn(judge, seed, env_steps)`` with the options of the command line and print what came of it."""
    options = json.loads(sys.argv[1])
    judge = Judge(options.pop("interval"))
    env_steps = learn(judge, **options)
    result = {
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "env_steps": env_steps,
        "crossed": judge.crossed,
        "reached": judge.reached,
        "curve": judge.curve,
    }
    print(json.dumps(result))
