"""PPO of this library on a small network."""

import gymnasium as gym
import torch
from judge import main

from tetrathlon.agents.control import ControlPolicy
from tetrathlon.algos.on_policy import PPO

torch.set_num_threads(1)


def learn(judge, seed, env_steps, **options):
    """Learn until the judge is content; return the environment steps that were taken."""
    env = gym.make("CartPole-v1")
    policy = ControlPolicy(env.observation_space, env.action_space, seed=seed)
    taken = 0

    def after(update, metrics):
        nonlocal taken
        taken += int(metrics["decisions"])
        return judge.done(taken, lambda seen: policy.act(seen, greedy=True).actions)

    updates = env_steps // (options["groups"] * options["horizon"])
    PPO(policy, "CartPole-v1", seed=seed, callbacks=[after], **options).learn(updates)
    return taken


main(learn, ("tetrathlon", "gymnasium", "numpy", "torch"))
