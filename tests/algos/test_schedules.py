"""How settings change over a run."""

from __future__ import annotations

import pytest

from tetrathlon.algos.options import Options
from tetrathlon.algos.schedules import at, between, rate


def test_learning_rates_grow_and_fall() -> None:
    seen = [rate(update, 6, warmup=2, decay="linear") for update in range(7)]
    assert seen == pytest.approx([0.5, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0])
    assert rate(2, 4, decay="cosine") == pytest.approx(0.5)
    assert rate(1, 4, decay="cosine") == pytest.approx(0.853553)
    assert rate(99, None, decay="linear") == rate(99, 4) == 1.0


def test_values_lie_on_a_line_from_the_first_update_to_the_last() -> None:
    assert [between(1.0, 0.0, update, 5) for update in range(7)] == pytest.approx([1, 0.75, 0.5, 0.25, 0, 0, 0])
    assert between(0.3, None, 3, 5) == between(0.3, 0.9, 3, None) == 0.3
    assert between(0.3, 0.9, 0, 1) == 0.3


def test_options_of_an_update() -> None:
    options = Options(kl_coef=0.1, kl_coef_end=0.3, entropy_coef=0.01, entropy_coef_end=0.0)
    assert at(options, 1, 3).kl_coef == pytest.approx(0.2) and at(options, 1, 3).entropy_coef == pytest.approx(0.005)
    assert at(options, 0, 3) == options and at(options, 2, None) == options
    assert Options(kl_coef_end=0.1).needs_reference and not Options().needs_reference
