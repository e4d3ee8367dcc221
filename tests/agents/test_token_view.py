"""What learning did to a language model, token by token."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from tetrathlon.agents.char_lm import char_lm
from tetrathlon.agents.decisions import Decisions, Evaluation
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.policy import RandomPolicy
from tetrathlon.agents.token_view import pieces, token_view
from tetrathlon.envs.episode import Episode, Step


def played(policy: LanguagePolicy, *observations: str, success: bool | None = True) -> Episode:
    """An episode of as many turns."""
    steps, memory = [], None
    for observation in observations:
        acted = policy.act((observation,), memory)
        memory = acted.memory
        steps.append(Step(observation, acted.actions[0], 0.5, record=acted.records[0]))
    steps[-1].terminated = True
    steps[-1].info = {} if success is None else {"is_success": success}
    return Episode(steps, "", seed=3)


def by_hand(policy: LanguagePolicy, ids: list[int], temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability of each id but the first, and the entropy it was drawn at."""
    with torch.no_grad():
        logits = policy.model(torch.tensor([ids])).logits[0, :-1].double() / temperature
    logp = logits.log_softmax(-1)
    return logp.gather(-1, torch.tensor(ids[1:])[:, None])[:, 0], -(logp.exp() * logp).sum(-1)


@pytest.fixture(scope="module")
def policy() -> LanguagePolicy:
    made = char_lm(size=16, layers=1, heads=2, temperature=0.7, max_tokens=5)
    with torch.no_grad():  # far from uniform, so that a wrong temperature shows
        made.model.get_output_embeddings().weight.mul_(20)
    return made


def test_both_policies_are_asked_at_one_temperature(policy: LanguagePolicy) -> None:
    start = char_lm(size=16, layers=1, heads=2, temperature=2.0, seed=1)
    episode = played(policy, "ab", "c")
    view = token_view(policy, start, [episode])
    assert view is not None and view["temperature"] == 0.7 and start.temperature == 2.0
    (shown,) = view["episodes"]
    assert (shown["success"], shown["reward"], shown["seed"]) == (True, 1.0, 3)
    records = [step.record for step in episode.steps]
    row = [int(i) for record in records if record for i in (*record["prompt"], *record["ids"])]
    assert [list(part) for part in shown["parts"]] == [["given"], ["tokens"], ["given"], ["tokens"]]
    at = 0
    now, before = by_hand(policy, row, 0.7), by_hand(start, row, 0.7)
    for record, given, said in zip(records, shown["parts"][::2], shown["parts"][1::2], strict=True):
        assert record is not None
        tokens, first = said["tokens"], at + len(record["prompt"])
        at = first + len(record["ids"])
        assert given["given"] == policy.tokenizer.decode(record["prompt"])
        assert tokens["id"] == record["ids"].tolist()
        assert tokens["text"] == [policy.tokenizer.decode([i]) for i in tokens["id"]]
        np.testing.assert_allclose(tokens["logp"], now[0][first - 1 : at - 1], atol=1e-5)
        np.testing.assert_allclose(tokens["logp"], record["logps"], atol=1e-5)
        np.testing.assert_allclose(tokens["start_logp"], before[0][first - 1 : at - 1], atol=1e-5)
        np.testing.assert_allclose(tokens["entropy"], now[1][first - 1 : at - 1], atol=1e-5)
    json.dumps(view, allow_nan=False)


def test_nothing_is_encoded_again(policy: LanguagePolicy) -> None:
    episode = played(policy, "ab", success=None)
    record = episode.steps[0].record
    assert record is not None
    episode.steps[0].action = "something else"
    view = token_view(policy, policy.snapshot(), [episode])
    assert view is not None
    tokens = view["episodes"][0]["parts"][1]["tokens"]
    assert tokens["id"] == record["ids"].tolist() and tokens["logp"] == tokens["start_logp"]
    assert view["episodes"][0]["success"] is None


def test_what_was_not_decided_is_not_shown(policy: LanguagePolicy) -> None:
    forced = Episode([Step("ab", "c", terminated=True)], "")
    assert token_view(policy, policy, [forced, Episode()]) == {"temperature": 0.7, "episodes": []}
    mixed = played(policy, "ab", "c")
    mixed.steps[0].record = None
    mixed.steps[1].record = None
    mixed.steps.append(played(policy, "x").steps[0])
    with pytest.raises(ValueError, match="does not go on where the episode was"):
        token_view(policy, policy, [mixed])


def test_a_policy_whose_decisions_are_no_tokens_has_no_view() -> None:
    import gymnasium as gym

    control = RandomPolicy(gym.spaces.Discrete(2))
    assert token_view(control, control, [Episode()]) is None


def test_what_the_start_thought_impossible_is_no_number(policy: LanguagePolicy) -> None:
    class Sure:
        def parameters(self) -> Any:
            return iter(())

        def evaluate(self, decisions: Decisions) -> Evaluation:
            never = torch.full(decisions.mask.shape, -torch.inf)
            return Evaluation(never, never)

    view = token_view(policy, Sure(), [played(policy, "ab")])
    assert view is not None and set(view["episodes"][0]["parts"][1]["tokens"]["start_logp"]) == {None}
    json.dumps(view, allow_nan=False)


def byte_tokenizer() -> Any:
    """One token a byte, as the byte-level vocabularies of GPT-2, Llama 3, Qwen and SmolLM fall back to."""
    from tokenizers import Tokenizer, decoders, pre_tokenizers
    from tokenizers.models import BPE
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(BPE({letter: i for i, letter in enumerate(letters)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner, clean_up_tokenization_spaces=False)


def test_characters_of_several_tokens_stay_whole() -> None:
    tokenizer = byte_tokenizer()
    ids = tokenizer.encode("a é🙂.")
    assert pieces(tokenizer, ids, [False] * 8 + [True]) == ["a", " ", "", "é", "", "", "", "🙂", "."]
    # A limit cut the first part inside the second character: the half does not swallow what comes after.
    cut = [*ids[:6], *tokenizer.encode("é")]
    found = pieces(tokenizer, cut, [False] * 5 + [True, False, True])
    assert found == ["a", " ", "", "é", "", "\ufffd", "", "é"]


def test_pieces_join_to_the_text_whatever_was_sampled() -> None:
    tokenizer = byte_tokenizer()
    draws = np.random.default_rng(0)
    for _ in range(50):
        ids = draws.integers(0, 256, 40).tolist()
        texts = pieces(tokenizer, ids, [False] * 39 + [True])
        assert len(texts) == 40 and "".join(texts) == tokenizer.decode(ids)


def test_a_space_that_only_shows_behind_another_token_is_kept() -> None:
    from tokenizers import Tokenizer, decoders
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(WordLevel({"▁one": 0, "▁two": 1, "s": 2}, unk_token="s"))
    inner.decoder = decoders.Metaspace()  # as of SentencePiece: the first space of a text goes
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, clean_up_tokenization_spaces=False)
    assert pieces(tokenizer, [0, 2, 1, 1], [False, True, False, True]) == ["one", "s", " two", " two"]
