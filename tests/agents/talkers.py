"""Small random language models, what they talk about, and what they are made to say."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from tests.agents.test_language import CHATML, tokenizer
from tetrathlon.agents.engine import Completion
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.spaces import UnicodeText

# Large enough that positions and padding matter, small enough that float32 itself is good to 1e-5.
SCALE = 0.2


def net(kind: str, seed: int = 0, size: int = 32, vocabulary: int = 260) -> Any:
    """Return a random model: with rotary positions, or with learned ones, which a shift changes."""
    torch.manual_seed(seed)
    if kind == "rotary":
        return LlamaForCausalLM(
            LlamaConfig(
                vocab_size=vocabulary,
                hidden_size=size,
                intermediate_size=48,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
                max_position_embeddings=256,
                initializer_range=SCALE,
                eos_token_id=2,
                pad_token_id=2,
            )
        )
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=vocabulary,
            n_positions=256,
            n_embd=size,
            n_layer=2,
            n_head=4,
            initializer_range=SCALE,
            bos_token_id=2,
            eos_token_id=2,
        )
    )


class Asking(gym.Env[str, str]):
    """Asks in as many letters as it likes; pays for each letter ``a`` of the answer."""

    observation_space = UnicodeText(100)
    action_space = UnicodeText(100)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return "q" * int(self.np_random.integers(1, 30)), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return "", float(len(action)), True, False, {}


def talker(kind: str, template: str | None = CHATML, seed: int = 0, **options: Any) -> LanguagePolicy:
    """A policy with so many ends of turn that its turns differ in length."""
    made = LanguagePolicy(net(kind, seed), tokenizer(template), **{"max_tokens": 8, **options})
    made.engine.eos = made.chat.eos = frozenset(range(2, 60))
    return made


def answers(made: LanguagePolicy, *completions: Completion) -> None:
    """Make the model say ``completions`` one after another, with the log-probabilities that it gives them."""
    queue = list(completions)
    made.engine.generate = lambda prompts, *_: [queue.pop(0) for _ in prompts]  # type: ignore[method-assign]


def episode(made: LanguagePolicy, *observations: str) -> Episode:
    """Return the episode in which the policy answers ``observations``."""
    memory: Any = [None]
    played = Episode()
    for observation in observations:
        acted = made.act((observation,), memory)
        memory = acted.memory
        played.steps.append(Step(observation, acted.actions[0], 1.0, record=acted.records[0]))
    played.steps[-1].terminated = True
    return played
