"""SkyRL-Gym's gsm8k in the way of its trainer: a new environment for every episode."""

import skyrl_gym
from rows import word_problems

PACKAGES = ("skyrl-gym",)


def start(rows, worked=False):
    """Return ``episodes``."""
    played = [
        ([{"role": "user", "content": question}], {"reward_spec": {"ground_truth": gold}}, completion)
        for question, gold, completion in word_problems(worked, rows)
    ]

    def episodes(n):
        rewards = []
        for i in range(n):
            prompt, extras, completion = played[i % len(played)]
            env = skyrl_gym.make("gsm8k", extras=extras)
            env.init(prompt)
            rewards.append(env.step(completion)["reward"])
            env.close()
        return rewards

    return episodes
