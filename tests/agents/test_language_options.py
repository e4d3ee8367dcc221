"""Ways of loading a language model to train it: each learns the same, at another price."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tetrathlon.agents.char_lm import char_lm
from tetrathlon.agents.critic import OwnCritic
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.algos import GRPO, PPO
from tetrathlon.envs.episode import Episode

ID = "tetrathlon/Arithmetic-v0"
SUMS: dict[str, Any] = {"digits": 1, "answer_format": "plain", "max_tokens": 4}
SMALL: dict[str, Any] = {"groups": 2, "group_size": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = char_lm(seed=1)
    where = tmp_path_factory.mktemp("model")
    made.model.save_pretrained(where)
    made.tokenizer.save_pretrained(where)
    return where


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[list[Episode]]:
    """Return episodes whose rewards differ within each group."""
    policy = LanguagePolicy.from_pretrained(folder)
    rows = GRPO(policy, ID, kwargs=SUMS, **SMALL).collector.collect().rows
    for number, row in enumerate(rows):
        row[0].steps[-1].reward = float(number % 3 == 0)
    return rows


def gradient(policy: LanguagePolicy, rows: list[list[Episode]]) -> torch.Tensor:
    batch = policy.collate(rows)
    policy.zero_grad()
    policy.evaluate(batch).logp[batch.mask].sum().backward()
    return torch.cat([p.grad.flatten() for p in policy.model.parameters() if p.grad is not None])


def test_activations_computed_again_give_the_same_gradient(folder: Path, rows: list[list[Episode]]) -> None:
    kept = LanguagePolicy.from_pretrained(folder)
    again = LanguagePolicy.from_pretrained(folder, checkpointing=True)
    assert any(getattr(module, "gradient_checkpointing", False) and module.training for module in again.model.modules())
    torch.testing.assert_close(gradient(again, rows), gradient(kept, rows), rtol=1e-5, atol=1e-6)
    assert again.act(("What is 1 + 2?",), greedy=True).actions == kept.act(("What is 1 + 2?",), greedy=True).actions


def test_compiled_layers_give_the_same_gradient(
    folder: Path, rows: list[list[Episode]], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[nn.Module] = []

    def compile_quickly(module: nn.Module, **options: Any) -> None:
        compiled.append(module)
        module._compiled_call_impl = torch.compile(module._call_impl, backend="eager", **options)

    monkeypatch.setattr(nn.Module, "compile", compile_quickly)
    fast = LanguagePolicy.from_pretrained(folder, compiled=True)
    assert compiled == [fast.model.base_model]
    plain = LanguagePolicy.from_pretrained(folder)
    torch.testing.assert_close(gradient(fast, rows), gradient(plain, rows), rtol=1e-5, atol=1e-6)


def test_adapters_alone_learn(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    policy = LanguagePolicy.from_pretrained(folder, lora=2)
    assert policy.default_lr == 1e-4 and LanguagePolicy.default_lr == 1e-5
    learning = {name for name, p in policy.named_parameters() if p.requires_grad}
    assert learning and all("lora_" in name for name in learning)
    before = {name: p.detach().clone() for name, p in policy.named_parameters()}
    history = GRPO(policy, ID, kwargs=SUMS, entropy_coef=0.1, kl_coef=0.1, lr=0.01, **SMALL).learn(2)
    moved = {name for name, p in policy.named_parameters() if not torch.equal(p, before[name])}
    assert moved == learning and history[1]["kl_ref"] > 0, "the reference is the model with its adapters off"


def test_mixed_precision_keeps_its_weights(folder: Path) -> None:
    policy = LanguagePolicy.from_pretrained(folder, dtype="mixed")
    assert policy.autocast is torch.bfloat16 and {p.dtype for p in policy.parameters()} == {torch.float32}
    assert LanguagePolicy.from_pretrained(folder, dtype="bfloat16").model.dtype is torch.bfloat16
    assert LanguagePolicy.from_pretrained(folder, device="cpu").autocast is None


def test_a_critic_of_its_own_learns_apart(folder: Path, rows: list[list[Episode]]) -> None:
    policy = LanguagePolicy.from_pretrained(folder, critic="own")
    assert isinstance(policy.critic, OwnCritic)
    nn.init.normal_(policy.critic.head.layers[-1].weight)  # type: ignore[arg-type]
    batch = policy.collate(rows, last="always")
    read = batch.mask | batch.final
    found = policy.evaluate(batch)
    assert found.value is not None
    # The same model: its head reads what the policy's own layers give.
    twin = LanguagePolicy.from_pretrained(folder, critic="head")
    assert twin.critic is not None
    twin.critic.load_state_dict(policy.critic.head.state_dict())
    other = twin.evaluate(batch).value
    assert other is not None
    torch.testing.assert_close(found.value[read], other[read], rtol=1e-4, atol=1e-5)
    found.value[read].sum().backward()
    assert all(p.grad is None for p in policy.model.parameters())
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in policy.critic.trunk.parameters())


def test_a_critic_of_its_own_takes_the_rate_of_critics(folder: Path) -> None:
    policy = LanguagePolicy.from_pretrained(folder, critic="own")
    assert isinstance(policy.critic, OwnCritic)
    nn.init.normal_(policy.critic.head.layers[-1].weight)  # type: ignore[arg-type]
    before = copy.deepcopy(policy)
    PPO(policy, ID, kwargs=SUMS, lr=0.0, value_lr=1e-3, groups=4, epochs=1).learn(2)
    assert all(torch.equal(a, b) for a, b in zip(policy.model.parameters(), before.model.parameters(), strict=True))
    assert before.critic is not None
    pairs = zip(policy.critic.parameters(), before.critic.parameters(), strict=True)
    assert not all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dtype": "float16"}, "dtype must be 'auto', 'float32', 'bfloat16' or 'mixed', got 'float16'"),
        ({"lora": -1}, "lora must be a rank of at least 1, or 0 for none, got -1"),
        ({"lora": "abc"}, "lora must be a rank of at least 1, or 0 for none, got 'abc'"),
        ({"critic": "big"}, "critic must be 'head', 'shared', 'own' or None, got 'big'"),
    ],
)
def test_wrong_options(folder: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        LanguagePolicy.from_pretrained(folder, **options)
