"""The small vision-language model: what it reads, how it learns, and under which names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from tests.agents.seeing import Cells, pictures, played, seer
from tests.agents.toys import Oracle
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.naming import PolicyError, make_policy
from tetrathlon.agents.policy import ExpertPolicy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.agents.tiny_vlm import fitting_stride, tiny_vlm
from tetrathlon.algos.cloned import ClonedPolicy, cloned_policy
from tetrathlon.algos.dagger import DAgger
from tetrathlon.algos.imitation import BC, clone
from tetrathlon.algos.on_policy import GRPO, PPO
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.slots import Slots

WORDS = Cells.words


@pytest.fixture(autouse=True)
def cells() -> Iterator[None]:
    gym.register("Cells-v0", entry_point="tests.agents.seeing:Cells")
    yield
    del gym.registry["Cells-v0"]


def small(**options: Any) -> LanguagePolicy:
    return tiny_vlm(**{"words": WORDS, "stride": 8, "size": 64, "layers": 2, "max_tokens": 2, "seed": 0, **options})


def demonstrations(count: int, seed: int) -> list[Episode]:
    slots = Slots(Cells, 16)
    starts = [Start(seed=seed + i) for i in range(count)]
    return Rollout(ExpertPolicy(Cells().action_space), slots, starts, ask=True).episodes()


def success(policy: Any, *, blank: bool = False, count: int = 128) -> float:
    shown = demonstrations(count, 10_000)
    images = np.stack([episode.steps[0].observation["image"] for episode in shown])
    images = np.zeros_like(images) if blank else images
    acted = policy.act({"image": images, "text": ("Which cell?",) * count}, greedy=True)
    return float(np.mean([said == e.steps[0].action for said, e in zip(acted.actions, shown, strict=True)]))


def test_it_learns_to_see_and_guesses_when_it_cannot() -> None:
    torch.manual_seed(0)
    made = small()
    shown = demonstrations(512, 0)
    began = time.process_time()
    clone(made, shown, steps=100)
    assert time.process_time() - began < 60  # 5 seconds of an idle core
    assert success(made) > 0.9
    assert success(made, blank=True) < 0.3  # chance is an eighth


def test_pictures_become_tokens_by_the_stride() -> None:
    for stride, tokens in ((16, 16), (8, 64), (32, 4)):
        made = tiny_vlm(stride=stride, channels=8, size=32, layers=1, heads=2)
        assert made.sight is not None and len(made.sight.see(pictures(1, size=(64, 64))[0]).ids) == tokens
        assert len(made.sight.see(pictures(1, size=(64, 128))[0]).ids) == 2 * tokens
        with pytest.raises(ValueError, match=rf"multiples of the stride {stride}, got 65 x 64"):
            made.sight.see(pictures(1, size=(65, 64))[0])
    assert [fitting_stride(*size) for size in ((64, 64), (32, 32), (128, 64), (48, 48), (10, 200), (16, 16))] == [
        16,
        8,
        16,
        8,
        2,
        4,
    ]
    with pytest.raises(ValueError, match="got 65 x 64"):
        fitting_stride(65, 64)


def test_it_is_as_small_as_it_says() -> None:
    made = tiny_vlm()
    assert 5e5 < sum(weight.numel() for weight in made.parameters()) < 1e6
    assert made.default_lr == 1e-3


def test_each_picture_is_encoded_once_in_all_its_sizes() -> None:
    made = seer("tiny")
    small_one, large = pictures(1)[0], pictures(1, size=(64, 32))[0]
    rows = [
        played(made, [(image[None], [text], [True])])[0]
        for image, text in ((small_one, "what"), (large, "cell"), (small_one, "b"), (small_one.copy(), "a"))
    ]
    batch = made.collate([[episode] for episode in rows])
    assert len(batch.inputs["pictures"].distinct) == 2
    seen: list[tuple[int, ...]] = []
    made.model.model.encoder.register_forward_hook(lambda module, given, out: seen.append(tuple(given[0].shape)))
    evaluated = made.evaluate(batch)
    assert sorted(seen[:2]) == [(1, 32, 32, 3), (1, 64, 32, 3)]
    assert torch.allclose(evaluated.logp[batch.mask], batch.logp[batch.mask], atol=1e-4)


def test_weights_and_samples_come_from_the_seed() -> None:
    state = torch.random.get_rng_state()
    one, two, other = small(), small(), small(seed=1)
    assert torch.equal(state, torch.random.get_rng_state())
    observation = {"image": pictures(4), "text": ("Which cell?",) * 4}
    assert one.act(observation).actions == two.act(observation).actions
    assert one.act(observation).actions == two.act(observation).actions
    assert not torch.equal(*(next(made.parameters()) for made in (one, other)))


def test_it_speaks_the_words_and_no_picture() -> None:
    made = small()
    assert made.tokenizer.encode("Which cell?12") == [
        *made.tokenizer.encode("Which cell?"),
        *made.tokenizer.encode("12"),
    ]
    assert len(made.tokenizer.encode("Which cell?")) == 1 and len(made.tokenizer.encode("12")) == 2
    assert made.sight is not None and made.sight.token_id not in made.chat.text("<image>")
    assert made.tokenizer.decode(made.chat.text("<image>")) == "<image>"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"stride": 12}, "stride must be 2, 4, 8, 16 or 32, got 12"),
        ({"channels": 12}, "channels must be a multiple of 8, got 12"),
        ({"size": 30, "heads": 4}, "heads must divide size 30, got 4"),
        ({"words": [""]}, "words must not be empty"),
        ({"characters": "aa"}, "characters must differ"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        tiny_vlm(**options)


def test_names() -> None:
    env = gym.make("Cells-v0")
    made: Any = make_policy("tiny-vlm", env, seed=3, temperature=0.5, arguments={"size": 32, "layers": 1})
    assert isinstance(made, LanguagePolicy) and made.temperature == 0.5
    assert made.sight is not None and len(made.sight.see(pictures(1)[0]).ids) == 16
    assert len(made.tokenizer.encode("Which cell?")) == 1
    assert make_policy("tiny-vlm", env, arguments={"stride": 16}).sight.model.config.stride == 16  # type: ignore[attr-defined]
    with pytest.raises(PolicyError, match="policy 'tiny-vlm': stride must be"):
        make_policy("tiny-vlm", env, arguments={"stride": 3})
    for name in ("smollm2", "char"):
        with pytest.raises(PolicyError, match=f"policy '{name}' reads text and sees no pictures, which Cells-v0 shows"):
            make_policy(name, env)
    with pytest.raises(PolicyError, match="policy 'tiny-vlm' looks at pictures; Oracle shows none"):
        make_policy("tiny-vlm", Oracle())


def test_a_checkpoint_of_text_alone_is_refused_where_pictures_are_shown(tmp_path: Any) -> None:
    from tests.agents.talkers import net
    from tests.agents.test_language import tokenizer

    net("rotary").save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    assert make_policy(f"hf:{tmp_path}", Oracle()) is not None
    with pytest.raises(PolicyError, match="sees no pictures, which Cells-v0 shows"):
        make_policy(f"hf:{tmp_path}", gym.make("Cells-v0"))


def test_clones_by_name() -> None:
    made = cloned_policy("64", gym.make("Cells-v0"), seed=0)
    assert isinstance(made, ClonedPolicy)
    assert isinstance(made.policy, LanguagePolicy) and made.policy.sight is not None


@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        (GRPO, {"groups": 4, "group_size": 4}),
        (PPO, {"groups": 8, "epochs": 2, "minibatches": 4}),
        (DAgger, {"episodes": 8, "steps": 3, "batch_size": 8}),
        (BC, {"episodes": 8, "steps": 3, "batch_size": 8}),
    ],
)
def test_algorithms_train_it_and_know_nothing_of_pictures(algorithm: Any, options: dict[str, Any], turns: int) -> None:
    made = small(critic="head" if algorithm is PPO else None)
    eyes = [weight.detach().clone() for weight in made.model.model.encoder.parameters()]
    trainer = algorithm(made, "Cells-v0", kwargs={"turns": turns, "paid": 0.1}, lr=1e-3, seed=0, **options)
    try:
        history = trainer.learn(updates=2)
    finally:
        trainer.close()
    assert made._blindness is not None and made._blindness.is_done
    moved = [not torch.equal(a, b) for a, b in zip(eyes, made.model.model.encoder.parameters(), strict=True)]
    assert all(moved)
    for metrics in history or ():
        if "sampler_drift" in metrics:
            assert metrics["sampler_drift"] < 1e-4


def test_an_update_does_not_depend_on_how_it_is_cut() -> None:
    made = small()
    batch = made.collate([[e] for e in demonstrations(12, 0)], learn="action")
    whole = made.evaluate(batch).logp
    found = []
    for rows in ([range(12)], [range(0, 5), range(5, 6), range(6, 12)]):
        made.zero_grad()
        for part in rows:
            piece = batch.select(part)
            made.evaluate(piece).logp[piece.mask].sum().backward()
        found.append([weight.grad.clone() for weight in made.parameters()])  # type: ignore[union-attr]
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-3, rtol=1e-3)
    moved = replace(batch).to("cpu")
    assert torch.equal(made.evaluate(moved).logp[batch.mask], whole[batch.mask])
