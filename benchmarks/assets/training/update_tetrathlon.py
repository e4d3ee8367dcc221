"""GRPO updates of ours, one a line of standard input: ``python update_tetrathlon.py OPTIONS``.

Under ``bfloat16`` the weights stay in float32 and the model computes by autocast.
"""

import json
import sys

import gymnasium as gym
import torch
from clock import Clock, ready

from tetrathlon.agents import LanguagePolicy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.algos import GRPO
from tetrathlon.algos.learner import Learner
from tetrathlon.envs.slots import Slots
from tetrathlon.envs.spaces import UnicodeText

options = json.loads(sys.argv[1])
torch.set_num_threads(options["threads"])
torch.set_num_interop_threads(1)
clock = Clock()


class Quiz(gym.Env):
    """Question number ``index``; the pay is that of the other contender."""

    observation_space = action_space = UnicodeText(10_000)

    def reset(self, *, seed=None, options=None):
        """Ask."""
        super().reset(seed=seed)
        question, self._sum = QUESTIONS[options["index"]]
        return question, {"system": "", "tools": [], "limits": {"tokens": MAX_TOKENS}}

    def step(self, action):
        """Pay."""
        return "", float(str(self._sum) in action) + len(action) / 1000, True, False, {"is_success": False}


QUESTIONS, MAX_TOKENS = options["questions"], options["max_tokens"]
starts = [
    Start(options={"index": index}, group=index)
    for index in range(len(QUESTIONS))
    for _ in range(options["group_size"])
]
policy = LanguagePolicy.from_pretrained(options["model"], device="cpu", dtype="float32", seed=options["seed"])
if options["dtype"] == "bfloat16":
    policy.autocast = torch.bfloat16
slots = Slots(Quiz, len(starts))
learner = Learner(policy, GRPO.Options(lr=options["lr"]))
policy.engine.generate = clock.timed("generate", policy.engine.generate)
policy.evaluate = clock.timed("forward", policy.evaluate)
torch.Tensor.backward = clock.timed("backward", torch.Tensor.backward)
learner.optimizer.step = clock.timed("optimizer", learner.optimizer.step)
ready(("tetrathlon", "torch", "transformers"))
while True:
    clock.wait()
    episodes = Rollout(policy, slots, starts).episodes()
    learner.update([[episode] for episode in episodes])
    records = [episode.steps[0].record for episode in episodes]
    clock.answer(
        tokens=sum(len(record["ids"]) for record in records), prompt_tokens=sum(len(r["prompt"]) for r in records)
    )
