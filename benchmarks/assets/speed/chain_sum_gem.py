"""gem's ``rg:chain_sum``: generate, answer right, be graded."""

import gem

PACKAGES = ("gem-llm", "reasoning-gym", "numpy")


def start(seeded=False):
    """Return ``episodes``."""
    env = gem.make("rg:chain_sum", seed=0)
    played = 0

    def episodes(n):
        nonlocal played
        rewards = []
        for seed in range(played, played + n):
            env.reset(seed=seed) if seeded else env.reset()
            rewards.append(env.step(rf"\boxed{{{env.data['answer']}}}")[1])
        played += n
        return rewards

    return episodes
