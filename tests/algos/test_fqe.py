"""Fitted Q evaluation: the true Q of a small world, ends and limits, and what is refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.algos.toys import TablePolicy
from tests.algos.worlds import ACTIONS, BEHAVIOUR, END, NOISY, STATES, SURE, TARGET, World
from tetrathlon.algos.fqe import Regression, Transitions, enumerated, fitted_q_evaluation, sampled
from tetrathlon.envs.episode import Episode, Step

GAMMA = 0.9


def numbers(items: list[Any]) -> Tensor:
    return torch.tensor([int(item) for item in items])


def one_hot(items: list[Any]) -> Tensor:
    return nn.functional.one_hot(numbers(items), STATES).float()


def by_table(policy: Tensor) -> Any:
    """All actions, weighed by a table; the state after the end is never asked for."""

    def proposed(observations: list[Any]) -> tuple[Tensor, Tensor]:
        assert all(int(observation) < END for observation in observations)
        return torch.arange(ACTIONS).expand(len(observations), -1), policy[numbers(observations)]

    return proposed


class Table(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Parameter(torch.zeros(STATES, ACTIONS, dtype=torch.float64))

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        return self.q[state, action]


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(STATES + ACTIONS, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, state: Tensor, action: Tensor) -> Tensor:
        return self.layers(torch.cat([state, action], dim=1))[:, 0]


def means(q: Any, data: Transitions, target: Tensor) -> None:
    """Fit a table exactly: the mean target of each state and action."""
    with torch.no_grad():
        for s, a in product(range(STATES), range(ACTIONS)):
            q.q[s, a] = target[(data.state[data.before] == s) & (data.action == a)].mean()


def single_steps(world: World) -> list[Episode]:
    """Every transition as often as it comes, each an episode of its own, truncated where the task goes on."""
    found = []
    for s, a, pay, after in product(range(STATES), range(ACTIONS), range(len(world.paid[0][0])), range(STATES + 1)):
        ends = after == END
        info = {"step_rewards": [0.0] * world.env_steps[s]}
        step = Step(s, a, world.paid[s][a][pay], terminated=ends, truncated=not ends, info=info)
        episode = Episode(steps=[step], final_observation=None if ends else after)
        found += [episode] * round(4 * world.chance[s][a][after])
    return found


def read(episodes: list[Episode], policy: Tensor = TARGET) -> Transitions:
    return Transitions.of(episodes, observed=numbers, decided=numbers, proposed=by_table(policy))


class TestTrueValues:
    q, v = NOISY.values(TARGET, 600, GAMMA)

    def test_a_table_finds_them(self) -> None:
        table = Table()
        found = fitted_q_evaluation(table, read(single_steps(NOISY)), gamma=GAMMA, iterations=300, fit=means)
        assert table.q.flatten().tolist() == pytest.approx(self.q[0].flatten().tolist(), abs=1e-6)
        assert found.changes[-1] < 1e-6 < found.changes[0] and len(found.changes) == 299

    def test_another_policy_has_others(self) -> None:
        table = Table()
        fitted_q_evaluation(table, read(single_steps(NOISY), BEHAVIOUR), gamma=GAMMA, iterations=300, fit=means)
        other, _ = NOISY.values(BEHAVIOUR, 600, GAMMA)
        assert table.q.flatten().tolist() == pytest.approx(other[0].flatten().tolist(), abs=1e-6)
        assert abs(float((other[0] - self.q[0]).abs().max())) > 0.5

    def test_k_iterations_look_k_decisions_ahead(self) -> None:
        for k in (1, 2, 3):
            table = Table()
            fitted_q_evaluation(table, read(single_steps(NOISY)), gamma=GAMMA, iterations=k, fit=means)
            ahead, _ = NOISY.values(TARGET, k, GAMMA)
            assert table.q.flatten().tolist() == pytest.approx(ahead[0].flatten().tolist(), abs=1e-9)

    def test_the_value_is_that_of_the_first_states(self) -> None:
        log = SURE.ways(BEHAVIOUR, 3)
        found = fitted_q_evaluation(Table(), read(log.episodes(BEHAVIOUR)), gamma=GAMMA, iterations=300, fit=means)
        _, v = SURE.values(TARGET, 600, GAMMA)
        assert found.value == pytest.approx(float(v[0, 0]), abs=1e-6)
        assert found.standard_error == pytest.approx(0.0, abs=1e-6)

    def test_the_error_is_over_first_states(self) -> None:
        episodes = [*single_steps(NOISY)[:1] * 3, single_steps(NOISY)[-1]]
        assert [episode.steps[0].observation for episode in episodes] == [0, 0, 0, 1]
        found = fitted_q_evaluation(Table(), read(episodes), gamma=0.0, iterations=1, fit=lambda q, data, target: None)
        assert found.standard_error == 0.0
        known = Table()
        with torch.no_grad():
            known.q[0], known.q[1] = 1.0, 5.0
        found = fitted_q_evaluation(known, read(episodes), gamma=0.0, iterations=1, fit=lambda q, data, target: None)
        assert (found.value, found.standard_error) == (pytest.approx(2.0), pytest.approx(1.0))

    def test_descent_finds_them(self) -> None:
        table = Table()
        fit = Regression(steps=10, lr=0.1)
        found = fitted_q_evaluation(table, read(single_steps(NOISY)), gamma=GAMMA, iterations=100, fit=fit)
        assert table.q.flatten().tolist() == pytest.approx(self.q[0].flatten().tolist(), abs=0.05)
        assert found.v[:1].tolist() == pytest.approx([float(self.v[0, 0])], abs=0.05)

    def test_a_network_over_features_finds_them_in_minibatches(self) -> None:
        def proposed(observations: list[Any]) -> tuple[Tensor, Tensor]:
            return torch.eye(ACTIONS).expand(len(observations), -1, -1), TARGET[numbers(observations)].float()

        data = Transitions.of(single_steps(NOISY), observed=one_hot, decided=one_hot, proposed=proposed)
        assert len(data) == 32
        network, gamma = Network(), 0.5
        fitted_q_evaluation(network, data, gamma=gamma, fit=Regression(steps=50, lr=0.01, batch_size=16), iterations=20)
        fit = Regression(steps=50, lr=0.001, batch_size=32)
        found = fitted_q_evaluation(network, data, gamma=gamma, fit=fit, iterations=20)
        true, _ = NOISY.values(TARGET, 100, gamma)
        wanted = true[0][numbers([e.steps[0].observation for e in single_steps(NOISY)]), data.action.argmax(1)]
        assert found.q.tolist() == pytest.approx(wanted.tolist(), abs=0.2)
        assert float(true[0].max() - true[0].min()) > 2


class TestEnds:
    """Rewards of 1, 0 known of the first state, 10 of the last."""

    @staticmethod
    def targets(*, terminated: bool, truncated: bool) -> list[float]:
        steps = [Step(0, 0, 1.0), Step(0, 0, 1.0, terminated=terminated, truncated=truncated)]
        data = read([Episode(steps=steps, final_observation=1)])
        table = Table()
        with torch.no_grad():
            table.q[1] = 10.0
        seen: list[Tensor] = []
        fitted_q_evaluation(table, data, gamma=0.9, iterations=1, fit=lambda q, data, target: seen.append(target))
        return seen[0].tolist()

    def test_a_termination_is_the_end(self) -> None:
        assert self.targets(terminated=True, truncated=False) == [1.0, 1.0]
        assert self.targets(terminated=True, truncated=True) == [1.0, 1.0]

    def test_a_truncation_and_a_stop_of_the_recording_are_not(self) -> None:
        assert self.targets(terminated=False, truncated=True) == pytest.approx([1.0, 10.0])
        assert self.targets(terminated=False, truncated=False) == pytest.approx([1.0, 10.0])

    def test_what_stands_behind_a_termination_is_not_read(self) -> None:
        data = read([Episode(steps=[Step(0, 0, 1.0, terminated=True)], final_observation=99)])
        assert len(data.state) == 1
        hole = Table()
        with torch.no_grad():
            hole.q[:] = torch.nan
            hole.q[0, 0] = 0.0
        data = read([Episode(steps=[Step(0, 0, 1.0, terminated=True)])])
        fitted_q_evaluation(hole, data, gamma=0.9, iterations=1, fit=lambda q, data, target: None)

    def test_an_action_that_is_never_taken_is_not_read(self) -> None:
        never = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
        hole = Table()
        with torch.no_grad():
            hole.q[:, 1] = torch.nan
        data = read([Episode(steps=[Step(0, 0, 1.0, truncated=True)], final_observation=1)], never)
        assert data.v(hole).tolist() == [0.0, 0.0]

    def test_episodes_do_not_run_into_each_other(self) -> None:
        """Counting episodes, what is seen is what is done: none is shifted (d3rlpy 2.8.1 shifts all but the first)."""
        episodes = []
        for first, length in ((0, 3), (100, 2), (200, 4)):
            steps = [Step(first + t, first + t, float(first + t)) for t in range(length)]
            steps[-1].truncated = True
            episodes.append(Episode(steps=steps, final_observation=first + length))
        steps = [Step(300, 300, 300.0, terminated=True)]
        episodes.append(Episode(steps=steps, final_observation=301))

        def proposed(observations: list[Any]) -> tuple[Tensor, Tensor]:
            return numbers(observations)[:, None], torch.ones(len(observations), 1)

        data = Transitions.of(episodes, observed=numbers, decided=numbers, proposed=proposed)
        assert len(data) == 10 and len(data.state) == 3 + 2 + 4 + 1 + 3
        assert torch.equal(data.state[data.before], data.action)
        assert data.reward.tolist() == data.action.tolist()
        assert torch.equal(data.state[data.after[:-1]], data.action[:-1] + 1)
        assert data.state[data.start].tolist() == [0, 100, 200, 300]
        assert data.terminated.tolist() == [False] * 9 + [True]

    def test_a_chunk_takes_its_steps(self) -> None:
        steps = [Step(0, 0, 3.0, truncated=True, info={"step_rewards": [1.0, 1.0, 1.0]})]
        data = read([Episode(steps=steps, final_observation=1)])
        table = Table()
        with torch.no_grad():
            table.q[1] = 10.0
        seen: list[Tensor] = []
        fitted_q_evaluation(table, data, gamma=0.9, iterations=1, fit=lambda q, data, target: seen.append(target))
        assert seen[0].tolist() == pytest.approx([3 + 0.9**3 * 10])

    def test_episodes_that_nobody_could_grade_are_left_out(self) -> None:
        good = Episode(steps=[Step(0, 0, 1.0, terminated=True)])
        bad = Episode(steps=[Step(0, 0, 0.0, terminated=True, info={"grader_error": "no answer"})])
        assert read([bad, good, bad]).reward.tolist() == [1.0]


class TestProposals:
    @staticmethod
    def policy(table: Tensor = TARGET) -> TablePolicy:
        policy = TablePolicy(STATES, ACTIONS)
        with torch.no_grad():
            policy.logits.copy_(table.log())
        return policy

    def test_all_actions(self) -> None:
        actions, weight = enumerated(self.policy(), [0, 1], numbers)([1, 0, 1])
        assert actions.tolist() == [[0, 1]] * 3
        assert weight.flatten().tolist() == pytest.approx(TARGET[[1, 0, 1]].flatten().tolist())

    def test_more_than_are_asked_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tetrathlon.algos.fqe._ALONE", 3)
        monkeypatch.setattr("tetrathlon.algos.fqe._ROWS", 3)
        states = [1, 0, 1, 1, 0]
        _, weight = enumerated(self.policy(), [0, 1], numbers)(states)
        assert weight.flatten().tolist() == pytest.approx(TARGET[states].flatten().tolist())
        table = Table()
        with torch.no_grad():
            table.q[:] = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        data = read([Episode(steps=[Step(s, 1, 0.0, terminated=True)]) for s in states])
        assert data.q(table).tolist() == [4.0, 2.0, 4.0, 4.0, 2.0]
        assert data.v(table).tolist() == pytest.approx([3.3, 1.9, 3.3, 3.3, 1.9])

    def test_not_all_actions(self) -> None:
        with pytest.raises(ValueError, match=r"the 1 actions must be all .* their probabilities sum to 0\.3"):
            enumerated(self.policy(), [1], numbers)([1, 1])

    def test_samples(self) -> None:
        actions, weight = sampled(self.policy(), np.stack, numbers, n=400)([0, 1])
        assert actions.shape == weight.shape == (2, 400) and weight.sum(1).tolist() == pytest.approx([1.0, 1.0])
        assert actions.double().mean(1).tolist() == pytest.approx([0.9, 0.3], abs=0.06)

    def test_greedy(self) -> None:
        actions, weight = sampled(self.policy(), np.stack, numbers, greedy=True)([0, 1])
        assert actions.tolist() == [[1], [0]] and weight.tolist() == [[1.0], [1.0]]

    def test_no_samples(self) -> None:
        with pytest.raises(ValueError, match="n must be at least 1, got 0"):
            sampled(self.policy(), np.stack, numbers, n=0)


class TestRefused:
    data = read(single_steps(NOISY))

    def test_nothing_to_fit(self) -> None:
        with pytest.raises(TypeError, match="has no parameters to fit"):
            fitted_q_evaluation(lambda state, action: state * 0.0, self.data, gamma=0.9)

    def test_q_ran_away(self) -> None:
        def away(q: Any, data: Transitions, target: Tensor) -> None:
            with torch.no_grad():
                q.q.fill_(torch.inf)

        with pytest.raises(ValueError, match="not finite after 1 iterations"):
            fitted_q_evaluation(Table(), self.data, gamma=0.9, fit=away)

    @pytest.mark.parametrize(("gamma", "iterations"), [(1.1, 1), (-0.1, 1), (0.9, 0)])
    def test_out_of_range(self, gamma: float, iterations: int) -> None:
        with pytest.raises(ValueError, match=r"gamma must be in|iterations must be at least 1"):
            fitted_q_evaluation(Table(), self.data, gamma=gamma, iterations=iterations)

    def test_no_steps(self) -> None:
        with pytest.raises(ValueError, match="no step in these 1 episodes"):
            read([Episode()])

    def test_a_last_observation_that_is_missing(self) -> None:
        with pytest.raises(ValueError, match="episode 1 did not terminate"):
            read([*single_steps(NOISY)[:1], Episode(steps=[Step(0, 0, truncated=True)])])

    def test_features_and_proposals_that_do_not_fit(self) -> None:
        given: dict[str, Any] = {"observed": numbers, "decided": numbers, "proposed": by_table(TARGET)}
        episodes = single_steps(NOISY)
        for change, message in (
            ({"observed": lambda items: numbers(items)[1:]}, "observed made .* features"),
            ({"decided": lambda items: numbers(items)[1:]}, "decided made 31 features of 32"),
            ({"proposed": by_table(TARGET / 2)}, r"must sum to 1 in each state; they are off by up to 0\.5"),
            ({"proposed": lambda items: (torch.zeros(1, 2), torch.ones(1, 2) / 2)}, r"got \[1, 2\] and \[1, 2\]"),
        ):
            with pytest.raises(ValueError, match=message):
                Transitions.of(episodes, **{**given, **change})
