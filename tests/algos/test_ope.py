"""Off-policy estimates: exact over every way to fare in a small world, by hand, and at their far ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.algos.worlds import BEHAVIOUR, NOISY, SURE, TARGET, Log, World
from tetrathlon.algos.ope import OffPolicyValue, doubly_robust, effective_sample_size, importance_sampling, per_decision

GAMMA, HORIZON = 0.9, 3
Estimator = Callable[..., OffPolicyValue]
PLAIN: list[Estimator] = [importance_sampling, per_decision]


def columns(log: Log, world: World) -> dict[str, Any]:
    return {
        "log_ratio": log.log_ratio(TARGET, BEHAVIOUR),
        "reward": log.reward,
        "mask": log.mask,
        "env_steps": world.steps_of(log),
        "gamma": GAMMA,
    }


def modelled(log: Log, q: Tensor, v: Tensor) -> dict[str, Any]:
    """q [H, S, A] and v [H, S] at the decisions of a log, without last states."""
    t = torch.arange(log.mask.shape[1])
    return {
        "q": torch.where(log.mask, q[t, log.state, log.action], torch.nan),
        "v": torch.where(log.mask, v[t, log.state], torch.nan),
        "terminated": log.terminated,
        "final": torch.zeros_like(log.mask),
    }


def with_last(given: dict[str, Any], log: Log, last: Tensor) -> dict[str, Any]:
    """With one more column: the last state, where the task did not end."""
    wide = {name: torch.nn.functional.pad(x, (0, 1)) if isinstance(x, Tensor) else x for name, x in given.items()}
    rows = torch.arange(len(log.mask))
    count = log.mask.sum(1)
    is_open = ~log.terminated[rows, count - 1]
    wide["final"][rows[is_open], count[is_open]] = True
    wide["v"][rows[is_open], count[is_open]] = last[log.last[is_open]]
    wide["log_ratio"][:, -1] = wide["reward"][:, -1] = wide["q"][:, -1] = torch.nan
    return wide


def wrong_model(policy: Tensor, seed: int = 0) -> tuple[Tensor, Tensor]:
    """A q that knows nothing, and the v that goes with it."""
    q = torch.randn(HORIZON, 2, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return q, (policy * q).sum(-1)


def often(world: World) -> Log:
    """Every way to fare as often as the behaviour does: what a log becomes when it is long enough."""
    log = world.ways(BEHAVIOUR, HORIZON)
    count = log.chance * 2**17
    assert torch.equal(count, count.round())
    return log.rows(torch.repeat_interleave(count.long()))


class TestExact:
    """True values by dynamic programming, expectations over every way to fare."""

    log = NOISY.ways(BEHAVIOUR, HORIZON)
    true = NOISY.value(TARGET, HORIZON, GAMMA)

    def expected(self, terms: Tensor) -> float:
        return float(self.log.chance @ terms)

    def test_the_world_tells_the_policies_apart(self) -> None:
        assert abs(self.true - NOISY.value(BEHAVIOUR, HORIZON, GAMMA)) > 0.5
        assert len(self.log.chance) > 500 and not self.log.mask.all()

    @pytest.mark.parametrize("estimator", PLAIN)
    def test_importance_sampling_is_unbiased(self, estimator: Estimator) -> None:
        found = estimator(**columns(self.log, NOISY))
        assert self.expected(found.terms) == pytest.approx(self.true, abs=1e-9)
        assert float(found.terms.mean()) == found.value

    @pytest.mark.parametrize("seed", range(3))
    def test_doubly_robust_is_unbiased_whatever_the_model(self, seed: int) -> None:
        model = modelled(self.log, *wrong_model(TARGET, seed))
        found = doubly_robust(**columns(self.log, NOISY), **model)
        assert self.expected(found.terms) == pytest.approx(self.true, abs=1e-9)

    def test_a_value_of_another_policy_biases(self) -> None:
        q, _ = wrong_model(TARGET)
        model = modelled(self.log, q, (BEHAVIOUR * q).sum(-1))
        found = doubly_robust(**columns(self.log, NOISY), **model)
        assert abs(self.expected(found.terms) - self.true) > 0.05

    def test_each_has_less_noise_than_the_one_before(self) -> None:
        given = columns(self.log, NOISY)
        model = modelled(self.log, *(x[:HORIZON] for x in NOISY.values(TARGET, HORIZON, GAMMA)))
        estimates = [importance_sampling(**given), per_decision(**given), doubly_robust(**given, **model)]
        noise = [self.expected((each.terms - self.true) ** 2) for each in estimates]
        assert noise[0] > 1.1 * noise[1] > 1.1 * 1.1 * noise[2]

    @pytest.mark.parametrize("seed", [None, 0])
    def test_a_truncation_goes_on_with_the_value_of_the_true_last_state(self, seed: int | None) -> None:
        _, endless = NOISY.values(TARGET, 500, GAMMA)
        worth = endless[0]
        q, v = NOISY.values(TARGET, HORIZON, GAMMA, last=worth) if seed is None else wrong_model(TARGET, seed)
        given = with_last({**columns(self.log, NOISY), **modelled(self.log, q, v)}, self.log, worth)
        found = doubly_robust(**given)
        true = float(worth @ torch.tensor(NOISY.start, dtype=torch.float64))
        assert abs(true - self.true) > 0.5
        assert self.expected(found.terms) == pytest.approx(true, abs=1e-9)

    def test_with_the_right_model_a_sure_world_has_no_noise(self) -> None:
        log = SURE.ways(BEHAVIOUR, HORIZON)
        q, v = SURE.values(TARGET, HORIZON, GAMMA)
        for weighted in (False, True):
            found = doubly_robust(**columns(log, SURE), **modelled(log, q, v), weighted=weighted)
            assert found.value == pytest.approx(SURE.value(TARGET, HORIZON, GAMMA), abs=1e-9)
            assert found.standard_error < 1e-9
        assert importance_sampling(**columns(log, SURE)).standard_error > 0.1

    def test_weighted_forms_are_right_in_the_limit(self) -> None:
        log = often(NOISY)
        given = columns(log, NOISY)
        model = modelled(log, *wrong_model(TARGET))
        for found in (
            importance_sampling(**given, weighted=True),
            per_decision(**given, weighted=True),
            doubly_robust(**given, **model, weighted=True),
        ):
            assert found.value == pytest.approx(self.true, abs=1e-9)
            assert float(found.terms.mean()) == pytest.approx(found.value)

    def test_standard_errors_are_what_repeated_logs_show(self) -> None:
        generator = torch.Generator().manual_seed(0)
        model = wrong_model(TARGET)
        values: dict[str, list[float]] = {}
        errors: dict[str, list[float]] = {}
        for _ in range(300):
            log = self.log.rows(torch.multinomial(self.log.chance, 400, replacement=True, generator=generator))
            given = columns(log, NOISY)
            for weighted in (False, True):
                for name, found in (
                    ("is", importance_sampling(**given, weighted=weighted)),
                    ("pd", per_decision(**given, weighted=weighted)),
                    ("dr", doubly_robust(**given, **modelled(log, *model), weighted=weighted)),
                ):
                    values.setdefault(f"{name}{weighted}", []).append(found.value)
                    errors.setdefault(f"{name}{weighted}", []).append(found.standard_error)
        for name, found_values in values.items():
            spread = float(torch.tensor(found_values).std())
            assert float(torch.tensor(errors[name]).mean()) == pytest.approx(spread, rel=0.15), name
            assert sum(found_values) / 300 == pytest.approx(self.true, abs=0.15), name
        assert float(torch.tensor(values["isTrue"]).std()) < float(torch.tensor(values["isFalse"]).std())

    def test_ratios_turned_around_are_wrong(self) -> None:
        given = columns(self.log, NOISY)
        given["log_ratio"] = -given["log_ratio"]
        assert abs(self.expected(per_decision(**given).terms) - self.true) > 0.5


class TestByHand:
    """Two episodes; ratios (2, .5) and (.5), pay (1, 2) and (4), a discount of .5."""

    log_ratio = torch.tensor([[2.0, 0.5], [0.5, torch.nan]]).log()
    reward = torch.tensor([[1.0, 2.0], [4.0, torch.nan]])
    mask = torch.tensor([[True, True], [True, False]])
    given: dict[str, Any] = {"env_steps": torch.tensor([[1, 1], [1, -3]]), "gamma": 0.5}  # noqa: RUF012

    def of(self, estimator: Estimator, **options: Any) -> OffPolicyValue:
        return estimator(self.log_ratio, self.reward, self.mask, **self.given, **options)

    def test_whole_returns(self) -> None:
        found = self.of(importance_sampling)
        assert found.terms.tolist() == pytest.approx([2.0, 2.0])
        assert (found.value, found.standard_error) == (pytest.approx(2.0), pytest.approx(0.0, abs=1e-6))
        assert found.ess == pytest.approx(1.5**2 / 1.25)

    def test_whole_returns_weighted(self) -> None:
        found = self.of(importance_sampling, weighted=True)
        assert found.value == pytest.approx(4 / 1.5)
        # (2/3)(2 - 8/3) and (1/3)(4 - 8/3), both 4/9 in size; times sqrt(2 / 1).
        assert found.standard_error == pytest.approx(8 / 9, abs=1e-6)

    def test_per_decision(self) -> None:
        found = self.of(per_decision)
        assert found.terms.tolist() == pytest.approx([2 * 1 + 1 * 0.5 * 2, 2.0])
        assert (found.value, found.standard_error) == (pytest.approx(2.5), pytest.approx(0.5))

    def test_per_decision_weighted_keeps_those_that_are_over(self) -> None:
        assert self.of(per_decision, weighted=True).value == pytest.approx((2 + 2) / 2.5 + 1 / 1.5)

    def test_clipped(self) -> None:
        assert self.of(importance_sampling, clip=0.8).terms.tolist() == pytest.approx([1.6, 2.0])
        assert self.of(per_decision, clip=0.8).terms.tolist() == pytest.approx([0.8 * 1 + 0.8 * 1, 2.0])
        weighted = self.of(importance_sampling, clip=0.8, weighted=True)
        assert weighted.value == pytest.approx(3.6 / 1.3)
        assert weighted.ess == pytest.approx(1.3**2 / (0.64 + 0.25))
        assert self.of(importance_sampling, clip=100.0).value == pytest.approx(2.0)

    def test_doubly_robust(self) -> None:
        model = {
            "q": torch.tensor([[1.0, 3.0], [2.0, torch.nan]]),
            "v": torch.tensor([[1.5, 2.0], [1.0, torch.nan]]),
            "terminated": torch.tensor([[False, True], [True, False]]),
            "final": torch.zeros(2, 2).bool(),
        }
        # The recursion: V_1 = 2 + .5 (2 - 3) = 1.5, V_0 = 1.5 + 2 (1 + .5 * 1.5 - 1) = 3; and 1 + .5 (4 - 2) = 2.
        assert self.of(doubly_robust, **model).terms.tolist() == pytest.approx([3.0, 2.0])
        weighted = self.of(doubly_robust, **model, weighted=True)
        assert weighted.value == pytest.approx(1.25 + (2 * 1 + 0.5 * 2) / 2.5 - 0.5 / 1.5)
        nothing = {**model, "q": torch.zeros(2, 2), "v": torch.zeros(2, 2)}
        for each in (False, True):
            same = self.of(per_decision, weighted=each)
            assert self.of(doubly_robust, **nothing, weighted=each).terms.tolist() == pytest.approx(same.terms.tolist())

    def test_a_last_state_behind_a_termination_is_worth_nothing(self) -> None:
        model = {"q": torch.zeros(2, 2), "v": torch.tensor([[0.0, 0.0], [0.0, 100.0]]), "terminated": self.mask}
        for ends, wanted in ((True, 0.5 * 4), (False, 0.5 * (4 + 0.5 * 100))):
            model["terminated"] = torch.tensor([[False, True], [ends, False]])
            found = self.of(doubly_robust, **model, final=~self.mask)
            assert found.terms[1].item() == pytest.approx(wanted)

    def test_the_discount_goes_by_environment_steps(self) -> None:
        given = {**self.given, "env_steps": torch.tensor([[3, 1], [1, 1]])}
        found = per_decision(self.log_ratio, self.reward, self.mask, **given)
        assert found.terms.tolist() == pytest.approx([2 * 1 + 1 * 0.125 * 2, 2.0])
        inside_a_turn = {**self.given, "env_steps": torch.tensor([[0, 1], [1, 1]])}
        found = per_decision(self.log_ratio, self.reward, self.mask, **inside_a_turn)
        assert found.terms.tolist() == pytest.approx([2 * 1 + 1 * 2, 2.0])

    def test_a_discount_in_full_precision(self) -> None:
        """1000 steps at .999: in float32 the power is off in the sixth digit."""
        reward, mask = torch.zeros(1, 1001), torch.ones(1, 1001).bool()
        reward[0, -1] = 1
        found = per_decision(reward * 0, reward, mask, env_steps=torch.ones(1, 1001).long(), gamma=0.999)
        assert found.value == pytest.approx(0.999**1000, rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_policy_that_played_gets_the_mean_return(weighted: bool) -> None:
    log = NOISY.ways(BEHAVIOUR, HORIZON)
    given = columns(log, NOISY)
    given["log_ratio"] = torch.where(log.mask, 0.0, torch.nan)
    elapsed = torch.where(log.mask, given["env_steps"], 0).cumsum(1) - torch.where(log.mask, given["env_steps"], 0)
    paid = torch.where(log.mask, GAMMA ** elapsed.double() * log.reward, 0.0).sum(1)
    for estimator in PLAIN:
        found = estimator(**given, weighted=weighted)
        assert found.value == pytest.approx(float(paid.mean()))
        assert found.standard_error == pytest.approx(float(paid.std()) / len(paid) ** 0.5)
        assert found.ess == pytest.approx(len(paid))
        assert found.terms.tolist() == pytest.approx(paid.tolist())


def test_with_equal_weights_both_forms_are_as_sure() -> None:
    log = NOISY.ways(BEHAVIOUR, HORIZON)
    given = {**columns(log, NOISY), **modelled(log, *wrong_model(TARGET))}
    given["log_ratio"] = torch.zeros_like(log.reward)
    given["v"] = 10 * given["v"]  # so that the first states tell much
    plain, shared = (doubly_robust(**given, weighted=weighted) for weighted in (False, True))
    assert shared.terms.tolist() == pytest.approx(plain.terms.tolist())
    assert shared.standard_error == pytest.approx(plain.standard_error)
    assert plain.standard_error == pytest.approx(float(plain.terms.std()) / len(plain.terms) ** 0.5)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), wide=st.integers(0, 4), weighted=st.booleans())
def test_gaps_padding_and_what_stands_in_them_change_nothing(seed: int, wide: int, weighted: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    log = NOISY.ways(BEHAVIOUR, 2).rows(torch.randperm(60, generator=generator)[:7])
    given = {**columns(log, NOISY), **modelled(log, *(x[:2] for x in wrong_model(TARGET, seed)))}
    given = with_last(given, log, torch.tensor([1.0, -2.0], dtype=torch.float64))
    before = doubly_robust(**given, weighted=weighted)
    length = given["mask"].shape[1] + wide
    at = torch.stack([torch.randperm(length, generator=generator)[: length - wide].sort().values for _ in range(7)])
    for name, x in given.items():
        if isinstance(x, Tensor):
            junk: Any = {"mask": False, "final": False, "terminated": True, "env_steps": -5}.get(name, torch.nan)
            given[name] = torch.full((7, length), junk, dtype=x.dtype).scatter(1, at, x)
    after = doubly_robust(**given, weighted=weighted)
    assert after.terms.tolist() == pytest.approx(before.terms.tolist(), abs=1e-12)
    assert after.ess == pytest.approx(before.ess)
    order = torch.randperm(7, generator=generator)
    turned: dict[str, Any] = {name: x[order] if isinstance(x, Tensor) else x for name, x in given.items()}
    again = doubly_robust(**turned, weighted=weighted)
    assert again.terms.tolist() == pytest.approx(before.terms[order].tolist(), abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), shift=st.sampled_from([-2000.0, -3.0, 700.0, 2000.0]))
def test_shared_weights_know_no_scale_and_stay_within_what_was_paid(seed: int, shift: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    ratio = 5 * torch.randn(6, 4, generator=generator, dtype=torch.float64)
    reward = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    mask = torch.ones(6, 4).bool()
    common: dict[str, Any] = {"env_steps": mask.long(), "gamma": 1.0, "weighted": True}
    moved = ratio.clone()
    moved[:, 0] += shift
    for estimator in PLAIN:
        before, after = (estimator(x, reward, mask, **common) for x in (ratio, moved))
        assert after.value == pytest.approx(before.value, rel=1e-6, abs=1e-9)
        assert after.standard_error == pytest.approx(before.standard_error, rel=1e-6, abs=1e-9)
        assert after.ess == pytest.approx(before.ess, rel=1e-6)
    paid = reward.sum(1)
    within = importance_sampling(ratio, reward, mask, **common).value
    assert float(paid.min()) - 1e-9 <= within <= float(paid.max()) + 1e-9


class TestFarEnds:
    mask = torch.ones(3, 1).bool()
    reward = torch.tensor([[1.0], [2.0], [7.0]])
    common: dict[str, Any] = {"env_steps": torch.ones(3, 1).long(), "gamma": 1.0}  # noqa: RUF012

    @pytest.mark.parametrize("estimator", PLAIN)
    def test_a_log_ratio_of_a_thousand(self, estimator: Estimator) -> None:
        ratio = torch.tensor([[1000.0], [1000.0], [-1000.0]])
        found = estimator(ratio, self.reward, self.mask, **self.common, weighted=True)
        assert found.value == pytest.approx(1.5) and found.ess == pytest.approx(2.0)
        assert found.standard_error == pytest.approx(0.5 * (0.5 * 3 / 2) ** 0.5)
        assert estimator(ratio, self.reward, self.mask, **self.common).value == torch.inf
        clipped = estimator(ratio, self.reward, self.mask, **self.common, clip=2.0)
        assert clipped.value == pytest.approx(2.0)

    @pytest.mark.parametrize("estimator", PLAIN)
    def test_an_infinite_weight_of_nothing_is_nothing(self, estimator: Estimator) -> None:
        ratio, reward = torch.tensor([[1000.0], [0.0], [0.0]]), torch.tensor([[0.0], [2.0], [7.0]])
        assert estimator(ratio, reward, self.mask, **self.common).value == pytest.approx(3.0)

    @pytest.mark.parametrize("estimator", PLAIN)
    def test_what_the_policy_never_does_weighs_nothing(self, estimator: Estimator) -> None:
        ratio = torch.tensor([[-torch.inf], [0.0], [0.0]])
        assert estimator(ratio, self.reward, self.mask, **self.common).value == pytest.approx(3.0)
        found = estimator(ratio, self.reward, self.mask, **self.common, weighted=True)
        assert found.value == pytest.approx(4.5) and found.ess == pytest.approx(2.0)
        with pytest.raises(ValueError, match="all weights are 0 from decision 0 on"):
            estimator(torch.full((3, 1), -torch.inf), self.reward, self.mask, **self.common, weighted=True)

    def test_one_episode_has_no_standard_error(self) -> None:
        for weighted in (False, True):
            one: dict[str, Any] = {"env_steps": torch.ones(1, 1).long(), "gamma": 1.0, "weighted": weighted}
            found = per_decision(torch.zeros(1, 1), torch.ones(1, 1), torch.ones(1, 1).bool(), **one)
            assert found.value == 1.0 and found.standard_error != found.standard_error


def test_effective_sample_size() -> None:
    weight = torch.tensor([[1.0, 1.0, 0.0, 2.0], [1.0, 3.0, 0.0, 0.0]])
    assert effective_sample_size(weight.log()).tolist() == pytest.approx([2.0, 1.6, 0.0, 1.0])
    assert float(effective_sample_size(torch.full((5,), -3000.0))) == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gamma": 1.5}, r"gamma must be in \[0, 1\], got 1.5"),
        ({"clip": 0.0}, "clip must be above 0, got 0.0"),
        ({"mask": torch.tensor([[True], [False]])}, "row 1 has no decision"),
        ({"mask": torch.ones(2, 1)}, "mask must be bool"),
        ({"log_ratio": torch.tensor([[torch.nan], [0.0]])}, "log_ratio is not finite at 1 decisions: nan at row 0, 0"),
        ({"log_ratio": torch.tensor([[torch.inf], [0.0]])}, "log_ratio is not finite"),
        ({"reward": torch.tensor([[0.0], [torch.inf]])}, "reward is not finite at 1 decisions: inf at row 1, 0"),
        ({"reward": torch.zeros(2, 2)}, r"reward must be \[2, 1\] as mask is, got \[2, 2\]"),
        ({"env_steps": torch.zeros(2, 2)}, r"env_steps must be \[2, 1\]"),
    ],
)
def test_refused(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "log_ratio": torch.zeros(2, 1),
        "reward": torch.zeros(2, 1),
        "mask": torch.ones(2, 1).bool(),
        "env_steps": torch.ones(2, 1).long(),
        "gamma": 1.0,
    }
    for estimator in PLAIN:
        with pytest.raises(ValueError, match=message):
            estimator(**{**given, **change})


def test_models_with_holes_are_refused() -> None:
    mask, final = torch.tensor([[True, False]]), torch.tensor([[False, True]])
    zero = torch.zeros(1, 2)
    given: dict[str, Any] = {"env_steps": mask.long(), "gamma": 1.0, "terminated": ~mask & mask, "final": final}
    holes = torch.tensor([[0.0, torch.nan]])
    with pytest.raises(ValueError, match="v is not finite"):
        doubly_robust(zero, zero, mask, q=zero, v=holes, **given)
    with pytest.raises(ValueError, match="q is not finite"):
        doubly_robust(zero, zero, mask, q=holes.flip(1), v=zero, **given)
