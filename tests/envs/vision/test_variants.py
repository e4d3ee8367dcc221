"""What holds for every vision task, in each of its variants."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tetrathlon.envs import check, listings
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.vision.bandit import VisionBandit
from tetrathlon.envs.vision.environment import UNSEEN
from tetrathlon.envs.vision.variants import VARIANTS, Variant

IDS = [listing.id for listing in listings("vision")]
BANDITS = [env_id for env_id in IDS if isinstance(gym.make(env_id).unwrapped, VisionBandit)]
SEEDS = range(20)
SMALL: dict[str, dict[str, Any]] = {"tetrathlon/Zoom-v0": {"size": 64}}
"""Arguments of what takes long to draw."""
BLANK = np.zeros((8, 8, 3), np.uint8)
"""What is shown to who does not look: drawing takes long."""


def made(env_id: str, **kwargs: Any) -> Any:
    return gym.make(env_id, disable_env_checker=True, **{**SMALL.get(env_id, {}), **kwargs}).unwrapped


@pytest.mark.parametrize("variant", VARIANTS[1:])
@pytest.mark.parametrize("env_id", IDS)
def test_every_variant_keeps_the_contract(env_id: str, variant: Variant) -> None:
    skip = set() if variant == "twin" else {"new_process"}  # where covers are, the instance says, as it says its twin
    if variant == "no_image":  # then the first observation is not all that there is of an instance
        skip.add("splits")
    check(env_id, kwargs={**SMALL.get(env_id, {}), "variant": variant}, skip=skip)


@pytest.mark.parametrize("env_id", IDS)
def test_variants_are_one_instance_shown_in_several_ways(env_id: str) -> None:
    env = made(env_id)
    for seed in SEEDS:
        begun = {variant: env.reset(seed=seed, options={"variant": variant}) for variant in VARIANTS}
        assert len({info["task_id"] for _, info in begun.values()}) == 1
        assert len({observation["text"] for observation, _ in begun.values()}) == 1
        assert [info["variant"] for _, info in begun.values()] == list(VARIANTS)
        assert [info["has_image"] for _, info in begun.values()] == [variant != "no_image" for variant in VARIANTS]
        pictures = {variant: observation["image"] for variant, (observation, _) in begun.items()}
        assert (pictures["no_image"] == pictures["no_image"][0, 0]).all()
        for variant in VARIANTS[1:4]:
            assert (pictures[variant] != pictures["full"]).any(), variant


@pytest.mark.parametrize("env_id", IDS)
def test_a_constructor_and_a_reset_name_variants_alike(env_id: str) -> None:
    for variant in VARIANTS:
        one = made(env_id, variant=variant).reset(seed=3)
        other = made(env_id).reset(seed=3, options={"variant": variant})
        assert (one[0]["image"] == other[0]["image"]).all() and one[1] == other[1]
    env = made(env_id)
    env.reset(seed=3, options={"variant": "twin"})
    assert env.reset(seed=3)[1]["variant"] == "full"
    at = [env.reset(options={"index": 5, "variant": variant})[1]["task_id"] for variant in ("full", "twin")]
    assert at[0] == at[1]


@pytest.mark.parametrize("env_id", IDS)
def test_wrong_arguments_name_the_value(env_id: str) -> None:
    with pytest.raises(ValueError, match=r"variant must be one of 'full'.*got 'twn'"):
        made(env_id, variant="twn")
    env = made(env_id)
    with pytest.raises(ValueError, match=r"options\['variant'\] must be one of .*, got 3"):
        env.reset(options={"variant": 3})
    with pytest.raises(ValueError, match="options may be 'index' and 'task' and 'variant', got 'varant'"):
        env.reset(options={"varant": "twin"})
    with pytest.raises(ValueError, match="shots must be 0, got 2"):
        made(env_id, shots=2)
    with pytest.raises(ValueError, match=r"size \(pixels\) must be an integer from .* got 8.5"):
        made(env_id, size=8.5)
    with pytest.raises(TypeError, match="plays a VisionTask, got Task"):
        env.reset(options={"task": Task("How many?", "1")})


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("env_id", BANDITS)
def test_the_expert_is_right_in_every_variant(env_id: str, split: str) -> None:
    env = made(env_id, split=split)
    for variant in VARIANTS:
        for seed in SEEDS:
            env.reset(seed=seed, options={"variant": variant})
            assert env.step(env.expert_action())[1] == 1.0, (variant, seed)


@pytest.mark.parametrize("env_id", BANDITS)
def test_what_cannot_be_seen_is_called_so_and_nothing_else_is(env_id: str) -> None:
    env = made(env_id)
    for variant in VARIANTS:
        for said in (UNSEEN, "Unseen.", UNSEEN.upper()):
            env.reset(seed=1, options={"variant": variant})
            assert env.step(f"<answer>{said}</answer>")[1] == float(variant == "masked")
    for seed in SEEDS:
        env.reset(seed=seed)
        right = env.expert_action()
        twin = _expert(env, seed, "twin")
        for variant, action, pays in (
            ("twin", right, 0.0),
            ("full", twin, 0.0),
            ("masked", right, 0.0),
            ("distractor_masked", right, 1.0),
            ("no_image", right, 1.0),
        ):
            env.reset(seed=seed, options={"variant": variant})
            assert env.step(action)[1] == pays, (seed, variant)
        for said in ("", "unseen or " + right, f"{right} unseen", "not unseen", "seen", "it cannot be seen", "un seen"):
            env.reset(seed=seed, options={"variant": "masked"})
            assert env.step(f"<answer>{said}</answer>" if "<answer>" not in said else said)[1] == 0.0, said


@pytest.mark.parametrize("env_id", BANDITS)
def test_the_evidence_is_where_the_picture_must_be_seen(env_id: str) -> None:
    """What is covered lies over all of the evidence, and over none of it where it is a decoy."""
    env = made(env_id)
    for seed in SEEDS:
        full = env.reset(seed=seed)[0]["image"]
        evidence = env.evidence()
        masked = env.reset(seed=seed, options={"variant": "masked"})[0]["image"]
        hidden = env.evidence()
        decoyed = env.reset(seed=seed, options={"variant": "distractor_masked"})[0]["image"]
        decoy = env.evidence()
        mask = evidence["mask"]
        assert mask.dtype == bool and mask.shape == full.shape[:2] and mask.any()
        assert (hidden["mask"] == mask).all() and hidden["boxes"] == evidence["boxes"] and hidden["answer"] == UNSEEN
        assert decoy["answer"] == evidence["answer"] and (decoy["mask"] == mask).all()
        if env_id != "tetrathlon/Chart-v0":  # whose axis is evidence too, and stays
            assert (masked[mask] == 127).all()
        assert (decoyed[mask] == full[mask]).all()
        covered = [(picture != full).any(axis=-1).sum() for picture in (masked, decoyed)]
        assert min(covered) > 0
        for x1, y1, x2, y2 in evidence["boxes"]:
            assert 0 <= x1 < x2 <= env.size and 0 <= y1 < y2 <= env.size
            assert mask[int(y1) : int(np.ceil(y2)), int(x1) : int(np.ceil(x2))].any()


@pytest.mark.parametrize("env_id", ["tetrathlon/Count-v0", "tetrathlon/Point-v0"])  # others test it by themselves
def test_the_best_blind_policy_is_as_good_as_is_said(env_id: str) -> None:
    env = made(env_id)
    env.picture = lambda: BLANK  # nobody looks
    n = 600
    for variant in ("full", "twin"):
        paid = 0.0
        for seed in range(n):
            observation, info = env.reset(seed=20_000 + seed, options={"variant": variant})
            assert info["blind_floor"] == env.blind_floor
            paid += env.step(env.blind_action(observation["text"]))[1]
        deviation = (env.blind_floor * (1 - env.blind_floor) / n) ** 0.5
        assert abs(paid / n - env.blind_floor) < 4 * deviation, variant


@pytest.mark.parametrize("env_id", IDS)
def test_a_state_keeps_its_variant(env_id: str) -> None:
    env, other = made(env_id), made(env_id)
    seen = env.reset(seed=4, options={"variant": "masked"})
    other.reset(seed=9)
    again = other.set_state(env.get_state())
    assert (again[0]["image"] == seen[0]["image"]).all() and again[1] == seen[1]
    assert other.expert_action() == env.expert_action()


def _expert(env: Any, seed: int, variant: Variant) -> str:
    env.reset(seed=seed, options={"variant": variant})
    return str(env.expert_action())
