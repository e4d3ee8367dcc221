"""What a log says of a policy: true values from episodes, the same numbers as the formulas, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import Tensor

from tests.algos.test_fqe import Table, means, numbers
from tests.algos.toys import CharTablePolicy, ChunkPolicy, TablePolicy
from tests.algos.worlds import ACTIONS, BEHAVIOUR, NOISY, STATES, SURE, TARGET, World
from tetrathlon.agents.control import ControlPolicy
from tetrathlon.agents.decisions import Decisions, Evaluation, Last, Learn
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.algos.estimates import Estimates, estimates
from tetrathlon.algos.fqe import Transitions, enumerated, fitted_q_evaluation
from tetrathlon.algos.ope import importance_sampling
from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.slots import Slots

GAMMA, HORIZON = 0.9, 3
ONE_STEP = World(NOISY.start, NOISY.chance, NOISY.paid)
NAMES = ("ordinary", "weighted", "per_decision", "weighted_per_decision")


def table(chances: Tensor) -> TablePolicy:
    policy = TablePolicy(STATES, ACTIONS)
    with torch.no_grad():
        policy.logits.copy_(chances.log())
    return policy


def played(world: World, count: int, seed: int = 0) -> list[Episode]:
    log = world.ways(BEHAVIOUR, HORIZON)
    generator = torch.Generator().manual_seed(seed)
    return log.rows(torch.multinomial(log.chance, count, replacement=True, generator=generator)).episodes(BEHAVIOUR)


def model(episodes: Sequence[Episode], policy: TablePolicy, iterations: int) -> Callable[[Decisions], Any]:
    proposed = enumerated(policy, range(ACTIONS), numbers)
    data = Transitions.of(episodes, observed=numbers, decided=numbers, proposed=proposed)
    return fitted_q_evaluation(Table(), data, gamma=GAMMA, iterations=iterations, fit=means).columns


class TestWorld:
    episodes = played(ONE_STEP, 3000)
    found = estimates(table(TARGET), episodes, gamma=GAMMA)

    @pytest.mark.parametrize("name", NAMES)
    def test_near_the_true_value(self, name: str) -> None:
        found = getattr(self.found, name)
        true = ONE_STEP.value(TARGET, HORIZON, GAMMA)
        assert abs(found.value - true) < 3 * found.standard_error < 1.5
        assert abs(self.found.logged.value - true) > 10 * self.found.logged.standard_error

    def test_the_log_itself(self) -> None:
        logged = self.found.logged
        assert abs(logged.value - ONE_STEP.value(BEHAVIOUR, HORIZON, GAMMA)) < 3 * logged.standard_error < 0.3
        assert logged.ess == pytest.approx(3000)

    def test_what_was_read(self) -> None:
        assert self.found.episodes == 3000 and self.found.dropped == 0
        assert self.found.open == sum(episode.steps[-1].truncated for episode in self.episodes)
        assert 0 < self.found.open < 3000
        assert self.found.doubly_robust is None and self.found.weighted_doubly_robust is None
        assert 300 < self.found.ess < 2000 and self.found.ess == self.found.weighted.ess

    def test_the_same_numbers_as_the_formula(self) -> None:
        log = ONE_STEP.ways(BEHAVIOUR, HORIZON)
        found = estimates(table(TARGET), log.episodes(BEHAVIOUR), gamma=GAMMA, clip=3.0)
        columns = log.log_ratio(TARGET, BEHAVIOUR), log.reward, log.mask
        wanted = importance_sampling(*columns, env_steps=log.mask.long(), gamma=GAMMA, clip=3.0)
        assert found.ordinary.terms.tolist() == pytest.approx(wanted.terms.tolist(), rel=1e-4, abs=1e-5)
        assert found.logged.value != pytest.approx(found.ordinary.value)

    def test_the_policy_that_played(self) -> None:
        found = estimates(table(BEHAVIOUR), self.episodes, gamma=GAMMA)
        for name in NAMES:
            assert getattr(found, name).value == pytest.approx(found.logged.value, rel=1e-4)
        assert found.ess == pytest.approx(3000)

    def test_a_fitted_model_takes_the_noise_out(self) -> None:
        policy, episodes = table(TARGET), [replace(episode) for episode in played(SURE, 200)]
        for episode in episodes:
            # The limit is the task's own here: what was truncated is over.
            episode.steps[-1].terminated, episode.steps[-1].truncated = True, False
        world = SURE.values(TARGET, HORIZON, GAMMA)

        def right(decisions: Decisions) -> tuple[Tensor, Tensor]:
            state, turn = decisions.inputs["state"], decisions.turn.clamp(0, HORIZON - 1)
            return world[0][turn, state, decisions.inputs["action"]], world[1][turn, state]

        found = estimates(policy, episodes, gamma=GAMMA, critic=right)
        assert found.doubly_robust is not None and found.weighted_doubly_robust is not None
        for each in (found.doubly_robust, found.weighted_doubly_robust):
            assert each.value == pytest.approx(SURE.value(TARGET, HORIZON, GAMMA), abs=1e-5)
            assert each.standard_error < 1e-5 < 0.01 < found.ordinary.standard_error

    def test_fitted_q_evaluation_gives_the_model(self) -> None:
        episodes, policy = played(SURE, 200), table(TARGET)
        found = estimates(policy, episodes, gamma=GAMMA, critic=model(episodes, policy, 300))
        endless = float(SURE.values(TARGET, 600, GAMMA)[1][0, 0])
        assert found.doubly_robust is not None and 0 < found.open < 200
        assert found.doubly_robust.value == pytest.approx(endless, abs=1e-4)
        assert found.doubly_robust.standard_error < 1e-4
        assert abs(found.per_decision.value - endless) > 0.3  # it ends with the log

    def test_a_model_of_other_episodes_is_refused(self) -> None:
        episodes, policy = played(SURE, 20), table(TARGET)
        with pytest.raises(ValueError, match="they must be the same steps"):
            estimates(policy, episodes[1:], gamma=GAMMA, critic=model(episodes, policy, 1))

    def test_padding_and_parts_change_nothing(self) -> None:
        episodes = self.episodes[:50]
        whole = estimates(table(TARGET), episodes, gamma=GAMMA)
        parts = estimates(table(TARGET), episodes, gamma=GAMMA, max_cost=7.0)
        assert parts.ordinary.terms.tolist() == whole.ordinary.terms.tolist()


class TestWhoPlayed:
    def test_records_may_be_missing_where_the_player_is_known(self) -> None:
        episodes = played(ONE_STEP, 40)
        wanted = estimates(table(TARGET), episodes, gamma=GAMMA)
        for episode in episodes:
            for step in episode.steps:
                step.record = None
        found = estimates(table(TARGET), episodes, gamma=GAMMA, behaviour=table(BEHAVIOUR))
        assert found.ordinary.terms.tolist() == pytest.approx(wanted.ordinary.terms.tolist(), rel=1e-4, abs=1e-5)
        with pytest.raises(ValueError, match="no behaviour log-probabilities: all decisions lack them"):
            estimates(table(TARGET), episodes, gamma=GAMMA)

    def test_records_without_log_probabilities(self) -> None:
        episodes = played(ONE_STEP, 40)
        episodes[3].steps[0].record = {}
        count = sum(map(len, episodes))
        with pytest.raises(ValueError, match=f"no behaviour log-probabilities: 1 of {count} decisions lack them"):
            estimates(table(TARGET), episodes, gamma=GAMMA)

    def test_a_first_step_of_somebody_else(self) -> None:
        episodes = [episode for episode in played(ONE_STEP, 40) if len(episode) > 1]
        episodes[2].steps[0].record = None
        with pytest.raises(ValueError, match="the first step of episode 2 was not decided"):
            estimates(table(TARGET), episodes, gamma=GAMMA)

    def test_players_who_see_other_decisions(self) -> None:
        class Half(TablePolicy):
            def collate(self, rows: Any, *, learn: Learn = "own", last: Last = "open") -> Decisions:
                batch = super().collate(rows, learn=learn, last=last)
                batch.mask[0] = False
                return batch

        with pytest.raises(ValueError, match="ratios need the same ones"):
            estimates(table(TARGET), played(ONE_STEP, 9), gamma=GAMMA, behaviour=Half(STATES, ACTIONS))

    def test_no_density(self) -> None:
        policy = table(TARGET)
        policy.has_density = False
        for who, player in ((policy, None), (table(TARGET), policy)):
            with pytest.raises(TypeError, match="TablePolicy gives no log-probabilities"):
                estimates(who, played(ONE_STEP, 2), gamma=GAMMA, behaviour=player)

    def test_a_policy_that_is_broken(self) -> None:
        policy = table(TARGET)
        with torch.no_grad():
            policy.logits[0, 0] = torch.nan
        with pytest.raises(ValueError, match="log_ratio is not finite"):
            estimates(policy, played(ONE_STEP, 9), gamma=GAMMA)

    def test_grades_that_failed(self) -> None:
        episodes = played(ONE_STEP, 9)
        episodes[4].steps[-1].info["grader_error"] = "no answer"
        found = estimates(table(TARGET), episodes, gamma=GAMMA)
        assert (found.episodes, found.dropped, len(found.ordinary.terms)) == (8, 1, 8)
        with pytest.raises(ValueError, match="no episode to weigh: of 1 the grader failed in all"):
            estimates(table(TARGET), episodes[4:5], gamma=GAMMA)
        with pytest.raises(ValueError, match="no episode to weigh"):
            estimates(table(TARGET), [], gamma=GAMMA)


@pytest.mark.parametrize("training", [True, False])
def test_the_policy_stays_as_it_is(training: bool) -> None:
    class Watched(TablePolicy):
        modes: list[bool] = []  # noqa: RUF012

        def collate(self, rows: Any, *, learn: Learn = "own", last: Last = "open") -> Decisions:
            self.modes.append(self.training)
            return super().collate(rows, learn=learn, last=last)

        def evaluate(self, decisions: Decisions) -> Evaluation:
            self.modes.append(self.training or torch.is_grad_enabled())
            return super().evaluate(decisions)

    policy = Watched(STATES, ACTIONS).train(training)
    policy.critic.train(not training)  # as a frozen model inside a policy that learns
    estimates(policy, played(ONE_STEP, 9), gamma=GAMMA)
    assert policy.modes == [False, False]
    assert policy.training is training and policy.critic.training is not training


def test_control() -> None:
    """A pole held by one policy, judged for another of the same kind, whose statistics stay as they are."""
    env = gym.make("CartPole-v1")
    kind: dict[str, Any] = {"hidden": (8,), "normalize_observations": True}
    behaviour, other = (ControlPolicy(env.observation_space, env.action_space, seed=seed, **kind) for seed in (0, 1))
    slots = Slots(lambda: gym.make("CartPole-v1"), 4)
    try:
        episodes = Rollout(behaviour, slots, [Start(seed=seed) for seed in range(12)]).episodes()
    finally:
        slots.close()
    with torch.no_grad():
        for weight in other.actor.parameters():
            weight.mul_(50)
    before = {name: value.clone() for name, value in other.state_dict().items() if isinstance(value, Tensor)}
    same = estimates(behaviour, episodes, gamma=1.0)
    assert same.ess == pytest.approx(12, rel=1e-4)
    assert same.ordinary.value == pytest.approx(np.mean([len(episode) for episode in episodes]), rel=1e-3)
    found = estimates(other, episodes, gamma=1.0)
    assert 1 <= found.ess < 11.99
    for name, value in before.items():
        assert torch.equal(other.state_dict()[name], value), name


def test_tokens() -> None:
    """Answers of several tokens between prompts: the ratio of an episode is that of all its tokens."""
    behaviour, policy = (CharTablePolicy("ab.", ".", seed=seed) for seed in (0, 1))
    episodes = []
    for number in range(20):
        steps = []
        for prompt in ("aab", "b"):
            acted = behaviour.act((prompt,))
            steps.append(Step(prompt, acted.actions[0], float(number), record=acted.records[0]))
        steps[-1].terminated = True
        episodes.append(Episode(steps=steps, final_observation=""))
    found = estimates(policy, episodes, gamma=0.5)
    assert isinstance(found, Estimates)
    wanted = []
    for episode in episodes:
        log_weight = 0.0
        for step in episode.steps:
            assert step.record is not None
            last = step.record["given"][-1]
            for token, logp in zip(step.record["ids"], step.record["logp"], strict=True):
                log_weight += float(policy.table.detach()[last].log_softmax(-1)[token]) - float(logp)
                last = token
        wanted.append(np.exp(log_weight) * 1.5 * episode.steps[0].reward)
    assert found.ordinary.terms.tolist() == pytest.approx(wanted, rel=1e-4, abs=1e-6)


def test_chunks() -> None:
    """A decision plays two steps: one ratio, both rewards, and the discount of both."""
    policy = ChunkPolicy(STATES, ACTIONS, 2)
    with torch.no_grad():
        policy.logits.copy_(TARGET.log())
    logp = {"logp": np.float32(np.log(0.5))}
    steps = [Step(0, 1, 1.0, record=logp), Step(1, 1, 2.0), Step(1, 0, 4.0, terminated=True, record=logp)]
    found = estimates(policy, [Episode(steps=steps)] * 2, gamma=0.5)
    first, second = 0.9 / 0.5, 0.7 / 0.5
    assert found.per_decision.value == pytest.approx(first * 3 + first * second * 0.25 * 4)
