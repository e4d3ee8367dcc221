"""Preference learning through its own path: values, what they may not depend on, runs, and that it learns."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch
from torch import nn

from tests.algos.mortal import LETTERS, Table
from tests.algos.test_crashes import check_same_run
from tests.algos.toys import CharTablePolicy
from tetrathlon.agents.char_lm import char_lm
from tetrathlon.agents.decisions import Decisions, Evaluation, Last, Learn
from tetrathlon.agents.evaluation import evaluate
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.policy import Acted
from tetrathlon.agents.steps import collate_steps
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos import DPO, KTO, BradleyTerry, RunError, SimPO
from tetrathlon.algos.pairs import Pair, flat, paired
from tetrathlon.algos.preference_learning import ALGORITHMS, Options, Preferrer, mismatched
from tetrathlon.benchmarks.sums import CHANCE, near
from tetrathlon.envs.episode import Episode, Step, save_episodes

LOSSES = ("dpo", "hinge", "ipo", "kto", "simpo", "orpo")


@pytest.fixture(autouse=True, scope="module")
def environments() -> Iterator[None]:
    gym.register("Guess-v0", entry_point="tests.algos.mortal:Guess")
    yield
    del gym.registry["Guess-v0"]


class Told(TrainablePolicy):
    """Log-probabilities are what they are told to be, by what was seen and done: [S, A]."""

    def __init__(self, values: list[list[float]]) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.tensor(values))
        self.looks = 0

    def act(self, observations: Any, *args: Any, **kwargs: Any) -> Acted:
        raise NotImplementedError

    def collate(self, rows: Sequence[Sequence[Episode]], *, learn: Learn = "own", last: Last = "open") -> Decisions:
        return collate_steps(
            rows,
            lambda observations: {"seen": [int(each) for each in observations]},
            lambda actions, records: {"done": [int(each) for each in actions]},
            learn=learn,
            last=last,
        )

    def evaluate(self, decisions: Decisions) -> Evaluation:
        self.looks += 1
        logp = self.values[decisions.inputs["seen"], decisions.inputs["done"]]
        return Evaluation(torch.where(decisions.mask, logp, torch.nan), torch.zeros_like(logp))

    def snapshot(self) -> Told:
        return copy.deepcopy(self).requires_grad_(False)


def episode(steps: list[tuple[int, int]]) -> Episode:
    made = [Step(seen, done) for seen, done in steps]
    made[-1].terminated = True
    return Episode(steps=made, final_observation=0)


def learnt(policy: TrainablePolicy, pairs: list[Pair], change: Any = None, **options: Any) -> dict[str, float]:
    """Return the metrics of one step, before which the policy becomes ``change`` and its reference stays."""
    learner = Preferrer(policy, Options(**{"steps": 1, "lr": 0.0, "max_grad_norm": 1e9, **options}))
    rows = learner.rows(pairs)
    if change is not None:
        with torch.no_grad():
            policy.values.copy_(torch.tensor(change))  # type: ignore[operator]
    return learner.update(rows)


class TestValues:
    """Numbers of conformance.md, through rows, reference and step."""

    @staticmethod
    def of_ratio(each: float, length: int = 3, **options: Any) -> float:
        """Return the loss where each decision of the preferred is likelier by ``each``, of the rejected unlikelier."""
        policy = Told([[-1.0, -2.0]])
        pair = Pair(episode([(0, 0)] * length), episode([(0, 1)] * length))
        return learnt(policy, [pair], [[-1.0 + each, -2.0 - each]], **options)["loss"]

    def test_sums_of_log_ratios(self) -> None:
        assert self.of_ratio(1.0, loss="dpo") == pytest.approx(0.437488, abs=1e-6)
        assert self.of_ratio(1.0, loss="hinge") == pytest.approx(0.4, abs=1e-6)
        smoothed = 0.9 * 0.437488 + 0.1 * (0.437488 + 0.6)
        assert self.of_ratio(1.0, loss="dpo", label_smoothing=0.1) == pytest.approx(smoothed, abs=1e-6)

    def test_ipo_takes_means(self) -> None:
        """Sums would ask a long answer for less a decision (trl PR#1265, ms-swift PR#10167)."""
        assert self.of_ratio(3.0, length=1, loss="ipo") == pytest.approx(1.0, abs=1e-5)
        assert self.of_ratio(3.0, length=4, loss="ipo") == pytest.approx(1.0, abs=1e-5)

    def test_answers_of_different_lengths(self) -> None:
        """Two decisions of -1 against three of -1.5."""
        pair = Pair(episode([(0, 0)] * 2), episode([(0, 1)] * 3))
        found = learnt(Told([[-1.0, -1.5]]), [pair], loss="simpo", beta=2.0, margin=0.5)
        assert found["loss"] == pytest.approx(0.474077, abs=1e-6)
        assert found["logp_preferred"] == -2.0 and found["logp_rejected"] == -4.5 and found["margin"] == 1.0
        found = learnt(Told([[-1.0, -1.5]]), [pair], loss="orpo", beta=1.0)
        assert found["loss"] == pytest.approx(0.401135, abs=1e-6)
        found = learnt(Told([[-1.0, -1.5]]), [pair], loss="orpo", beta=0.1, imitation_coef=1.0)
        assert found["loss"] == pytest.approx(1.0 + 0.0401135, abs=1e-6) and found["imitation_loss"] == 1.0

    def test_verdicts_against_a_baseline(self) -> None:
        policy = Told([[-5.0] * 4] * 2)
        pairs = [Pair(episode([(0, 0)]), episode([(0, 1)])), Pair(episode([(1, 2)]), episode([(1, 3)]))]
        moved = [[-4.0, -6.0, -4.6, -5.0], [-4.4, -5.2, -4.0, -6.0]]  # own: +1 and -1; mismatched: 0.2 on the mean
        found = learnt(policy, pairs, moved, loss="kto", beta=1.0)
        assert found["baseline"] == pytest.approx(0.2, abs=1e-6)
        assert found["loss"] == pytest.approx((0.310026 + 0.231475) / 2, abs=1e-6)
        grad = policy.values.grad
        assert grad is not None and bool((grad[0, 2:] == 0).all()) and bool((grad[1, :2] == 0).all())
        weighted = learnt(Told([[-5.0] * 4] * 2), pairs, moved, loss="kto", beta=1.0, desirable_weight=2.0)
        assert weighted["loss"] == pytest.approx((2 * 0.310026 + 0.231475) / 2, abs=1e-6)
        low = [[-4.0, -6.0, -8.0, -8.0], [-8.0, -8.0, -4.0, -6.0]]
        found = learnt(Told([[-5.0] * 4] * 2), pairs, low, loss="kto", beta=1.0)
        assert found["baseline"] == 0.0 and found["loss"] == pytest.approx(0.268941, abs=1e-6)

    def test_mismatched_answers_are_those_of_another_start(self) -> None:
        pairs = [Pair(episode([(seen, 0)]), episode([(seen, seen)])) for seen in (1, 1, 2)]
        found = [(pair.preferred.steps[0], pair.rejected.steps[0]) for pair in mismatched(pairs)]
        assert [(one.observation, two.observation) for one, two in found] == [(1, 1), (1, 1), (2, 2)]
        assert [two.action for _, two in found] == [2, 2, 1]
        assert [pair.preferred.steps[0].action for pair in mismatched(pairs[:2])] == [0, 0]
        with pytest.raises(ValueError, match="takes episodes of one step; one has 2: take another loss"):
            mismatched([Pair(episode([(0, 0)] * 2), episode([(0, 1)]))])

    @pytest.mark.parametrize(("loss", "value"), [("dpo", math.log(2)), ("hinge", 1.0), ("ipo", 25.0), ("kto", 0.5)])
    def test_the_start_is_where_nothing_is_known(self, loss: Any, value: float) -> None:
        policy = CharTablePolicy("q0123456789.", end=".", seed=4)
        found = learnt(policy, spoken(), loss=loss)
        assert found["loss"] == torch.tensor(value).item() and found["margin"] == found["kl_ref"] == 0.0
        assert found["accuracy"] == 0.0  # equal is not ranked
        tiny = learnt(char_lm(characters="q0123456789.", size=16, layers=1), spoken(), loss=loss)
        assert tiny["loss"] == pytest.approx(value, rel=1e-6)


def spoken(count: int = 7) -> list[Pair]:
    """Pairs of texts of somebody else, of many lengths."""

    def said(text: str, seed: int) -> Episode:
        return Episode(steps=[Step("q", text, terminated=True)], final_observation="", seed=seed)

    return [Pair(said("1234567"[: 1 + i % 4], i), said("9" * (1 + i % 3), i)) for i in range(count)]


@pytest.mark.parametrize("loss", LOSSES)
def test_parts_add_up_to_the_whole(loss: Any) -> None:
    """Whatever is evaluated at once; the baseline of KTO and ORPO's imitation are of the whole too."""
    found = []
    for cost in (None, 1.0, 13.0, 40.0):
        policy = CharTablePolicy("q0123456789.", end=".", seed=4)
        options = Options(loss=loss, steps=1, lr=0.0, max_cost=cost, imitation_coef=0.3, max_grad_norm=1e9)
        learner = Preferrer(policy, options)
        rows = learner.rows(spoken())
        with torch.no_grad():  # away from the reference
            policy.table.add_(torch.randn(policy.table.shape, generator=torch.Generator().manual_seed(1)))
        metrics = learner.update(rows)
        assert policy.table.grad is not None
        found.append((metrics, policy.table.grad.clone()))
    for metrics, grad in found[1:]:
        assert metrics == pytest.approx(found[0][0], rel=1e-5, abs=1e-6)
        torch.testing.assert_close(grad, found[0][1], rtol=1e-4, atol=1e-6)
    assert found[0][1].abs().max() > 1e-3


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "kto"])  # whose baseline is of all
def test_every_pair_counts_alike(loss: Any) -> None:
    policy = CharTablePolicy("q0123456789.", end=".", seed=4)
    options: dict[str, Any] = {"loss": loss, "imitation_coef": 0.3}
    alone = [learnt(policy, [pair], **options) for pair in spoken()]
    found = learnt(policy, spoken(), **options)
    for name in ("loss", "accuracy", "margin", "logp_preferred", "logp_rejected", "imitation_loss"):
        assert found[name] == pytest.approx(sum(each[name] for each in alone) / len(alone), rel=1e-5), name


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_step_goes_towards_the_preferred(name: str) -> None:
    options = ALGORITHMS[name].Options(steps=1, lr=0.01)
    gaps = []
    for pairs in (spoken(), [Pair(pair.rejected, pair.preferred) for pair in spoken()]):
        policy = CharTablePolicy("q0123456789.", end=".", seed=4)
        learner = Preferrer(policy, options)
        before, after = (learner.update(learner.rows(pairs)) for _ in range(2))
        gaps.append(
            after["logp_preferred"] - after["logp_rejected"] - before["logp_preferred"] + before["logp_rejected"]
        )
        assert after["loss"] < before["loss"]
    assert min(gaps) > 0.01  # of either order: the preferred is what is learnt, not one of the answers


