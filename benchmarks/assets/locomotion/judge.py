"""Times how a contender learns to move, and plays what it has learnt.

It needs Gymnasium, NumPy and MuJoCo alone, so it runs in any virtual environment, the same for every contender.
"""

import json
import platform
import sys
import time
from importlib.metadata import version

import gymnasium as gym

EPISODES = 20
_FIRST_SEED = 1_000_000


def returns(env_id, act):
    """Return what 20 episodes of fixed seeds pay; ``act`` makes an action of an observation."""
    env = gym.make(env_id)
    found = []
    for seed in range(_FIRST_SEED, _FIRST_SEED + EPISODES):
        seen, _ = env.reset(seed=seed)
        paid, ended = 0.0, False
        while not ended:
            seen, reward, terminated, truncated, _ = env.step(act(seen))
            paid += float(reward)
            ended = terminated or truncated
        found.append(round(paid, 3))
    return found


def main(learn, packages):
    """Run ``learn(env_id, env_steps, seed, **options) -> (taken, act)`` as the command line says; print the result."""
    options = json.loads(sys.argv[1])
    start = time.process_time()
    taken, act = learn(**options)
    spent = time.process_time() - start
    result = {
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "env_steps": taken,
        "cpu_seconds": round(spent, 2),
        "returns": returns(options["env_id"], act),
    }
    print(json.dumps(result))
