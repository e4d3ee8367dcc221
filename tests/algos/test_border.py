"""The border between policies and algorithms, on toys with numbers worked out by hand."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

from tests.algos.toys import CharTablePolicy, ChunkPolicy, MLPPolicy, TablePolicy
from tetrathlon.agents.decisions import Decisions, layout
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.algos.advantages import gae, next_values
from tetrathlon.algos.batch import policy_loss, prepare
from tetrathlon.algos.columns import select
from tetrathlon.algos.losses import episode_sums, total
from tetrathlon.algos.on_policy import train
from tetrathlon.algos.options import Options
from tetrathlon.algos.preferences import dpo
from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.slots import Slots
from tetrathlon.envs.spaces import UnicodeText
from tetrathlon.envs.vector_slots import VectorSlots


def advantages(batch: Decisions, value: torch.Tensor, gamma: float, lam: float) -> torch.Tensor:
    return gae(
        batch.reward,
        value,
        batch.mask,
        final=batch.final,
        terminated=batch.terminated,
        truncated=batch.truncated,
        env_steps=batch.env_steps,
        gamma=gamma,
        lam=lam,
    )[0]


def states(path: list[int], rewards: list[float], *, end: str = "terminated", group: int | None = None) -> Episode:
    """An episode through ``path`` with action = state parity; the last state is what was seen at the end."""
    steps = [
        Step(state, state % 2, reward, record={"logp": np.float32(-0.5)})
        for state, reward in zip(path[:-1], rewards, strict=True)
    ]
    steps[-1].terminated, steps[-1].truncated = end == "terminated", end == "truncated"
    return Episode(steps=steps, final_observation=path[-1], group=group)


class TestTable:
    """A policy that is one table of parameters."""

    def test_columns_of_a_stretch(self) -> None:
        row = [
            states([0, 1, 2], [1.0, 2.0]),
            states([0, 1, 3], [3.0, 4.0], end="truncated"),
            states([2, 0], [5.0], end=""),
        ]
        batch = TablePolicy(4, 2).collate([row])
        assert batch.mask.tolist() == [[True, True, True, True, False, True, False]]
        assert batch.final.tolist() == [[False, False, False, False, True, False, True]]
        assert batch.reward[batch.mask].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
        assert batch.terminated.nonzero().tolist() == [[0, 1]]
        assert batch.truncated.nonzero().tolist() == [[0, 3]]
        assert batch.episode.tolist() == [[0, 0, 1, 1, 1, 2, 2]]
        assert batch.turn.tolist() == [[0, 1, 0, 1, 2, 0, 1]]
        assert batch.env_steps[batch.mask].tolist() == [1, 1, 1, 1, 1]
        assert batch.inputs["state"].tolist() == [[0, 1, 0, 1, 3, 2, 0]]

    def test_advantages_bootstrap_from_the_true_last_state(self) -> None:
        row = [
            states([0, 1, 2], [1.0, 2.0]),
            states([0, 1, 3], [3.0, 4.0], end="truncated"),
            states([2, 0], [5.0], end=""),
        ]
        batch = TablePolicy(4, 2).collate([row])
        value = torch.tensor([0.5, 0.25, 2.0, 8.0])[batch.inputs["state"]]
        # gamma .5, lambda 0.5. First episode: d1 = 2 - .25, d0 = 1 + .5 * .25 - .5.
        # Second: d1 = 4 + .5 * 8 - .25, d0 = 3 + .5 * .25 - .5. Third: d0 = 5 + .5 * .5 - 2.
        expected = [0.625 + 0.25 * 1.75, 1.75, 2.625 + 0.25 * 7.75, 7.75, 3.25]
        assert advantages(batch, value, 0.5, 0.5)[batch.mask].tolist() == pytest.approx(expected)

    def test_gradient_of_one_update_by_hand(self) -> None:
        policy = TablePolicy(1, 2)
        episodes = [states([0, 0], [r], group=0) for r in (1.0, 0.0)]
        episodes[1].steps[0].action = 1
        batch = prepare(policy, policy.collate([[e] for e in episodes]), Options(advantage="leave_one_out"))[0]
        assert batch.advantage is not None and batch.advantage.tolist() == [[1.0], [-1.0]]
        policy_loss(policy, batch, Options(advantage="leave_one_out"))[0].backward()
        # d/dlogit of -(1/2)(log p0 - log p1) at p = (1/2, 1/2), half a decision each.
        assert policy.logits.grad is not None
        assert policy.logits.grad.tolist() == [[pytest.approx(-0.5), pytest.approx(0.5)]]

    def test_groups_are_scored_on_all_that_was_paid(self) -> None:
        """A reward that no decision earned counts too, and a row without decisions is left out."""
        policy = TablePolicy(4, 2)
        paid_before = states([0, 1, 2], [1.0, 0.0], group=0)
        paid_before.steps[0].record = None
        forced = states([0, 1], [0.0], group=0)
        forced.steps[0].record = None
        episodes = [paid_before, states([0, 1], [1.0], group=0), states([0, 1], [0.0], group=0), forced]
        batch = policy.collate([[episode] for episode in episodes])
        assert batch.total_reward.tolist() == [1.0, 1.0, 0.0, 0.0]
        batch = prepare(policy, batch, Options(advantage="leave_one_out"))[0]
        assert batch.advantage is not None
        assert batch.advantage[:, 0].tolist() == pytest.approx([0.5, 0.5, -1.0, 0.0])

    def test_a_row_of_a_group_is_one_episode(self) -> None:
        rows = [[states([0, 1], [1.0], group=0), states([0, 1], [0.0], group=1)]]
        with pytest.raises(ValueError, match="holds 2 episodes"):
            TablePolicy(2, 2).collate(rows)

    def test_unscorable_episodes_take_no_part(self) -> None:
        policy = TablePolicy(2, 2)
        episodes = [states([0, 1], [r], group=0) for r in (1.0, 1.0, 0.0)]
        episodes[2].steps[0].info = {"grader_error": "died"}
        before = policy.logits.detach().clone()
        metrics: list[dict[str, float]] = []
        train(policy, lambda: [[e] for e in episodes], Options(), 1, lambda _, m: metrics.append(m))
        assert metrics[0]["unscorable"] == 1.0 and metrics[0]["reward"] == 1.0
        assert torch.equal(policy.logits, before)  # two equal rewards are no signal

    def test_metrics_are_means_over_the_steps_that_were_taken(self) -> None:
        policy, metrics = TablePolicy(2, 2), []
        rows = [[states([0, 1], [float(i % 2)], group=0)] for i in range(5)]
        train(policy, lambda: rows, Options(lr=0.0, minibatches=4, epochs=1), 1, lambda _, m: metrics.append(m))
        assert metrics[0]["entropy"] == pytest.approx(np.log(2))

    def test_nothing_decided_and_a_loss_that_is_not_finite_stop_the_run(self) -> None:
        policy = TablePolicy(2, 2)
        forced = states([0, 1], [1.0])
        forced.steps[0].record = None
        with pytest.raises(ValueError, match="nothing in these episodes was decided"):
            train(policy, lambda: [[forced]], Options(), 1)
        with pytest.raises(FloatingPointError, match="loss of round 0 is nan"):
            train(policy, lambda: [[states([0, 1], [float("nan")])]], Options(advantage="gae"), 1)

    def test_only_the_critic_learns_at_the_critics_rate(self) -> None:
        policy = TablePolicy(2, 2)
        policy.critical = torch.nn.Parameter(torch.zeros(1))
        rows = [[states([0, 1], [float(i % 2)], group=0)] for i in range(4)]
        before = policy.critic.v.detach().clone()
        train(policy, lambda: rows, Options(advantage="gae", lr=0.1, value_lr=0.0), 1)
        assert torch.equal(policy.critic.v, before) and not torch.equal(policy.logits, torch.zeros(2, 2))

    @pytest.mark.parametrize("advantage", ["group", "leave_one_out", "gae"])
    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_learns_which_action_is_paid(self, advantage: str, sign: float) -> None:
        policy = TablePolicy(3, 4, seed=1)
        rng = np.random.default_rng(0)

        def collect() -> list[list[Episode]]:
            rows = []
            for group, state in enumerate(rng.integers(3, size=8).tolist()):
                acted = policy.act(np.full(8, state))
                for action, record in zip(acted.actions, acted.records, strict=True):
                    paid = sign * float(action == state + 1)
                    step = Step(state, action, paid, terminated=True, record=record)
                    rows.append([Episode(steps=[step], final_observation=state, group=group)])
            return rows

        train(policy, collect, Options(advantage=advantage, lr=0.05, value_lr=0.05), updates=40)  # type: ignore[arg-type]
        right = policy.logits.softmax(-1)[torch.arange(3), torch.arange(3) + 1]
        assert bool((right > 0.9).all()) if sign > 0 else bool((right < 0.1).all())


class TestCartPole:
    """CartPole-v1 in all three autoreset modes."""

    @staticmethod
    def collected(mode: AutoresetMode) -> Decisions:
        venv = gym.make_vec(
            "CartPole-v1",
            num_envs=3,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": mode},
            max_episode_steps=20,
        )
        policy = MLPPolicy(4, 2, seed=3)
        rollout = Rollout(policy, VectorSlots(venv), (Start(seed=s) for s in range(10_000)))
        rollout.stretch(33)
        return policy.collate(rollout.stretch(50))

    def test_decisions_are_the_same_in_every_mode(self) -> None:
        one, two, three = (self.collected(mode) for mode in AutoresetMode)
        assert one.truncated.any() and one.terminated.any() and one.final.any()
        assert one.mask.sum() == 150
        for other in (two, three):
            for name, value in one._tensors():
                assert torch.equal(torch.nan_to_num(value), torch.nan_to_num(getattr(other, name))), name
            assert torch.equal(one.inputs["observation"], other.inputs["observation"])

    def test_last_states_are_the_true_ones(self) -> None:
        batch = self.collected(AutoresetMode.SAME_STEP)
        previous = batch.truncated.nonzero()
        assert len(previous) > 0
        for b, t in previous.tolist():
            assert batch.final[b, t + 1]
            before, after = batch.inputs["observation"][b, t, 0], batch.inputs["observation"][b, t + 1, 0]
            velocity = batch.inputs["observation"][b, t, 1]
            assert after == pytest.approx(float(before + 0.02 * velocity), abs=1e-6)

    def test_record_and_evaluation_agree(self) -> None:
        policy = MLPPolicy(4, 2, seed=3)
        batch = self.collected(AutoresetMode.NEXT_STEP)
        drift = (policy.evaluate(batch).logp - batch.logp)[batch.mask].abs().max()
        assert drift.item() < 1e-5

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_ppo_balances_the_pole(self, sign: float) -> None:
        venv = gym.make_vec("CartPole-v1", num_envs=32, vectorization_mode="vector_entry_point")
        policy = MLPPolicy(4, 2, seed=0)
        rollout = Rollout(policy, VectorSlots(venv, seed=0))
        lengths: list[int] = []

        def collect() -> list[list[Episode]]:
            rows = rollout.stretch(32)
            lengths.extend(len(e) for row in rows for e in row if e.ended)
            for step in (step for row in rows for episode in row for step in episode.steps):
                step.reward *= sign
            return rows

        options = Options(
            advantage="gae",
            gamma=0.98,
            lam=0.9,
            epochs=10,
            minibatches=2,
            lr=3e-3,
            value_lr=5e-3,
            normalize=True,
            max_grad_norm=0.5,
        )
        train(policy, collect, options, updates=20)
        slots = Slots(lambda: gym.make("CartPole-v1"), 10)
        played = Rollout(policy, slots, [Start(seed=s) for s in range(10)], greedy=True).episodes()
        mean = float(np.mean([len(episode) for episode in played]))
        assert np.mean(lengths[:10]) < 60
        assert mean > 200 if sign > 0 else mean < 15


class Notebook(gym.Env[str, str]):
    """Three turns: the agent says a letter, the tool answers with a few digits; paid .25, .5, 1 by turn."""

    observation_space = UnicodeText(64)
    action_space = UnicodeText(64)

    def __init__(self, digits: int = 2) -> None:
        self.digits = digits
        self.turn = 0

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[str, dict]:
        super().reset(seed=seed)
        self.turn = 0
        return "a?", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict]:
        self.turn += 1
        over = self.turn == 3
        info = {"is_success": True, "stop_reason": "answered"} if over else {}
        return "" if over else "7" * self.digits, [0.25, 0.5, 1.0][self.turn - 1], over, False, info

    def expert_action(self, k: int = 1) -> str:
        return "bc"[: 1 + self.turn % 2]


class TestTool:
    """A three-turn toy with masked tool output."""

    alphabet = "a?bc7.!"

    def play(self, digits: int = 2, seed: int = 0) -> tuple[CharTablePolicy, list[Episode]]:
        policy = CharTablePolicy(self.alphabet, end=".", longest=6, seed=4)
        with torch.no_grad():  # the end is likely, so turns differ in length and none is cut
            policy.table[:, self.alphabet.index(".")] = 1.5
        policy.generator.manual_seed(seed)
        slots = Slots(lambda: Notebook(digits), 4)
        return policy, Rollout(policy, slots, [Start(group=0) for _ in range(4)]).episodes()

    def test_mask_is_true_exactly_on_sampled_tokens(self) -> None:
        policy, episodes = self.play()
        batch = policy.collate([[episode] for episode in episodes])
        for b, episode in enumerate(episodes):
            sampled = [token for step in episode.steps for token in (step.record or {})["ids"].tolist()]
            assert batch.inputs["tokens"][b][batch.mask[b]].tolist() == sampled
            text = "".join(self.alphabet[t] for t in batch.inputs["tokens"][b][: int(batch.cost[b])].tolist())
            assert text.startswith("a?") and text.count("77") == 2
        assert not batch.final.any()

    def test_reward_of_a_turn_is_at_its_last_token(self) -> None:
        policy, episodes = self.play()
        batch = policy.collate([[episode] for episode in episodes])
        for b, episode in enumerate(episodes):
            ends = np.cumsum([len((step.record or {})["ids"]) for step in episode.steps]) - 1
            paid = batch.reward[b][batch.mask[b]]
            assert [paid[e].item() for e in ends] == [0.25, 0.5, 1.0]
            assert paid.sum() == 1.75
            steps = batch.env_steps[b][batch.mask[b]]
            assert steps.sum() == 3 and [steps[e].item() for e in ends] == [1, 1, 1]

    def test_advantages_do_not_see_the_tool(self) -> None:
        results = []
        for digits in (1, 5):
            policy, episodes = self.play(digits)
            batch = policy.collate([[episode] for episode in episodes])
            value = torch.where(batch.mask, 0.1, torch.nan)
            results.append([advantages(batch, value, 0.9, 0.8)[b][batch.mask[b]] for b in range(4)])
        for one, five in zip(*results, strict=True):
            assert torch.equal(one, five)

    def test_no_gradient_at_tokens_that_the_policy_did_not_write(self) -> None:
        policy, episodes = self.play()
        options = Options(advantage="gae", entropy_coef=0.1)
        batch = prepare(policy, policy.collate([[episode] for episode in episodes]), options)[0]
        scores = policy.scores(batch).detach().requires_grad_()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(policy, "evaluate", lambda decisions: policy.evaluate_scores(decisions, scores))
            policy_loss(policy, batch, options)[0].backward()
        assert scores.grad is not None
        assert bool((scores.grad[~batch.mask] == 0).all())
        assert bool((scores.grad[batch.mask].abs().sum(-1) > 0).all())

    def test_a_cut_by_the_policy_ends_the_episode_terminated(self) -> None:
        policy = CharTablePolicy(self.alphabet, end=".", longest=2, seed=4)
        with torch.no_grad():
            policy.table[:, self.alphabet.index(".")] = -20.0
        episodes = Rollout(policy, Slots(Notebook, 2), [Start(), Start()]).episodes()
        assert [len(episode) for episode in episodes] == [1, 1]
        assert episodes[0].steps[-1].terminated and not episodes[0].steps[-1].truncated
        assert episodes[0].stop_reason == "length" and not episodes[0].is_success
        batch = policy.collate([[episode] for episode in episodes])
        assert batch.terminated.sum() == 2 and not batch.final.any()

    def test_a_label_is_learnt_after_the_learners_history(self) -> None:
        policy, _ = self.play()
        rollout = Rollout(policy, Slots(Notebook, 2), [Start(), Start()], ask=True)
        episodes = rollout.episodes()
        batch = policy.collate([[episode] for episode in episodes], learn="label")
        assert len(batch) == 6  # a row a turn
        labels = ["b.", "bc.", "b."] * 2
        for b, label in enumerate(labels):
            learnt = batch.inputs["tokens"][b][batch.mask[b]].tolist()
            assert "".join(self.alphabet[t] for t in learnt) == label
        assert bool(torch.isnan(batch.logp).all())
        own = (episodes[0].steps[0].record or {})["ids"].tolist()
        assert batch.inputs["tokens"][1, 2 : 2 + len(own)].tolist() == own


class TestChunk:
    """Control in open-loop chunks: the discount is gamma ** k."""

    def test_by_steps_and_by_wrapper_are_the_same(self) -> None:
        policy = ChunkPolicy(9, 2, chunk=3)
        note = {"logp": np.float32(0)}
        steps = [Step(s, 0, 1.0, record=note if s % 3 == 0 else None) for s in range(8)]
        steps[-1].terminated = True
        by_step = policy.collate([[Episode(steps=steps, final_observation=8)]])
        chunks = [
            Step(s, 0, r, info={"step_rewards": [1.0] * k}, record=note)
            for s, r, k in ((0, 3.0, 3), (3, 3.0, 3), (6, 2.0, 2))
        ]
        chunks[-1].terminated = True
        by_chunk = policy.collate([[Episode(steps=chunks, final_observation=8)]])
        for batch in (by_step, by_chunk):
            assert batch.mask.tolist() == [[True, True, True]]
            assert batch.reward.tolist() == [[3.0, 3.0, 2.0]]
            assert batch.env_steps.tolist() == [[3, 3, 2]]
            assert batch.inputs["state"].tolist() == [[0, 3, 6]]
            assert batch.terminated.tolist() == [[False, False, True]]
        # gamma .9: d2 = 2 - .5; d1 = 3 + .9^3 * .5 - .5; d0 the same; lambda 1.
        discount = 0.9**3
        a2 = 1.5
        a1 = 2.5 + discount * 0.5 + discount * a2
        a0 = 2.5 + discount * 0.5 + discount * a1
        got = advantages(by_step, torch.full((1, 3), 0.5), 0.9, 1.0)
        assert got.tolist() == [[pytest.approx(a0), pytest.approx(a1), pytest.approx(a2)]]

    def test_a_truncated_chunk_bootstraps_by_the_steps_it_took(self) -> None:
        note = {"logp": np.float32(0)}
        steps = [Step(0, 0, 1.0, record=note), Step(1, 0, 1.0), Step(2, 0, 1.0, record=note), Step(3, 0, 1.0)]
        steps[-1].truncated = True
        batch = ChunkPolicy(9, 2, chunk=2).collate([[Episode(steps=steps, final_observation=4)]])
        assert batch.final.tolist() == [[False, False, True]]
        value = torch.tensor([[0.0, 0.0, 10.0]])
        # 2 + .81 * (2 + .81 * 10) for the first, 2 + .81 * 10 for the second.
        assert advantages(batch, value, 0.9, 1.0)[batch.mask].tolist() == pytest.approx([2 + 0.81 * 10.1, 10.1])

    def test_the_queue_is_memory(self) -> None:
        policy = ChunkPolicy(500, 2, chunk=4, seed=2)

        class Walk(gym.Env[np.int64, np.int64]):
            observation_space = gym.spaces.Discrete(500)
            action_space = gym.spaces.Discrete(2)

            def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.int64, dict]:
                super().reset(seed=seed)
                self.at = 0
                return np.int64(0), {}

            def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict]:
                self.at += 1
                return np.int64(self.at), 1.0, self.at == 10, False, {}

        (episode,) = Rollout(policy, Slots(Walk, 1), [Start()]).episodes()
        decided = [i for i, step in enumerate(episode.steps) if step.record is not None]
        assert decided == [0, 4, 8]
        assert policy.collate([[episode]]).env_steps.tolist() == [[4, 4, 2]]


class TestImitation:
    """A DAgger label and a forced expert action."""

    class Line(gym.Env[np.int64, np.int64]):
        """Walk right from 0 to 4; the expert says 1."""

        observation_space = gym.spaces.Discrete(5)
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.int64, dict]:
            super().reset(seed=seed)
            self.at, self.time = 0, 0
            return np.int64(0), {}

        def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict]:
            self.at = min(max(self.at + (1 if action else -1), 0), 4)
            self.time += 1
            return np.int64(self.at), float(self.at == 4), self.at == 4, self.time == 12 and self.at < 4, {}

        def expert_action(self, k: int = 1) -> np.int64:
            return np.int64(1)

    def test_labels_are_learnt_where_they_were_asked(self) -> None:
        policy = TablePolicy(5, 2)
        with torch.no_grad():
            policy.logits[:, 0] = 3.0  # goes left: visits state 0 above all
        episodes = Rollout(policy, Slots(self.Line, 1), [Start()], ask=True).episodes()
        batch = policy.collate([episodes], learn="label")
        assert batch.mask.sum() == len(episodes[0])
        assert bool((batch.inputs["action"][batch.mask] == 1).all())
        assert batch.inputs["state"][batch.mask].tolist() == [int(s.observation) for s in episodes[0].steps]
        assert bool(torch.isnan(batch.logp[batch.mask]).all())
        optimizer = torch.optim.Adam(policy.parameters(), 0.3)
        for _ in range(50):
            loss = total(-policy.evaluate(batch).logp, batch.mask, batch.mask.sum())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        assert policy.logits.softmax(-1)[0, 1] > 0.9

    def test_a_forced_action_is_no_decision_and_its_reward_goes_to_the_one_before(self) -> None:
        policy = TablePolicy(5, 2)
        with torch.no_grad():
            policy.logits[:, 1] = 20.0
        force = [False, True, False, True]
        times = iter(force)
        rollout = Rollout(
            policy, Slots(self.Line, 1), [Start()], force=lambda slot, expert: expert if next(times) else None
        )
        (episode,) = rollout.episodes()
        assert [step.record is None for step in episode.steps] == force
        assert [step.label for step in episode.steps] == [1, 1, 1, 1]
        batch = policy.collate([[episode]])
        assert batch.inputs["state"][batch.mask].tolist() == [0, 2]
        assert batch.reward[batch.mask].tolist() == [0.0, 1.0]
        assert batch.env_steps[batch.mask].tolist() == [2, 2]
        assert batch.terminated[batch.mask].tolist() == [False, True]


class TestPreference:
    """A DPO pair."""

    def test_a_pair_is_two_rows(self) -> None:
        policy = CharTablePolicy("q12.", end=".", seed=1)
        reference = policy.snapshot()
        # Answers of somebody else, out of a file: nobody's records.
        episodes = [Episode(steps=[Step("q", text, terminated=True)], final_observation="") for text in ("1", "22")]
        batch = policy.collate([[episode] for episode in episodes], learn="action")
        assert batch.mask.sum(dim=1).tolist() == [2, 3] and bool(torch.isnan(batch.logp[batch.mask]).all())
        assert not policy.collate([[episode] for episode in episodes]).mask.any()
        batch.pair, batch.preference = torch.tensor([0, 0]), torch.tensor([1, 0])

        def margin(p: CharTablePolicy) -> torch.Tensor:
            ratio = episode_sums(p.evaluate(batch).logp - reference.evaluate(batch).logp, batch.mask, batch.episode)[
                :, 0
            ]
            return ratio[batch.preference == 1] - ratio[batch.preference == 0]

        assert dpo(margin(policy), 0.1).item() == pytest.approx(0.693147, abs=1e-6)
        before = [episode_sums(policy.evaluate(batch).logp, batch.mask, batch.episode)[b, 0].item() for b in range(2)]
        optimizer = torch.optim.SGD(policy.parameters(), 1.0)
        dpo(margin(policy), 0.1).sum().backward()
        optimizer.step()
        after = [episode_sums(policy.evaluate(batch).logp, batch.mask, batch.episode)[b, 0].item() for b in range(2)]
        assert after[0] > before[0] and after[1] < before[1]
        assert margin(policy).item() > 0

    def test_value(self) -> None:
        assert dpo(torch.tensor([6.0]), 0.1).item() == pytest.approx(0.437488, abs=1e-6)


class TestLayout:
    def test_rows_of_tokens_with_a_last_observation(self) -> None:
        steps = [Step("", ""), Step("", "", reward=2.0)]
        batch, spans = layout([[Episode(steps=steps, final_observation="")]], [[[(2, 3), (1, 2), 4]]])
        assert batch.mask.tolist() == [[False] * 2 + [True] * 3 + [False] + [True] * 2 + [False] * 5]
        assert batch.final.nonzero().tolist() == [[0, 12]]
        assert batch.turn.tolist() == [[0] * 5 + [1] * 3 + [2] * 5]
        assert batch.env_steps.tolist() == [[0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0]]
        assert [(span.start, span.first, span.end) for span in spans[0]] == [(0, 2, 5), (5, 6, 8), (8, 12, 13)]

    def test_a_reward_before_the_first_decision_is_credited_to_none(self) -> None:
        steps = [Step(0, 0, reward=5.0), Step(1, 0, reward=1.0, terminated=True)]
        batch, _ = layout([[Episode(steps=steps)]], [[[(1, 0), (0, 1), 0]]])
        assert batch.reward.tolist() == [[0.0, 1.0]]

    def test_a_reward_never_reaches_the_episode_before(self) -> None:
        one = Episode(steps=[Step(0, 0, 1.0, terminated=True)])
        two = Episode(steps=[Step(0, 0, 7.0), Step(0, 0, 2.0, terminated=True)])
        batch, _ = layout([[one, two]], [[[(0, 1), 0], [(0, 0), (0, 1), 0]]])
        assert batch.reward.tolist() == [[1.0, 2.0]]

    def test_a_last_position_after_a_termination_is_read_by_reward_models_alone(self) -> None:
        episode = states([0, 1, 2], [0.0, 1.0])
        batch = TablePolicy(3, 2).collate([[episode]], last="always")
        assert batch.final.tolist() == [[False, False, True]] and batch.inputs["state"].tolist() == [[0, 1, 2]]
        value = torch.tensor([[0.5, 0.25, 100.0]])
        assert next_values(value, batch.mask, batch.final, batch.terminated).tolist() == [[0.25, 0.0, 0.0]]
        open_ended = states([0, 1, 2], [0.0, 1.0], end="")
        assert not TablePolicy(3, 2).collate([[open_ended]], last="never").final.any()

    def test_rows_of_labels_know_where_they_came_from(self) -> None:
        policy = CharTablePolicy("ab.", end=".")
        episodes = [
            Episode(steps=[Step("a", "b", label="a"), Step("a", "b", label="b")]),
            Episode(steps=[Step("b", "a")]),
        ]
        episodes.append(Episode(steps=[Step("b", "b", label="a")]))
        batch = policy.collate([[episode] for episode in episodes], learn="label")
        assert batch.source.tolist() == [0, 0, 2] and not batch.final.any()

    def test_widths_that_do_not_fit_are_refused(self) -> None:
        episode = Episode(steps=[Step(0, 0)])
        with pytest.raises(ValueError, match="1 steps"):
            layout([[episode]], [[[(0, 1), (0, 1), 0]]])
        with pytest.raises(ValueError, match="no step"):
            layout([[Episode()]], [[[0]]])

    def test_rows_without_a_group_have_one_of_their_own(self) -> None:
        episodes = [Episode(steps=[Step(0, 0, terminated=True)], group=group) for group in (4, None, 4, None)]
        batch, _ = layout([[episode] for episode in episodes], [[[(0, 1), 0]]] * 4)
        assert len(set(batch.group.tolist())) == 3 and batch.group[0] == batch.group[2] == 4

    def test_select_and_to_keep_columns_together(self) -> None:
        rows = [[states([s, s], [float(s)])] for s in range(4)]
        batch = TablePolicy(4, 2).collate(rows)
        batch.advantage = torch.arange(4.0)[:, None]
        part = batch.select([2, 0]).to("cpu")
        assert part.reward[:, 0].tolist() == [2.0, 0.0]
        assert part.inputs["state"][:, 0].tolist() == [2, 0]
        assert part.advantage is not None and part.advantage[:, 0].tolist() == [2.0, 0.0]
        assert part.old_logp is None and len(batch.select(torch.tensor([True, False, False, True]))) == 2


def test_nan_outside_the_mask_reaches_neither_loss_nor_gradient() -> None:
    logp = torch.tensor([[0.0, torch.nan]], requires_grad=True)
    loss = total(-select(logp, torch.tensor([[True, False]])) - 1, torch.tensor([[True, False]]), 1)
    loss.backward()
    assert loss.item() == -1.0 and logp.grad is not None and logp.grad.tolist() == [[-1.0, 0.0]]
