"""A language model that learns: rows, masks, log-probabilities and gradients, and what none of them may depend on."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GraniteConfig,
    GraniteForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
)

from tests.agents import test_language
from tests.agents.test_language import CHATML, tokenizer
from tetrathlon.agents import scoring
from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.agents.scoring import Scorer, TokenStatistics
from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.slots import Slots
from tetrathlon.envs.spaces import UnicodeText


class Talk(gym.Env[str, str]):
    """Asks ``turns`` times; what is said is paid by its length."""

    observation_space = UnicodeText(100)
    action_space = UnicodeText(100)

    def __init__(self, turns: int = 2) -> None:
        self.turns = turns

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.turn, self.asked = 0, seed or 0
        return "q" * (5 + self.asked % 3), {"system": "be brief", "tools": []}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turn += 1
        info = {"role": "tool"} if self.turn % 2 else {}
        return f"then {self.turn}", float(len(action)), self.turn >= self.turns, False, info

    def expert_action(self, k: int = 1) -> Any:
        return "yes" if k == 1 else ["yes"] * k


def policy(**options: Any) -> LanguagePolicy:
    """A random model with so many ends of turn that its turns are short, and now and then cut."""
    model = test_language.model()
    model.generation_config.eos_token_id = list(range(2, 60))
    return LanguagePolicy(model, tokenizer(CHATML), **{"max_tokens": 12, **options})


def play(made: LanguagePolicy, turns: int = 2, starts: int = 2, group: int = 3, **options: Any) -> list[Episode]:
    queue = [Start(seed=seed, group=seed) for seed in range(starts) for _ in range(group)]
    return Rollout(made, Slots(lambda: Talk(turns), len(queue)), queue, **options).episodes()


def rows(episodes: list[Episode]) -> list[list[Episode]]:
    return [[episode] for episode in episodes]


def test_ids_masks_and_rewards_are_those_of_the_records() -> None:
    made = policy()
    episodes = play(made)
    batch = made.collate(rows(episodes))
    for b, episode in enumerate(episodes):
        said = np.concatenate([step.record["ids"] for step in episode.steps if step.record])
        parts = [part for step in episode.steps if step.record for part in (step.record["prompt"], step.record["ids"])]
        whole = np.concatenate(parts)
        assert batch.inputs["ids"][b, : len(whole)].tolist() == whole.tolist()
        assert batch.inputs["ids"][b][batch.mask[b]].tolist() == said.tolist()
        ends = np.cumsum([len(step.record["ids"]) for step in episode.steps if step.record]) - 1
        assert batch.reward[b][batch.mask[b]][ends].tolist() == [step.reward for step in episode.steps]
        assert batch.reward[b][batch.mask[b]].sum() == episode.total_reward
        assert batch.logp[b][batch.mask[b]].tolist() == pytest.approx(
            np.concatenate([step.record["logps"] for step in episode.steps if step.record]).tolist()
        )
        assert batch.cut[b][batch.mask[b]].nonzero().flatten().tolist() == [
            end for end, step in zip(ends, episode.steps, strict=True) if step.record and step.record["cut"][-1]
        ]


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_what_was_sampled_is_as_likely_when_it_is_learnt(temperature: float) -> None:
    made = policy(temperature=temperature)
    batch = made.collate(rows(play(made)))
    drift = (made.evaluate(batch).logp - batch.logp)[batch.mask].abs().max()
    assert drift < 1e-4
    untempered = LanguagePolicy(made.model, made.tokenizer, temperature=2 * temperature)
    assert (untempered.evaluate(batch).logp - batch.logp)[batch.mask].abs().max() > 0.1


def test_training_mode_changes_nothing() -> None:
    config = GPT2Config(vocab_size=260, n_positions=256, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0.5)
    made = LanguagePolicy(GPT2LMHeadModel(config), tokenizer(CHATML), max_tokens=6)
    batch = made.collate(rows(play(made)))
    before = made.eval().evaluate(batch).logp
    assert torch.equal(made.train().evaluate(batch).logp, before)


def models() -> list[Any]:
    torch.manual_seed(0)
    llama = LlamaConfig(
        vocab_size=260,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        initializer_range=0.5,
    )
    gpt2 = GPT2Config(vocab_size=260, n_positions=256, n_embd=16, n_layer=2, n_head=2, initializer_range=0.3)
    return [LlamaForCausalLM(llama), GPT2LMHeadModel(gpt2)]


def plain(model: Any, batch: Decisions, temperature: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities and entropies [N] by the model's own forward pass of whole rows."""
    ids = batch.inputs["ids"]
    logp = (model(ids).logits[:, :-1] / temperature).log_softmax(-1)[batch.mask[:, 1:]]
    return logp.gather(-1, ids[batch.mask][:, None])[:, 0], -(logp.exp() * logp).sum(-1)


