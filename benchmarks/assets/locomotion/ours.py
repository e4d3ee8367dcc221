"""PPO of this library."""

import gymnasium as gym
import torch
from judge import main

from tetrathlon.agents.control import ControlPolicy
from tetrathlon.algos.on_policy import PPO

torch.set_num_threads(1)


def learn(env_id, env_steps, seed, policy, options):
    """Learn for ``env_steps``; return the environment steps that were taken, and how it acts."""
    env = gym.make(env_id)
    made = ControlPolicy(env.observation_space, env.action_space, seed=seed, **policy)
    algorithm = PPO(made, env_id, seed=seed, **options)
    updates = env_steps // (options["groups"] * options["horizon"])
    algorithm.learn(updates)
    return updates * options["groups"] * options["horizon"], lambda seen: made.act(seen[None], greedy=True).actions[0]


main(learn, ("tetrathlon", "gymnasium", "mujoco", "numpy", "torch"))
