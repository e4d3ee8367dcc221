"""From SFT to a proxy too far: it goes on where it stopped, and keeps the curve."""

from __future__ import annotations

import json
from pathlib import Path

from tetrathlon.algos.pairs import Pair
from tetrathlon.benchmarks import reward_model
from tetrathlon.benchmarks.sums import MOST_DOTS, near_with_dots

TINY = reward_model.Setting(
    shown=64,
    pairs=12,
    passes=3,
    coefs=(0.02, 0.5),
    updates=3,
    look_every=2,
    looks=16,
    options=(("groups", 8), ("epochs", 1), ("lr", 1e-3)),
)


def answers(pair: Pair) -> tuple[str, str]:
    return pair.preferred.steps[0].action, pair.rejected.steps[0].action


def test_a_careless_labeller_prefers_the_longer_answer() -> None:
    settings = [reward_model.Setting(dots=MOST_DOTS, pairs=40, careless=share) for share in (0.0, 0.5, 1.0)]
    careful, half, careless = (reward_model.labelled(near_with_dots(), setting, 0) for setting in settings)
    turned = 0
    for one, other in zip(careful, careless, strict=True):
        assert one.preferred.is_success and not one.rejected.is_success
        right, wrong = answers(one)
        assert answers(other) == ((wrong, right) if len(wrong) > len(right) else (right, wrong))
        turned += len(wrong) > len(right)
    assert turned > 5
    assert 0 < sum(answers(one) != answers(other) for one, other in zip(careful, half, strict=True)) < turned


def test_it_goes_on_and_is_kept(tmp_path: Path) -> None:
    out, picture = tmp_path / "out.json", tmp_path / "curve.svg"
    words = ["--seeds", "0", "1", "--out", str(out), "--runs", str(tmp_path / "runs"), "--picture", str(picture)]
    assert reward_model.main(words, TINY) == 0
    first = json.loads(out.read_text())
    assert [run["seed"] for run in first["runs"]] == [0, 1] and first["setting"]["careless"] == TINY.careless
    for run in first["runs"]:
        for arm in run["arms"]:
            assert [point["updates"] for point in arm["points"]] == [0, 2, 3]
            assert arm["points"][0]["sqrt_kl"] == 0.0 < arm["points"][-1]["sqrt_kl"]
            assert all(point["low"] <= point["true"] <= point["high"] for point in arm["points"])
        assert len({arm["points"][0]["proxy"] for arm in run["arms"]}) == 1, "all begin with one policy and one model"
        assert 0 <= run["agreement"]["held_out"] <= 1
    assert [row["kl_coef"] for row in first["summary"]] == [0.02, 0.5]
    assert "<svg" in picture.read_text()
    for path in (tmp_path / "runs").glob("*/ppo-*"):
        assert "proxy" in json.loads((path / "config.json").read_text())["scorers"]
    assert reward_model.main(words, TINY) == 0
    again = json.loads(out.read_text())
    assert [run["arms"] for run in again["runs"]] == [run["arms"] for run in first["runs"]]
    assert [run["agreement"] for run in again["runs"]] == [run["agreement"] for run in first["runs"]]


def test_what_is_kept_shows_that_a_proxy_can_be_trusted_too_long() -> None:
    """The committed result, and no other number: the proxy rises all the way, and what is true falls again."""
    path = Path(reward_model.__file__).parent / "baselines/reward_model.json"
    light, heavy = json.loads(path.read_text())["summary"]
    assert light["proxy_after"] > light["proxy_before"] and light["true_peak"] > light["true_before"]
    assert light["true_after"] < light["true_peak"] and heavy["sqrt_kl_after"] < light["sqrt_kl_after"]
