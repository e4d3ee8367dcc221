"""Which metrics are drawn where, and what of a curve reaches the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks.test_history import NAN, write
from tetrathlon.agents.statistics import wilson
from tetrathlon.benchmarks.figures import Curve, Figure, figures
from tetrathlon.benchmarks.plots import curves

KNOWN = re.findall(
    r"\S+",
    """
    success episode_reward reward entropy kl_old kl_ref clip_fraction clip_fraction_low clip_fraction_high grad_norm
    policy_loss value_loss kl_loss entropy_loss loss cut useful_groups informative_groups sampler_drift
    first_ratio_error advantage_std explained_variance lr steps decisions episodes episode_steps unscorable crashes
    seconds_play seconds_prepare seconds_optimize test/success test/reward length_right length_wrong cut_right
    cut_wrong changed cost kl_sampler staleness solved_instances kl_coef entropy_coef temperature value_lr
    accuracy margin reward_preferred reward_rejected logp_preferred logp_rejected score_preferred score_rejected
    imitation_loss
    """,
)


def drawn(history: Any) -> dict[str, Figure]:
    return {figure.title: figure for _, section in figures(history) for figure in section}


def test_every_metric_is_drawn_once(tmp_path: Path) -> None:
    terms = [f"reward_terms/{i}" for i in range(8)]
    unknown = ["strange", "of/one", "of/two", "a/b/c"]
    names = [*KNOWN, *terms, *unknown]
    history = write(tmp_path, [{"update": 0, **{name: 1000.0 + i for i, name in enumerate(names)}}])
    found = drawn(history)
    values = [float(curve.value[0]) for figure in found.values() for curve in figure.curves]
    shares = ("informative_groups", "useful_groups")  # of which the rest is drawn
    wanted = [1000.0 + i if name not in shares else -999.0 - i for i, name in enumerate(names)]
    assert sorted(values) == sorted(wanted)
    assert {title for title, figure in found.items() if "knows nothing" in figure.look} == {
        "strange",
        "of",
        "a/b: c",
    }
    assert [len(found[f"Reward terms, {i} of 2"].curves) for i in (1, 2)] == [6, 2]
    assert [curve.label for curve in found["of"].curves] == ["one", "two"]
    for figure in found.values():
        assert figure.axis and figure.look.endswith(".")


def test_what_was_not_told_is_not_drawn(tmp_path: Path) -> None:
    history = write(tmp_path, [{"update": 0, "entropy": 1.0, "reward_terms/x": 1.0}])
    assert list(drawn(history)) == ["Reward terms: x", "Entropy"]


def test_groups_without_a_signal_are_the_others(tmp_path: Path) -> None:
    history = write(tmp_path, [{"update": 0, "informative_groups": 0.75}])
    (curve,) = drawn(history)["Groups without a signal"].curves
    assert curve.value.tolist() == curve.mean.tolist() == [0.25]


def test_the_interval_of_train_is_that_of_the_episodes_under_the_mean(tmp_path: Path) -> None:
    told = [{"update": k, "success": (k % 4) / 4, "episodes": 10.0, "unscorable": 2.0} for k in range(60)]
    told[30]["success"] = None  # type: ignore[assignment]
    (curve,) = drawn(write(tmp_path, told))["Success"].curves
    assert curve.low is not None and curve.high is not None
    right = [8 * (k % 4) / 4 for k in range(60)]
    for at, members in ((0, (0, 1)), (10, (9, 10, 11)), (31, (31, 32)), (59, (58, 59))):
        low, high = wilson(sum(right[k] for k in members), 8 * len(members))
        assert curve.low[at] == pytest.approx(low) and curve.high[at] == pytest.approx(high)
    assert np.isnan([curve.mean[30], curve.low[30], curve.high[30]]).all()


def test_the_interval_of_test_is_the_one_that_was_told(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"update": k, "success": 0.5} for k in range(4)]
    lines[2] |= {"test/success": 0.5, "test/low": 0.3, "test/high": 0.7}
    train, test = drawn(write(tmp_path, lines))["Success"].curves
    assert train.low is None  # nobody said of how many episodes
    assert test.low is not None and test.high is not None
    assert (test.update.tolist(), test.low.tolist(), test.high.tolist()) == ([3.0], [0.3], [0.7])


def curve(value: Any, mean: Any = None) -> Curve:
    value = np.asarray(value, np.float64)
    return Curve("a curve", np.arange(1.0, len(value) + 1), value, value if mean is None else np.asarray(mean))


def strokes(svg: str) -> int:
    """How many strokes the longest line is drawn in."""
    return max(path.count("M ") for path in re.findall(r' d="([^"]*)"', svg))


def test_a_gap_is_a_gap() -> None:
    whole, broken = np.ones(60), np.ones(60)
    broken[30] = NAN
    assert strokes(curves(Figure("t", "y", "", (curve(whole),)), "t")) == 1
    assert strokes(curves(Figure("t", "y", "", (curve(broken),)), "t")) == 2
    assert "<svg" in curves(Figure("t", "y", "", (curve([NAN, NAN]),)), "t")


def test_a_long_run_is_thinned_and_keeps_its_peaks() -> None:
    value = np.ones(10_000)
    value[6001] = 900.0
    svg = curves(Figure("t", "y", "", (curve(value, np.ones(10_000)),)), "t")
    assert len(svg) < 100_000
    assert ">800<" in svg  # at the axis: the peak is inside the figure


def test_axes_are_named_and_fit() -> None:
    svg = curves(Figure("t", "norm of <it>", "", (curve([0.001, 1.0]),), log=True), "Figure 1")
    assert "norm of &lt;it&gt; (log scale)" in svg and ">update<" in svg and ">0.01<" in svg
    assert 'aria-label="Figure 1"' in svg and 'id="figure-1-' in svg
    share = curves(Figure("t", "in %", "", (curve([0.01, 0.02]),), is_share=True), "t")
    assert ">2.0<" in share and ">100<" not in share
    assert ">100<" in curves(Figure("t", "in %", "", (curve([0.01, 0.6]),), is_share=True), "t")
    low = curves(Figure("t", "y", "", (curve([-50.0, 1.0]),), least=-1.0), "t")
    assert "50<" not in low
