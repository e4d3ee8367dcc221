"""Imitators: what they are told, how often they may ask, and what comes of it."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.algos.mortal import Host
from tests.algos.test_border import Notebook
from tests.algos.test_crashes import check_same_run
from tests.algos.toys import CharTablePolicy, TablePolicy
from tetrathlon.agents.char_lm import char_lm
from tetrathlon.agents.control import ControlPolicy
from tetrathlon.agents.decisions import Decisions, Evaluation
from tetrathlon.agents.policy import FunctionPolicy
from tetrathlon.algos import BC, DAgger, RunError, clone
from tetrathlon.algos.cloner import Cloner, Options, lessons
from tetrathlon.algos.learner import NotFinite
from tetrathlon.envs.episode import Episode, Step, load_episodes, save_episodes

PLACES = 5


class Line(gym.Env[Any, Any]):
    """Five places in a circle; action 1 goes on, 0 stays. The expert goes on at even places and stays at odd ones.

    It ends after ``length`` steps, and counts what its expert is asked in ``asked``.
    """

    observation_space = spaces.Discrete(PLACES)
    action_space = spaces.Discrete(2)
    asked: ClassVar[list[int]] = []
    """How many actions each call wanted."""

    def __init__(self, length: int = 6, dies: bool = False) -> None:
        self.length, self.dies = length, dies

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at, self.time = int(self.np_random.integers(PLACES)), 0
        return np.int64(self.at), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        right = int(action) == self.right(self.at)
        self.at, self.time = (self.at + int(action)) % PLACES, self.time + 1
        return np.int64(self.at), float(right), self.time == self.length, False, {"is_success": right}

    @staticmethod
    def right(at: int) -> int:
        return 1 - at % 2

    def expert_action(self, k: int = 1) -> Any:
        Line.asked.append(k)
        if self.dies:
            raise RuntimeError("gone")
        if k == 1:
            return np.int64(self.right(self.at))
        at, chunk = self.at, []
        for _ in range(k):
            chunk.append(self.right(at))
            at = (at + chunk[-1]) % PLACES
        return np.array(chunk)


class Table(TablePolicy):
    """A table policy whose decisions may be learnt one by one, and whose stream of actions is part of its state."""

    divisible = True

    def get_extra_state(self) -> dict[str, Any]:
        return {"generator": self.generator.get_state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.generator.set_state(state["generator"])


class Chunks(Table):
    """It wants three labels a state, and plays step by step."""

    chunk = 3


@pytest.fixture(autouse=True)
def environments() -> Iterator[None]:
    Line.asked = []
    gym.register("Line-v0", entry_point="tests.algos.test_imitation:Line")
    gym.register("Notebook-v0", entry_point="tests.algos.test_border:Notebook")
    yield
    del gym.registry["Line-v0"], gym.registry["Notebook-v0"]


def weights(policy: torch.nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in policy.parameters()])


def walk(length: int = 4, start: int = 0) -> Episode:
    """An episode of the expert."""
    steps, at = [], start
    for _ in range(length):
        steps.append(Step(np.int64(at), np.int64(Line.right(at)), reward=1.0))
        at = (at + Line.right(at)) % PLACES
    steps[-1].terminated = True
    return Episode(steps=steps, final_observation=np.int64(at))


SMALL: dict[str, Any] = {"episodes": 4, "steps": 5, "lr": 0.1}


class TestLessons:
    """What episodes become."""

    def test_a_row_is_a_decision_where_that_is_all_that_counts(self) -> None:
        policy = Table(PLACES, 2)
        with torch.no_grad():
            policy.logits.copy_(torch.arange(10.0).reshape(PLACES, 2).sin())
        episodes = [walk(3), walk(5, 2)]
        episodes[0].group = 7
        rows = lessons(policy, episodes, "action")
        assert rows.mask.shape == (8, 1) and bool(rows.mask.all())
        assert rows.inputs["state"].flatten().tolist() == [int(s.observation) for e in episodes for s in e.steps]
        whole = policy.collate([[episode] for episode in episodes], learn="action", last="never")
        alike = [policy.evaluate(batch).logp[batch.mask].sum().item() for batch in (rows, whole)]
        assert alike[0] == pytest.approx(alike[1], abs=1e-6)

    def test_only_labels_are_rows(self) -> None:
        episode = walk(4)
        episode.steps[1].label, episode.steps[3].label = np.int64(0), np.int64(1)
        rows = lessons(Table(PLACES, 2), [episode], "label")
        assert rows.inputs["action"].flatten().tolist() == [0, 1]
        assert rows.inputs["state"].flatten().tolist() == [int(episode.steps[i].observation) for i in (1, 3)]

    def test_text_keeps_what_came_before(self) -> None:
        policy = CharTablePolicy(TestText.alphabet, end=".", longest=6)
        steps = [Step("a?", "b", label="c"), Step("77", "c", label="b")]
        rows = lessons(policy, [Episode(steps=steps)], "label")
        assert len(rows) == 2 and rows.mask.sum(dim=1).tolist() == [2, 2]
        read = ["".join(policy.alphabet[t] for t in ids) for ids in rows.inputs["tokens"]]
        assert read[1] == "a?b.77b."

    def test_a_memory_keeps_episodes_whole(self) -> None:
        env = gym.make("CartPole-v1")
        policy = ControlPolicy(env.observation_space, env.action_space, memory=4)
        steps = [Step(env.observation_space.sample(), np.int64(1)) for _ in range(3)]
        assert lessons(policy, [Episode(steps=steps)] * 2, "action").mask.tolist() == [[True] * 3] * 2

    def test_nothing_to_learn_is_said(self) -> None:
        with pytest.raises(ValueError, match="nothing to learn in these 1 episodes with learn='label'"):
            lessons(Table(PLACES, 2), [walk()], "label")


class TestCloner:
    """Optimizer steps."""

    @pytest.mark.parametrize("max_cost", [1.0, 3.0])
    def test_parts_add_up_to_the_whole(self, max_cost: float) -> None:
        found = []
        for cost in (None, max_cost):
            policy = TablePolicy(PLACES, 2)
            batch = lessons(policy, [walk(3), walk(2, 1), walk(4, 3)], "action")
            metrics = Cloner(policy, Options(steps=1, lr=0.1, max_cost=cost, max_grad_norm=0.1)).update(batch)
            found.append((metrics["bc_loss"], metrics["entropy"], metrics["grad_norm"]))
            assert metrics["bc_loss"] == pytest.approx(np.log(2)) and metrics["entropy"] == pytest.approx(np.log(2))
        assert found[0] == pytest.approx(found[1])

    def test_a_pass_sees_everything_once(self) -> None:
        seen: list[int] = []

        class Watched(Table):
            """Notes what it evaluates."""

            def evaluate(self, decisions: Decisions) -> Evaluation:
                seen.extend(decisions.inputs["state"].flatten().tolist())
                return super().evaluate(decisions)

        policy = Watched(PLACES, 2)
        episodes = [walk(1, place) for place in range(PLACES)]
        Cloner(policy, Options(steps=5, batch_size=2)).update(lessons(policy, episodes, "action"))
        assert sorted(seen[:5]) == sorted(seen[5:]) == list(range(PLACES)) and seen[:5] != seen[5:]

    def test_a_loss_that_is_not_finite_stops_before_the_step(self, tmp_path: Path) -> None:
        policy = Table(PLACES, 2)
        with torch.no_grad():
            policy.logits[0] = torch.nan
        before = weights(policy)
        with pytest.raises(NotFinite, match=r"the loss of round 0 is nan; .*failed-update-0.pt"):
            BC(policy, "Line-v0", demonstrations=[walk()], run=tmp_path, **SMALL).learn(1)
        assert torch.equal(weights(policy), before) or bool(before.isnan().any())
        assert (tmp_path / "failed-update-0.pt").is_file()

    @pytest.mark.parametrize(
        ("option", "said"),
        [
            ({"steps": 0}, "steps must be at least 1, got 0"),
            ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
            ({"lr": -1.0}, "lr must be at least 0, got -1.0"),
            ({"max_cost": 0.0}, "max_cost must be above 0, got 0.0"),
            ({"decay": "steep"}, "decay must be 'constant', 'linear' or 'cosine', got 'steep'"),
        ],
    )
    def test_wrong_options(self, option: dict[str, Any], said: str) -> None:
        with pytest.raises(ValueError, match=said):
            Options(**option)


class TestBC:
    """Demonstrations."""

    def test_it_is_clone_with_a_run(self) -> None:
        episodes = [walk(4, place) for place in range(PLACES)]
        one, other = Table(PLACES, 2), Table(PLACES, 2)
        clone(one, episodes, steps=7, rows=8, lr=0.1, seed=3)
        trainer = BC(other, "Line-v0", demonstrations=episodes, steps=7, batch_size=8, lr=0.1, seed=3)
        (metrics,) = trainer.learn(1)
        assert torch.equal(weights(one), weights(other))
        assert metrics["dataset"] == 20.0 and metrics["steps"] == 7.0 and not Line.asked

    def test_without_demonstrations_the_expert_plays_once(self) -> None:
        policy = Table(PLACES, 2)
        trainer = BC(policy, "Line-v0", **{**SMALL, "episodes": 10, "steps": 40})
        history = trainer.learn(3)
        assert len(Line.asked) == 60 and history[0]["queries"] == history[0]["interventions"] == 60.0
        assert history[0]["success"] == 1.0 and "success" not in history[1]
        assert [metrics["dataset"] for metrics in history] == [60.0] * 3
        assert history[2]["bc_loss"] < 0.1 < history[0]["bc_loss"]
        visited = {int(step.observation) for episode in trainer.dataset.episodes for step in episode.steps}
        assert all(policy.logits[place].argmax() == Line.right(place) for place in visited)

    def test_a_folder_of_episodes_is_the_same_as_they_are(self, tmp_path: Path) -> None:
        episodes = [walk(4, place) for place in range(PLACES)]
        save_episodes(tmp_path / "demos", episodes)
        found = []
        for given in (episodes, tmp_path / "demos", str(tmp_path / "demos")):
            policy = Table(PLACES, 2)
            BC(policy, "Line-v0", demonstrations=given, **SMALL).learn(2)
            found.append(weights(policy))
        assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])

    def test_a_run_goes_on_with_its_own_demonstrations_alone(self, tmp_path: Path) -> None:
        def trainer(folder: str, demonstrations: list[Episode], resume: bool = False) -> BC:
            run = {"run": tmp_path / folder, "resume": resume, "checkpoint_every": 1}
            return BC(Table(PLACES, 2), "Line-v0", demonstrations=demonstrations, **run, **SMALL)

        trainer("run", [walk()]).learn(2)
        trainer("whole", [walk()]).learn(4)
        again = trainer("run", [walk()], resume=True)
        assert len(again.learn(4)) == 2
        check_same_run(tmp_path / "run", tmp_path / "whole", 4)
        assert len(load_episodes(tmp_path / "run")) == 1
        with pytest.raises(RunError, match="demonstrations: "):
            trainer("run", [walk(5)], resume=True)

    def test_empty_demonstrations_are_refused(self) -> None:
        with pytest.raises(ValueError, match="there is no step in these demonstrations"):
            BC(Table(PLACES, 2), "Line-v0", demonstrations=[], **SMALL)
        with pytest.raises(ValueError, match="demonstrations or from an expert that plays; give one"):
            BC(Table(PLACES, 2), "Line-v0", demonstrations=[walk()], expert=np.asarray, **SMALL)

    def test_demonstrations_of_another_environment_are_refused(self) -> None:
        other = replace(walk(), env="CartPole-v1")
        for trainer in (BC, DAgger):
            with pytest.raises(ValueError, match="must be of Line-v0, and episode 1 is of CartPole-v1"):
                trainer(Table(PLACES, 2), "Line-v0", demonstrations=[walk(), other], **SMALL)
            for env in ("", "Line-v0", "tests:Line-v0"):
                trainer(Table(PLACES, 2), "Line-v0", demonstrations=[replace(walk(), env=env)], **SMALL)

    def test_an_environment_without_an_expert_needs_one(self) -> None:
        env = gym.make("CartPole-v1")
        policy = ControlPolicy(env.observation_space, env.action_space)
        with pytest.raises(TypeError, match="CartPole-v1 has no expert_action; give an expert"):
            BC(policy, "CartPole-v1")


def dagger(policy: Any = None, **options: Any) -> DAgger:
    return DAgger(Table(PLACES, 2) if policy is None else policy, "Line-v0", **{**SMALL, **options})


class TestAsking:
    """When the expert is asked, and what it costs."""

    def test_the_data_set_is_all_labels_once(self) -> None:
        """imitation#402 saved them twice; #643 gave other ones with the same seed."""
        digests = []
        for seed in (0, 0, 1):
            Line.asked = []
            trainer = dagger(seed=seed)
            history = trainer.learn(3)
            assert [metrics["dataset"] for metrics in history] == [24.0, 48.0, 72.0]
            assert history[-1]["queries"] == sum(metrics["labels"] for metrics in history) == len(Line.asked) == 72
            digests.append([metrics["dataset_digest"] for metrics in history])
            assert digests[-1][-1] == int(trainer.dataset.digest[:12], 16)
        assert digests[0] == digests[1] and not {*digests[0]} & {*digests[2]}

    def test_the_label_is_the_experts_where_the_learner_acted(self) -> None:
        policy = Table(PLACES, 2)
        with torch.no_grad():
            policy.logits[:, 0] = 50.0  # stays for ever
        trainer = dagger(policy, beta=0.0, lr=0.0)
        (metrics,) = trainer.learn(1)
        steps = [step for episode in trainer.dataset.episodes for step in episode.steps]
        assert {int(step.action) for step in steps} == {0}
        assert [int(step.label) for step in steps] == [Line.right(int(step.observation)) for step in steps]
        odd = sum(int(step.observation) % 2 for step in steps) / len(steps)
        assert metrics["agreement"] == pytest.approx(odd) and metrics["interventions"] == 0.0
        assert metrics["own_reward"] == metrics["episode_reward"] == pytest.approx(6 * odd)

    def test_beta_falls_as_asked(self) -> None:
        def betas(**options: Any) -> list[float]:
            made = DAgger.Options(**options)
            return [made.beta_at(update) for update in range(6)]

        assert betas() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        assert betas(beta_updates=4) == [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
        assert betas(beta=0.8, beta_decay=0.5) == pytest.approx([0.8, 0.4, 0.2, 0.1, 0.05, 0.025])
        assert [metrics["beta"] for metrics in dagger(beta_updates=2).learn(3)] == [1.0, 0.5, 0.0]

    def test_without_a_budget_nobody_is_asked(self) -> None:
        trainer = dagger(beta=0.0, queries=0)
        before = weights(trainer.policy)
        (metrics,) = trainer.learn(1)
        assert not Line.asked and metrics["queries"] == metrics["dataset"] == metrics["steps"] == 0.0
        assert torch.equal(weights(trainer.policy), before)

    @pytest.mark.parametrize("query", ["always", "every"])
    @pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
    def test_a_budget_is_spent_and_never_exceeded(self, query: str, beta: float) -> None:
        trainer = dagger(query=query, every=2, beta=beta, beta_decay=1.0, queries=31)
        history = trainer.learn(4)
        assert len(Line.asked) == 31 and history[-1]["queries"] == history[-1]["dataset"] == 31.0
        assert history[-1]["interventions"] == 0.0 and history[-1]["episodes"] == 4.0

    def test_one_step_in_so_many_is_asked_for(self) -> None:
        trainer = dagger(query="every", every=3, beta=0.0, kwargs={"length": 9})
        history = trainer.learn(2)
        assert [metrics["labels"] for metrics in history] == [12.0, 12.0]
        assert len({len(episode) for episode in trainer.dataset.episodes}) == 1
        turns = [step.observation for episode in trainer.dataset.episodes for step in episode.steps]
        assert len(turns) == 24

    def test_it_is_asked_where_a_stand_in_disagrees(self) -> None:
        looked = []

        def proxy(observations: Any) -> Any:
            looked.append(len(observations))
            return np.where(observations == 3, 1, 0)

        policy = Table(PLACES, 2)
        with torch.no_grad():
            policy.logits[:, 0] = 1.0  # would rather stay, and goes on now and then
        trainer = dagger(policy, query="disagree", proxy=proxy, beta=0.0, lr=0.0, kwargs={"length": 30})
        trainer.learn(1)
        steps = [step for episode in trainer.dataset.episodes for step in episode.steps]
        assert {int(step.observation) for step in steps} == {3} and len(Line.asked) == len(steps) > 5
        assert sum(looked) == 4 * 30

    def test_actions_that_are_no_choice_agree_within_a_tolerance(self) -> None:
        teacher = dagger(tolerance=0.1).teacher
        assert teacher.agrees(np.array([0.5, 0.0]), np.array([0.59, 0.09]))
        assert not teacher.agrees(np.array([0.5, 0.0]), np.array([0.59, 0.11]))
        assert teacher.agrees("yes", "yes") and not teacher.agrees("yes", "no")

    def test_who_acts_is_drawn_by_step_or_by_episode(self) -> None:
        shares = {}
        for mix in ("step", "episode"):
            policy = Table(PLACES, 2)
            with torch.no_grad():
                policy.logits.copy_(torch.tensor([[9.0, -9.0], [-9.0, 9.0]] * 2 + [[9.0, -9.0]]))  # always wrong
            trainer = dagger(policy, mix=mix, beta=0.3, lr=0.0, episodes=60, kwargs={"length": 10})
            (metrics,) = trainer.learn(1)
            right = [
                np.mean([step.action == step.label for step in episode.steps]) for episode in trainer.dataset.episodes
            ]
            assert metrics["interventions"] == pytest.approx(sum(right) * 10)
            assert metrics["agreement"] == 0.0  # of the learner's own steps
            assert metrics.get("own_reward", 0.0) == 0.0 < metrics["episode_reward"]
            shares[mix] = right
        assert set(shares["episode"]) == {0.0, 1.0} and np.mean(shares["episode"]) == pytest.approx(0.3, abs=0.15)
        assert np.mean(shares["step"]) == pytest.approx(0.3, abs=0.06) and max(shares["step"]) < 1.0

    def test_any_callable_or_policy_is_an_expert(self) -> None:
        def against(observations: Any) -> Any:
            return np.asarray(observations) % 2

        space = Line.observation_space, Line.action_space
        found = []
        for expert in (against, FunctionPolicy(lambda place: int(place) % 2, *space)):
            trainer = dagger(expert=expert)
            trainer.learn(1)
            steps = [step for episode in trainer.dataset.episodes for step in episode.steps]
            assert all(int(step.label) == int(step.action) == int(step.observation) % 2 for step in steps)
            found.append(trainer.dataset.digest)
        assert not Line.asked and found[0] == found[1]

    def test_an_expert_that_raises_loses_the_episode_and_is_not_counted(self) -> None:
        history = dagger(beta=0.0, kwargs={"dies": True}).learn(1)
        assert history[0]["queries"] == history[0]["dataset"] == 0.0 and history[0]["crashes"] == 4.0

    def test_what_is_not_finished_is_kept(self) -> None:
        """imitation keeps whole episodes alone: of 100 steps in an environment of 500 it would keep none."""
        trainer = dagger(episodes=1, horizon=100, beta=0.0, kwargs={"length": 500})
        assert [metrics["dataset"] for metrics in trainer.learn(2)] == [100.0, 200.0]
        seen = [int(step.observation) for episode in trainer.dataset.episodes for step in episode.steps]
        assert len(seen) == 200

    def test_an_episode_is_not_cut_for_a_policy_that_needs_it_whole(self) -> None:
        with pytest.raises(TypeError, match="horizon=5 cuts episodes, and TablePolicy needs what came before"):
            dagger(TablePolicy(PLACES, 2), horizon=5)

    def test_chunks_are_asked_for_as_long_as_they_are(self) -> None:
        trainer = dagger(Chunks(PLACES, 2))
        trainer.teacher.beta = 1.0
        rows = trainer.collector.collect().rows
        assert set(Line.asked) == {3}
        for step in rows[0][0].steps:
            assert step.label.shape == (3,) and int(step.action) == step.label[0] == Line.right(int(step.observation))
        assert trainer.teacher.agrees(np.int64(1), np.array([1, 0, 0]))

    @pytest.mark.parametrize(
        ("option", "said"),
        [
            ({"query": "never"}, "query must be one of 'always', 'every', 'disagree', got 'never'"),
            ({"mix": "run"}, "mix must be one of 'step', 'episode', got 'run'"),
            ({"queries": -1}, "queries must be at least 0, or None for no limit, got -1"),
            ({"every": 0}, "every must be at least 1, got 0"),
            ({"beta": 1.5}, "beta must be from 0 to 1, got 1.5"),
            ({"horizon": -1}, "horizon must be at least 0, got -1"),
            ({"beta_decay": 0.5, "beta_updates": 3}, "beta falls by beta_decay=0.5 or over beta_updates=3, not both"),
            ({"query": "disagree"}, "query='disagree' and proxy belong together"),
            ({"proxy": np.asarray}, "query='disagree' and proxy belong together"),
        ],
    )
    def test_wrong_options(self, option: dict[str, Any], said: str) -> None:
        with pytest.raises(ValueError, match=said):
            dagger(**option)


def test_refit_learns_from_the_weights_of_the_start() -> None:
    """One step moves each weight by the learning rate: after three updates by one step or by three."""
    for refit, reach in ((True, 1.0), (False, 3.0)):
        policy = Table(PLACES, 2)
        dagger(policy, refit=refit, steps=1, lr=0.01, batch_size=10**6, episodes=20).learn(3)
        assert policy.logits.abs().max().item() == pytest.approx(0.01 * reach, rel=0.05)


def test_refit_forgets_where_the_optimizer_was_going() -> None:
    policy = Table(PLACES, 2)
    cloner = Cloner(policy, Options(steps=1, lr=0.01, max_grad_norm=10.0), refit=True)
    for action in (0, 1):
        batch = lessons(policy, [Episode(steps=[Step(np.int64(0), np.int64(action))])], "action")
        cloner.update(batch)
    assert policy.logits[0].tolist() == pytest.approx([-0.01, 0.01], rel=1e-3)  # the first step of Adam is of that size


class TestText:
    """A dialogue of three turns."""

    alphabet = "a?bc7.!"

    def test_every_turn_is_learnt_behind_what_the_learner_said(self) -> None:
        policy = CharTablePolicy(self.alphabet, end=".", longest=6, seed=4)
        with torch.no_grad():
            policy.table[:, self.alphabet.index(".")] = 1.5
        trainer = DAgger(policy, "Notebook-v0", beta=0.5, beta_decay=1.0, episodes=6, steps=40, lr=0.05)
        history = trainer.learn(3)
        assert history[-1]["dataset"] == history[-1]["queries"] == 54.0
        assert 0 < history[0]["interventions"] < 18 and history[-1]["bc_loss"] < history[0]["bc_loss"]
        said = [step.label for episode in trainer.dataset.episodes for step in episode.steps]
        assert said[:3] == ["b", "bc", "b"] and Notebook().expert_action() == "b"

    def test_a_language_model_learns_from_labels(self) -> None:
        policy = char_lm(max_tokens=3, size=32, layers=1)
        kwargs = {"digits": 1, "answer_format": "plain"}
        options: dict[str, Any] = {"beta": 0.0, "episodes": 32, "steps": 20, "batch_size": 32, "lr": 5e-3}
        history = DAgger(policy, "tetrathlon/Arithmetic-v0", kwargs=kwargs, **options).learn(3)
        assert history[-1]["bc_loss"] < 0.5 * history[0]["bc_loss"]
        assert history[-1]["own_success"] == history[-1]["success"] == history[-1]["agreement"] > 0.0


class TestRuns:
    """A run on disk."""

    @staticmethod
    def trainer(folder: Path, resume: bool = False, callbacks: Any = (), **options: Any) -> DAgger:
        env = gym.make("CartPole-v1")
        policy = ControlPolicy(env.observation_space, env.action_space, hidden=[8])
        kept = {"run": folder, "resume": resume, "checkpoint_every": 2, "callbacks": callbacks}
        settings = {"episodes": 3, "steps": 4, "lr": 1e-2, "beta": 0.5, "beta_decay": 0.7, **options}
        return DAgger(policy, "CartPole-v1", expert=upright, **kept, **settings)

    @pytest.mark.parametrize("stop", [1, 4])
    @pytest.mark.parametrize(
        "options",
        [
            {"refit": True, "episodes": 2, "beta": 0.2},
            {"horizon": 8, "query": "every", "every": 3, "mix": "episode"},
            {"horizon": 8, "vector": "no", "queries": 70},
            {"horizon": 8, "query": "disagree", "proxy": lambda observations: np.zeros(len(observations), np.int64)},
        ],
        ids=["refit", "every", "queries", "disagree"],
    )
    def test_a_run_that_died_goes_on_to_the_same_weights(
        self, tmp_path: Path, stop: int, options: dict[str, Any]
    ) -> None:
        class Died(Exception):
            pass

        def die(number: int, metrics: dict[str, float]) -> None:
            if number == stop:
                raise Died

        self.trainer(tmp_path / "whole", **options).learn(6)
        with pytest.raises(Died):
            self.trainer(tmp_path / "run", callbacks=[die], **options).learn(6)
        self.trainer(tmp_path / "run", resume=True, **options).learn(6)
        check_same_run(tmp_path / "run", tmp_path / "whole", 6)
        shards = [sorted(path.name for path in (tmp_path / run / "dataset").iterdir()) for run in ("run", "whole")]
        assert shards[0] == shards[1]
        spent = "queries" in options  # by then, and nothing is added
        assert shards[0] == ["shard-00000002", "shard-00000004", *([] if spent else ["shard-00000006"])]

    def test_a_shard_is_written_once_and_a_checkpoint_names_it(self, tmp_path: Path) -> None:
        self.trainer(tmp_path).learn(2)
        first = tmp_path / "dataset/shard-00000002/episodes.jsonl"
        written = first.stat().st_mtime_ns
        self.trainer(tmp_path, resume=True).learn(4)
        assert first.stat().st_mtime_ns == written
        size = [(tmp_path / f"checkpoints/step-0000000{step}/state.pt").stat().st_size for step in (2, 4)]
        assert size[1] - size[0] < 1000

    def test_a_shard_that_no_checkpoint_names_is_removed(self, tmp_path: Path) -> None:
        self.trainer(tmp_path).learn(2)
        shutil.copytree(tmp_path / "dataset/shard-00000002", tmp_path / "dataset/shard-00000003")
        self.trainer(tmp_path, resume=True).learn(4)
        assert sorted(path.name for path in (tmp_path / "dataset").iterdir()) == ["shard-00000002", "shard-00000004"]

    def test_a_damaged_shard_is_named(self, tmp_path: Path) -> None:
        self.trainer(tmp_path).learn(2)
        path = tmp_path / "dataset/shard-00000002"
        lines = (path / "episodes.jsonl").read_text().splitlines(keepends=True)
        (path / "episodes.jsonl").write_text("".join(lines[:-1]))
        with pytest.raises(ValueError, match=f"{path} does not hold what was written there; start a new run"):
            self.trainer(tmp_path, resume=True).learn(4)
        shutil.rmtree(path)
        with pytest.raises(ValueError, match=f"the run's data set lacks {path}"):
            self.trainer(tmp_path, resume=True).learn(4)

    def test_the_configuration_names_the_expert(self, tmp_path: Path) -> None:
        self.trainer(tmp_path)
        config = json.loads((tmp_path / "config.json").read_text())
        assert config["algorithm"] == "DAgger" and config["expert"] == "upright"

    def test_a_kill_at_each_event_on_its_files_costs_a_run_nothing(self, tmp_path: Path) -> None:
        """In the second update, which finds a shard and a checkpoint there and writes others."""
        host = Host()
        before, whole, once = tmp_path / "before", tmp_path / "whole", tmp_path / "once"
        host.run("labels", whole, 2, every=1)
        host.run("labels", before, 1, every=1)
        shutil.copytree(before, once)
        _, events = host.run("labels", once, 2, every=1)
        assert events > 25
        for event in range(events):
            run = tmp_path / f"run{event}"
            shutil.copytree(before, run)
            assert host.run("labels", run, 2, every=1, event=event)[0] == signal.SIGKILL
            assert host.run("labels", run, 2, every=1)[0] == 0
            check_same_run(run, whole, 2)
            assert len(list((run / "dataset").iterdir())) == 2
        host.close()


def upright(observations: Any) -> Any:
    """Push the cart under the pole: an expert that stands for 500 steps."""
    place, speed, angle, turn = np.asarray(observations).T
    return (angle + 0.3 * turn + 0.02 * place + 0.06 * speed > 0).astype(np.int64)


def stands(act: Callable[[Any], Any], poles: int = 100) -> float:
    """Return the mean return of so many first episodes."""
    venv = gym.make_vec("CartPole-v1", poles, vectorization_mode="vector_entry_point")
    observations, _ = venv.reset(seed=1)
    up, steps = np.ones(poles, bool), np.zeros(poles)
    while up.any():
        observations, _, terminated, truncated, _ = venv.step(act(observations))
        steps += up
        up &= ~(terminated | truncated)
    return float(steps.mean())


class TestPole:
    """A pole, an expert that keeps it up, and 500 questions."""

    @staticmethod
    def after(expert: Callable[[Any], Any], seed: int) -> tuple[float, float]:
        """Return the mean return of the greedy learner over 100 episodes, and how often the expert was asked."""
        env = gym.make("CartPole-v1")
        policy = ControlPolicy(env.observation_space, env.action_space, seed=seed)
        options: dict[str, Any] = {"query": "every", "queries": 500, "beta": 0.5, "steps": 60, "lr": 1e-2, "seed": seed}
        history = DAgger(policy, "CartPole-v1", expert=expert, episodes=8, horizon=32, **options).learn(4)
        return stands(lambda observations: policy.act(observations, greedy=True).actions), history[-1]["queries"]

    def test_the_expert_stands(self) -> None:
        assert stands(upright) == 500.0

    @pytest.mark.parametrize("seed", range(5))
    def test_it_stands_as_the_expert_does_after_500_questions(self, seed: int) -> None:
        steps, queries = self.after(upright, seed)
        assert steps >= 475 and queries <= 500

    def test_an_expert_that_guesses_teaches_nothing(self) -> None:
        rng = np.random.default_rng(0)
        assert self.after(lambda observations: rng.integers(2, size=len(observations)), 0)[0] < 150

    def test_an_expert_that_is_wrong_teaches_to_fall(self) -> None:
        assert self.after(lambda observations: 1 - upright(observations), 0)[0] < 15