def told(model: Any, logp: torch.Tensor, entropy: torch.Tensor) -> list[torch.Tensor]:
    """Both with the gradients of a loss that weighs them unevenly."""
    model.zero_grad()
    weights = torch.linspace(-1, 1, len(logp))
    (weights * logp + 0.1 * weights.flip(0) * entropy).sum().backward()
    gradients = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    return [logp.detach(), entropy.detach(), gradients / gradients.norm()]


def scaled() -> Any:
    """A model that does something to the logits of its output layer."""
    torch.manual_seed(0)
    config = GraniteConfig(
        vocab_size=260,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        logits_scaling=0.5,
        initializer_range=0.5,
    )
    return GraniteForCausalLM(config)


def biased() -> Any:
    model = models()[0]
    model.lm_head = torch.nn.Linear(16, 260)
    return model


@pytest.mark.parametrize(("attention", "cells", "temperature"), [("sdpa", 10**9, 1.0), ("eager", 1000, 0.7)])
@pytest.mark.parametrize("model", [*models(), scaled(), biased()], ids=["rotary", "learned", "scaled", "biased"])
def test_a_row_says_the_same_alone_in_a_batch_and_beside_its_group(
    model: Any, temperature: float, cells: int, attention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is shared, packed and cut in parts, values and gradients are those of the model's own forward pass."""
    monkeypatch.setitem(scoring._CELLS, "cpu", cells)
    model.set_attn_implementation(attention)
    made = LanguagePolicy(model, tokenizer(CHATML), max_tokens=6, temperature=temperature)
    batch = made.collate(rows(play(made)))
    expected = told(model, *plain(model, batch, temperature))
    assert made._scorer._can_share
    assert made._scorer._planted(batch.inputs["ids"], batch.mask)[0].mask is not None
    for share in (True, False):
        made._scorer._can_share = share
        evaluation = made.evaluate(batch)
        found = told(model, evaluation.logp[batch.mask], evaluation.entropy[batch.mask])
        for one, other in zip(found, expected, strict=True):
            assert torch.allclose(one, other, atol=1e-5, rtol=1e-5)
    assert made._scorer._is_bare is (type(model) is not GraniteForCausalLM)
    alone = torch.cat([made.evaluate(batch.select([b])).logp for b in range(len(batch))])
    assert torch.allclose(alone[batch.mask], expected[0], atol=1e-5)


def test_checkpointing_keeps_what_is_shared() -> None:
    model = models()[0]
    made = LanguagePolicy(model, tokenizer(CHATML), max_tokens=6)
    batch = made.collate(rows(play(made)))
    before = made.evaluate(batch)
    expected = told(model, before.logp[batch.mask], before.entropy[batch.mask])
    model.gradient_checkpointing_enable()
    after = made.train().evaluate(batch)
    for one, other in zip(told(model, after.logp[batch.mask], after.entropy[batch.mask]), expected, strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_equal_beginnings_are_read_once() -> None:
    """Also those of answers, and of the prompts of different groups."""
    model = models()[0]
    made = LanguagePolicy(model, tokenizer(CHATML), max_tokens=6)
    batch = made.collate(rows(play(made, turns=1, group=4)))
    read: list[int] = []
    model.model.embed_tokens.register_forward_hook(lambda module, args, out: read.append(args[0].numel()))
    made.evaluate(batch)
    ends = torch.where(batch.mask, torch.arange(batch.mask.shape[1]), 0).amax(1).tolist()
    texts = [tuple(ids[:end]) for ids, end in zip(batch.inputs["ids"].tolist(), ends, strict=True)]
    apart = len({text[:k] for text in texts for k in range(1, len(text) + 1)})
    assert apart <= read[-1] < 1.4 * apart < sum(ends) / 2


def test_padding_and_what_is_not_decided_have_no_part() -> None:
    made = policy()
    batch = made.collate(rows(play(made)))
    before = made.evaluate(batch)
    last = torch.where(batch.mask, torch.arange(batch.mask.shape[1]), 0).amax(1)
    behind = torch.arange(batch.mask.shape[1]) > last[:, None]
    assert bool(behind.any())
    noisy = copy.copy(batch)
    noisy.inputs = {"ids": torch.where(behind, 77, batch.inputs["ids"])}
    after = made.evaluate(noisy)
    assert torch.equal(before.logp, after.logp)
    assert bool((before.logp[~batch.mask] == 0).all())


def statistics(logits: torch.Tensor, ids: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """One id a distribution, and the logits are given."""
    return TokenStatistics.apply(logits, None, None, torch.arange(len(ids)), ids, temperature, True)


def test_gradients_of_statistics() -> None:
    torch.manual_seed(1)
    logits = torch.randn(5, 7, dtype=torch.float32, requires_grad=True)
    ids = torch.tensor([0, 6, 3, 3, 1])
    weights = torch.randn(2, 5)
    logp, entropy = statistics(logits, ids, 0.7)
    (weights[0] * logp + weights[1] * entropy).sum().backward()
    mine, logits.grad = logits.grad, None
    usual = (logits / 0.7).log_softmax(-1)
    plain = -(usual.exp() * usual).sum(-1)
    (weights[0] * usual[torch.arange(5), ids] + weights[1] * plain).sum().backward()
    assert mine is not None and logits.grad is not None
    assert torch.allclose(mine, logits.grad, atol=1e-6)
    assert torch.allclose(entropy, plain, atol=1e-6)
    # conformance: logits [2, 1, 0] at temperature 2, and [2, 1, 0, -1] at 0.5.
    for given, temperature, expected in (
        ([[2.0, 1, 0]], 1.0, -0.407606),
        ([[2.0, 1, 0]], 2.0, -0.680270),
        (
            [[2.0, 1, 0, -1]],
            0.5,
            -0.145078,
        ),
    ):
        value = statistics(torch.tensor(given), torch.tensor([0]), temperature)[0]
        assert value.item() == pytest.approx(expected, abs=1e-5)


def test_a_forbidden_token_moves_nothing() -> None:
    logits = torch.tensor([[0.0, -torch.inf, 1.0]], requires_grad=True)
    logp, entropy = statistics(logits, torch.tensor([2]), 1.0)
    (logp + entropy).sum().backward()
    assert torch.isfinite(entropy).all() and logits.grad is not None
    assert torch.isfinite(logits.grad).all() and logits.grad[0, 1] == 0


def test_labels_are_rows_of_their_own_behind_the_learner_s_history() -> None:
    made = policy()
    episodes = play(made, ask=True)
    batch = made.collate(rows(episodes), learn="label")
    assert len(batch) == 2 * len(episodes)
    assert batch.source.tolist() == [b for b in range(len(episodes)) for _ in range(2)]
    label = made.chat.forced("yes", "")
    for at in range(len(batch)):
        assert batch.inputs["ids"][at][batch.mask[at]].tolist() == label
        assert bool(torch.isnan(batch.logp[at][batch.mask[at]]).all())
        records = [step.record for step in episodes[at // 2].steps]
        parts = [records[0]["prompt"]]  # type: ignore[index]
        if at % 2:
            parts = [records[0]["prompt"], records[0]["ids"], records[1]["prompt"]]  # type: ignore[index]
        history = np.concatenate(parts).tolist()
        assert batch.inputs["ids"][at, : len(history)].tolist() == history
        assert int(batch.mask[at].nonzero()[0]) == len(history)


def test_somebody_else_s_episode_is_encoded_as_the_policy_would_have_read_it() -> None:
    made = policy()
    mine = play(made, starts=1, group=1)[0]
    theirs = copy.deepcopy(mine)
    for step in theirs.steps:
        step.record = None
    known, foreign = made.collate([[mine]]), made.collate([[theirs]], learn="action")
    text = made.tokenizer.decode(known.inputs["ids"][0].tolist())
    assert made.tokenizer.decode(foreign.inputs["ids"][0].tolist()).startswith(text[: len(text) // 2])
    assert bool(torch.isnan(foreign.logp[foreign.mask]).all())
    assert foreign.reward.sum() == known.reward.sum()
    assert made.evaluate(foreign).logp[foreign.mask].isfinite().all()
    assert not made.collate([[theirs]]).mask.any()


def test_forced_turns_are_history() -> None:
    made = policy()
    episodes = play(made, starts=1, group=1)
    first = episodes[0].steps[0]
    acted = made.act(("hello",), [None], infos=[{"system": "be brief"}], forced=["yes"])
    later = made.act(("go on",), acted.memory, infos=[{"role": "user"}])
    episode = Episode(
        steps=[
            Step("hello", "yes", 1.0),
            Step("go on", later.actions[0], 2.0, terminated=True, record=later.records[0]),
        ],
        info={"system": "be brief"},
    )
    batch = made.collate([[episode]])
    assert batch.inputs["ids"][0][batch.mask[0]].tolist() == later.records[0]["ids"].tolist()  # type: ignore[index]
    assert (made.evaluate(batch).logp - batch.logp)[batch.mask].abs().max() < 1e-5
    assert batch.turn[batch.mask].unique().tolist() == [1]
    episode.steps[0].action = "no"
    with pytest.raises(ValueError, match="does not go on where the episode was"):
        made.collate([[episode]])
    assert first.record is not None


def value_positions(batch: Decisions) -> list[int]:
    return (batch.mask | batch.final)[0].nonzero().flatten().tolist()


def test_values_are_read_where_tokens_are_emitted_and_after_the_last_observation() -> None:
    made = policy(critic="head")
    episode = play(made, turns=3, starts=1, group=1)[0]
    episode.steps = episode.steps[:2]
    episode.final_observation = "then 2"
    batch = made.collate([[episode]])
    assert batch.final.sum() == 1
    with torch.no_grad():
        made.critic.layers[-1].weight.normal_()  # type: ignore[union-attr, index]
        value = made.evaluate(batch).value
        assert value is not None
        hidden = made.model.model(batch.inputs["ids"]).last_hidden_state
        expected = made.critic(hidden[0])  # type: ignore[misc]
    where = value_positions(batch)
    assert torch.allclose(value[0, where], expected[[t - 1 for t in where]], atol=1e-5)
    # What the model would read before its third turn, up to the first position that it would decide.
    given = made.chat.later(
        made.act(("x",), [None], infos=[{"system": "be brief"}]).memory[0], "user", episode.final_observation
    )[0]
    ids = batch.inputs["ids"][0, : where[-1]].tolist()
    assert ids[-len(given) + 1 :] == given[1:]
    ended = copy.deepcopy(episode)
    ended.steps[-1].terminated, ended.final_observation = True, ""
    assert not made.collate([[ended]]).final.any()
    assert made.collate([[ended]], last="always").final.sum() == 1


@pytest.mark.parametrize(("kind", "moves"), [("head", False), ("shared", True)])
def test_the_value_loss_leaves_the_model_alone_unless_it_is_shared(kind: Any, moves: bool) -> None:
    made = policy(critic=kind)
    batch = made.collate(rows(play(made)))
    with torch.no_grad():
        made.critic.layers[-1].weight.normal_()  # type: ignore[union-attr, index]
    value = made.evaluate(batch).value
    assert value is not None
    value[batch.mask].sum().backward()
    assert any(p.grad is not None and bool(p.grad.any()) for p in made.model.parameters()) is moves
    with pytest.raises(ValueError, match="critic must be"):
        made.add_critic("big")  # type: ignore[arg-type]


def test_a_snapshot_stays_as_it_was() -> None:
    made = policy()
    batch = made.collate(rows(play(made)))
    reference = made.snapshot()
    before = reference.evaluate(batch).logp
    assert torch.equal(before, made.evaluate(batch).logp) and not before.requires_grad
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1)
    assert torch.equal(reference.evaluate(batch).logp, before)
    assert not torch.equal(made.evaluate(batch).logp, before)


def test_lora_is_its_own_reference() -> None:
    peft = pytest.importorskip("peft")
    made = policy()
    batch = made.collate(rows(play(made)))
    before = made.evaluate(batch).logp.detach()
    adapted = LanguagePolicy(
        peft.get_peft_model(made.model, peft.LoraConfig(r=2, target_modules=["q_proj"])), made.tokenizer, max_tokens=12
    )
    reference = adapted.snapshot()
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora" in name:
                parameter.normal_()
    assert not list(reference.parameters())
    assert torch.allclose(reference.evaluate(batch).logp, before, atol=1e-6)
    assert (adapted.evaluate(batch).logp - before)[batch.mask].abs().max() > 1e-3


def test_the_stream_of_samples_is_saved_with_the_weights() -> None:
    made, other = policy(seed=3), policy(seed=4)
    play(made)
    state = copy.deepcopy(made.state_dict())
    expected = [step.action for episode in play(made) for step in episode.steps]
    other.load_state_dict(state)
    assert [step.action for episode in play(other) for step in episode.steps] == expected


def test_nothing_comes_before_the_first_token() -> None:
    model = models()[0]
    with pytest.raises(ValueError, match="first position"):
        Scorer(model)(torch.ones(1, 3, dtype=torch.long), torch.tensor([[True, False, False]]))


def test_autocast_keeps_the_weights_and_the_output_layer_in_float32() -> None:
    made = policy()
    episodes = play(made)
    batch = made.collate(rows(episodes))
    exact = made.evaluate(batch).logp
    made.autocast = torch.bfloat16
    rough = made.evaluate(batch)
    assert rough.logp.dtype == torch.float32
    difference = (rough.logp - exact)[batch.mask].abs().max()
    assert 0 < difference < 0.5
    rough.logp[batch.mask].sum().backward()
    assert {p.grad.dtype for p in made.parameters() if p.grad is not None} == {torch.float32}


@pytest.mark.parametrize("critic", [None, "head", "own"])
def test_rows_without_decisions_are_evaluated_to_nothing(critic: Any) -> None:
    made = policy(critic=critic)
    episodes = play(made)
    for step in episodes[0].steps:
        step.record = None
    batch = made.collate(rows(episodes))
    alone, among = made.evaluate(batch.select([0])), made.evaluate(batch)
    for name in ("logp", "entropy", "value"):
        one, all_of_them = getattr(alone, name), getattr(among, name)
        assert (one is None) == (all_of_them is None)
        assert one is None or (one.shape == (1, batch.mask.shape[1]) and one.eq(all_of_them[:1]).all())


def test_values_are_in_float32_under_autocast() -> None:
    made = policy(critic="head")
    batch = made.collate(rows(play(made)))
    made.autocast = torch.bfloat16
    assert made.critic is not None
    with torch.no_grad():
        made.critic.layers[-1].bias.fill_(1.001)  # type: ignore[union-attr,index]
    value = made.evaluate(batch).value
    assert value is not None and value[batch.mask].tolist() == pytest.approx([1.001] * int(batch.mask.sum()), abs=1e-6)