def test_the_reference_is_asked_once_and_stays() -> None:
    policy = Told([[-1.0, -2.0, -3.0]])
    learner = Preferrer(policy, Options(steps=5, batch_size=2, lr=0.1))
    assert isinstance(learner.reference, Told)
    pairs = [Pair(episode([(0, 0)]), episode([(0, 1)])), Pair(episode([(0, 0)] * 2), episode([(0, 2)]))]
    rows = learner.rows(pairs)
    for _ in range(3):
        learner.update(rows)
    assert learner.reference.looks == 1 and policy.looks == 15
    assert learner.reference.values.tolist() == [[-1.0, -2.0, -3.0]] and policy.values[0, 0] > -1.0
    for loss in ("simpo", "orpo"):
        assert Preferrer(policy, Options(loss=loss)).reference is None


def test_a_pair_is_never_cut() -> None:
    seen: list[list[int]] = []

    class Watched(Told):
        def evaluate(self, decisions: Decisions) -> Evaluation:
            if decisions.pair is not None and torch.is_grad_enabled():
                seen.append(decisions.pair.tolist())
                assert decisions.preference is not None
                assert decisions.preference.tolist() == [1, 0] * (len(decisions) // 2)
            return super().evaluate(decisions)

    pairs = [Pair(episode([(0, 0)] * (1 + i)), episode([(0, 1)])) for i in range(5)]
    learner = Preferrer(Watched([[-1.0, -2.0]]), Options(steps=3, batch_size=3, max_cost=4.0, lr=0.0))
    learner.update(learner.rows(pairs))
    dealt = [pair for part in seen for pair in part[::2]]
    assert all(part[::2] == part[1::2] for part in seen) and len(seen) > 3
    assert sorted(dealt[:5]) == [0, 1, 2, 3, 4] and len(dealt) == 9


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"loss": "ppo"}, "loss must be 'dpo', 'hinge', 'ipo', 'kto', 'simpo' or 'orpo', got 'ppo'"),
        ({"beta": 0.0}, "beta must be above 0, got 0.0"),
        ({"label_smoothing": 0.5}, r"label_smoothing must be in \[0, 0.5\), got 0.5"),
        ({"loss": "ipo", "label_smoothing": 0.1}, "label_smoothing=0.1 is of dpo and simpo, and loss='ipo' does not"),
        ({"margin": 0.5}, "margin=0.5 is of simpo, and loss='dpo' does not read it"),
        ({"desirable_weight": 2.0}, "desirable_weight=2.0 is of kto"),
        ({"imitation_coef": -1.0}, "imitation_coef must be at least 0, got -1.0"),
        ({"group_size": 1}, "a pair is two episodes of one start; group_size must be at least 2, got 1"),
        ({"horizon": 5, "group_size": 1}, "pairs are whole episodes of one start; horizon must be 0, got 5"),
        ({"most_pairs": 0}, "most_pairs must be at least 1, got 0"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"groups": 0}, "groups must be at least 1, got 0"),
    ],
)
def test_wrong_options(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Options(**options)


def test_presets_are_their_papers() -> None:
    found = {name: algorithm.Options() for name, algorithm in ALGORITHMS.items()}
    assert {name: options.loss for name, options in found.items()} == {name: name for name in ALGORITHMS}
    assert [found[name].beta for name in ("dpo", "ipo", "kto", "simpo", "orpo")] == [0.1, 0.1, 0.1, 2.0, 0.1]
    assert found["simpo"].margin == 0.5 and found["orpo"].imitation_coef == 1.0
    assert {options.imitation_coef for name, options in found.items() if name != "orpo"} == {0.0}


FEW: dict[str, Any] = {"groups": 4, "group_size": 4, "steps": 3, "batch_size": 3, "lr": 0.05}


class Died(Exception):
    """An end in the middle of a run."""


def table() -> Table:
    return Table(len(LETTERS), len(LETTERS), seed=3)


def tiny() -> LanguagePolicy:
    policy = char_lm(characters=LETTERS, size=16, layers=1, heads=2, context=16, max_tokens=2)
    policy.default_rl_lr = 1e-3
    return policy


class TestRuns:
    """A run on disk."""

    @pytest.mark.parametrize("stop", [0, 3])
    @pytest.mark.parametrize(
        ("algorithm", "make", "options"),
        [
            (DPO, table, {}),
            (DPO, table, {"online": True}),
            (KTO, tiny, {"groups": 32}),
            (SimPO, table, {"most_pairs": 3}),
            (BradleyTerry, tiny, {"groups": 32}),
        ],
        ids=["dpo", "online", "kto", "simpo", "bradleyterry"],
    )
    def test_a_run_that_died_goes_on_to_the_same_weights(
        self, tmp_path: Path, stop: int, algorithm: Any, make: Any, options: dict[str, Any]
    ) -> None:
        def die(number: int, metrics: dict[str, float]) -> None:
            if number == stop:
                raise Died

        def trainer(folder: str, **others: Any) -> Any:
            kwargs = {"text": make is tiny}
            kept = {"run": tmp_path / folder, "checkpoint_every": 2, "kwargs": kwargs, **others}
            return algorithm(make(), "Guess-v0", **kept, **{**FEW, **options})

        whole = trainer("whole").learn(5)
        assert all(metrics["pairs"] > 0 for metrics in whole)
        with pytest.raises(Died):
            trainer("run", callbacks=[die]).learn(5)
        trainer("run", resume=True).learn(5)
        check_same_run(tmp_path / "run", tmp_path / "whole", 5)
        shards = [path.name for path in (tmp_path / "run").glob("dataset/*")]
        assert shards == ([] if options.get("online") else ["shard-00000002"])

    def test_pairs_that_are_given(self, tmp_path: Path) -> None:
        episodes = [
            Episode(steps=[Step(shown, done, float(shown == done), terminated=True)], final_observation=0, seed=shown)
            for shown in range(4)
            for done in range(4)
        ]
        save_episodes(tmp_path / "recorded", episodes)
        found = []
        for given in (episodes, tmp_path / "recorded", paired(episodes, most=2, seed=(5, 0)).pairs):
            policy = table()
            trainer = DPO(policy, "Guess-v0", pairs=given, most_pairs=2, seed=5, **FEW)
            history = trainer.learn(4)
            assert [metrics["pairs"] for metrics in history] == [8.0] * 4 and "success" not in history[0]
            found.append(policy.logits.detach())
        assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
        assert bool((found[0].argmax(dim=1) == torch.arange(4)).all())

    def test_a_run_goes_on_with_its_own_pairs_alone(self, tmp_path: Path) -> None:
        def trainer(pairs: list[Pair], resume: bool) -> DPO:
            kept: dict[str, Any] = {"run": tmp_path, "resume": resume}
            return DPO(CharTablePolicy("q0123456789.", end="."), "Guess-v0", pairs=pairs, **kept, **FEW)

        trainer(spoken(), False).learn(1)
        assert len(trainer(spoken(), True).learn(3)) == 2
        with pytest.raises(RunError, match="pairs: "):
            trainer(spoken(3), True)

    def test_what_cannot_be_done_is_said(self) -> None:
        class Blunt(Table):
            has_density = False

        with pytest.raises(ValueError, match="online plays for each update"):
            DPO(table(), "Guess-v0", pairs=spoken(), online=True)
        tested = [replace(each, kwargs={"split": "test"}) for each in flat(spoken(1))]
        with pytest.raises(ValueError, match="pairs are of split 'test', and what learns is of split 'train'"):
            DPO(table(), "Guess-v0", pairs=[Pair(*tested)])
        with pytest.raises(TypeError, match="DPO needs log-probabilities, and this Blunt decides without a density"):
            DPO(Blunt(4, 4), "Guess-v0")
        with pytest.raises(TypeError, match="Told has no module 'critic' that gives values"):
            BradleyTerry(Told([[0.0]]), "Guess-v0")

    def test_ties_teach_nothing_and_end_a_run_that_finds_nothing_else(self) -> None:
        policy = table()
        with torch.no_grad():
            policy.logits[:, 0] = 50.0  # says the same, whatever is shown
        trainer = DPO(policy, "Guess-v0", **FEW)
        (metrics,) = trainer.learn(1)
        assert metrics["pairs"] == metrics["steps"] == 0.0 and metrics["tied_groups"] == 1.0
        with pytest.raises(ValueError, match=r"no pair was found in 5 updates in a row; in the last, 4 of 4 starts"):
            trainer.learn(9)

    def test_a_scorer_prefers_too(self) -> None:
        def second(episodes: Any) -> list[float | None]:
            return [
                None if int(each.steps[0].action) == 3 else 9.0 * int(each.steps[0].action == 1) for each in episodes
            ]

        policy = table()
        trainer = DPO(policy, "Guess-v0", scorers={"second": second}, online=True, **{**FEW, "groups": 16})
        history = trainer.learn(12)
        assert history[0]["unscorable"] > 0 and history[0]["reward_terms/second"] > 0
        assert bool((policy.logits.argmax(dim=1) == 1).all())


LEARNS: dict[str, Any] = {"groups": 384, "steps": 30, "batch_size": 64, "lr": 1e-3, "seed": 0}


def right(policy: LanguagePolicy) -> float:
    """Return the share of right answers to questions that were never trained on, as sampled."""
    found = evaluate(policy, "Sums-v0", episodes=400, slots=200, seed=0, greedy=False)
    assert found.split == "test"
    return float(found.success["mean"])


class TestSums:
    """A language model that was shown answers which are off by up to 2, and learns from pairs of its own."""

    def test_the_start_is_no_better_than_chance(self) -> None:
        assert right(near()) == pytest.approx(CHANCE, abs=0.06)

    @pytest.mark.parametrize("name", ALGORITHMS)
    def test_preferred_answers_become_likely(self, name: str) -> None:
        policy = near()
        history = ALGORITHMS[name](policy, "Sums-v0", **LEARNS).learn(3)
        assert right(policy) > CHANCE + 0.4
        assert history[-1]["accuracy"] > 0.9 and history[-1]["margin"] > 0 > history[-1]["logp_rejected"] + 5

    @pytest.mark.parametrize("name", ALGORITHMS)
    def test_turned_around_they_become_rare(self, name: str) -> None:
        policy = near()
        ALGORITHMS[name](policy, "Sums-v0", kwargs={"pay": -1.0}, **{**LEARNS, "groups": 192}).learn(2)
        assert right(policy) < 0.1

    def test_online_each_update_learns_from_its_own(self) -> None:
        policy = near()
        online = {**LEARNS, "groups": 128, "steps": 15, "online": True}
        history = DPO(policy, "Sums-v0", **online).learn(4)
        assert history[-1]["success"] > history[0]["success"] + 0.25 and right(policy) > CHANCE + 0.25
