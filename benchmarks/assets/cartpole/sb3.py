"""PPO of Stable-Baselines3 at the preset of RL Baselines3 Zoo (hyperparams/ppo.yml, CartPole-v1)."""

import torch
from judge import main
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

torch.set_num_threads(1)


class Ask(BaseCallback):
    """Asks the judge once a rollout, before its update, as the callbacks of the library do."""

    def __init__(self, judge):
        super().__init__()
        self.judge = judge

    def _on_step(self):
        return self.judge.reached is None

    def _on_rollout_start(self):
        self.judge.done(self.num_timesteps, lambda seen: self.model.predict(seen, deterministic=True)[0])


def learn(judge, seed, env_steps):
    """Learn until the judge is content; return the environment steps that were taken."""
    model = PPO(
        "MlpPolicy",
        make_vec_env("CartPole-v1", n_envs=8, seed=seed),
        n_steps=32,
        batch_size=256,
        gae_lambda=0.8,
        gamma=0.98,
        n_epochs=20,
        ent_coef=0.0,
        learning_rate=lambda left: left * 1e-3,
        clip_range=lambda left: left * 0.2,
        seed=seed,
        device="cpu",
    )
    model.learn(env_steps, callback=Ask(judge))
    return model.num_timesteps


main(learn, ("stable-baselines3", "gymnasium", "numpy", "torch"))
