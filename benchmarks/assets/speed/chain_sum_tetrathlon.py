"""``tetrathlon/Arithmetic-v0`` on the instances of chain_sum: generate, answer right, be graded."""

import gymnasium as gym

import tetrathlon  # noqa: F401  # registers the ids

PACKAGES = ("tetrathlon", "gymnasium", "numpy")


def start(seeded=False):
    """Return ``episodes``."""
    env = gym.make("tetrathlon/Arithmetic-v0", operators="+-", terms=(2, 6), digits=(1, 4))
    expert = env.get_wrapper_attr("expert_action")
    played = 0

    def episodes(n):
        nonlocal played
        rewards = []
        for seed in range(played, played + n):
            env.reset(seed=seed) if seeded else env.reset()
            rewards.append(env.step(expert())[1])
        played += n
        return rewards

    return episodes
