"""PPO of Stable-Baselines3 at the presets of RL Baselines3 Zoo (hyperparams/ppo.yml, HalfCheetah-v3 and Hopper-v3)."""

import torch
from judge import main
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from torch import nn

torch.set_num_threads(1)
NETWORK = {
    "log_std_init": -2,
    "ortho_init": False,
    "activation_fn": nn.ReLU,
    "net_arch": {"pi": [256, 256], "vf": [256, 256]},
}
PRESETS = {
    "HalfCheetah-v5": {
        "batch_size": 64,
        "n_steps": 512,
        "gamma": 0.98,
        "learning_rate": 2.0633e-05,
        "ent_coef": 0.000401762,
        "clip_range": 0.1,
        "n_epochs": 20,
        "gae_lambda": 0.92,
        "max_grad_norm": 0.8,
        "vf_coef": 0.58096,
    },
    "Hopper-v5": {
        "batch_size": 32,
        "n_steps": 512,
        "gamma": 0.999,
        "learning_rate": 9.80828e-05,
        "ent_coef": 0.00229519,
        "clip_range": 0.2,
        "n_epochs": 5,
        "gae_lambda": 0.99,
        "max_grad_norm": 0.7,
        "vf_coef": 0.835671,
    },
}


def learn(env_id, env_steps, seed):
    """Learn for ``env_steps``; return the environment steps that were taken, and how it acts."""
    preset = PRESETS[env_id]
    envs = VecNormalize(make_vec_env(env_id, n_envs=1, seed=seed), gamma=preset["gamma"])
    model = PPO("MlpPolicy", envs, seed=seed, device="cpu", policy_kwargs=NETWORK, **preset)
    model.learn(env_steps)
    return model.num_timesteps, lambda seen: model.predict(envs.normalize_obs(seen), deterministic=True)[0]


main(learn, ("stable-baselines3", "gymnasium", "mujoco", "numpy", "torch"))
