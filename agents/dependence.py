"""Whether answers come from the picture: one policy on all variants of the same instances."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tetrathlon.agents.evaluation import evaluate
from tetrathlon.agents.naming import make_policy
from tetrathlon.agents.policy import Policy
from tetrathlon.agents.statistics import wilson
from tetrathlon.envs.episode import Episode
from tetrathlon.envs.registry import known_id, make, split_argument

OTHERS = ("twin", "masked", "distractor_masked", "no_image")
"""The variants that are played beside ``full``."""


@dataclass(frozen=True, slots=True)
class Dependence:
    """How a policy does on the variants of the same instances, as shares of them; None: nothing could be told."""

    instances: int
    """How many were played in every variant and could be scored."""
    full: float | None
    """Right on the picture as it is."""
    twin: float | None
    """Right on the picture that was changed so that the answer is another."""
    pair: float | None
    """Right on both."""
    pair_low: float | None
    """Lower end of the Wilson interval of ``pair`` at 95 %."""
    pair_high: float | None
    """Upper end."""
    flips: float | None
    """Another answer to the twin than to the full picture; of one who looks 1."""
    abstains: float | None
    """Right on the masked picture: said that it cannot be seen."""
    masked: float | None
    """Gave the full picture's answer to the masked one: knew what nobody can see there."""
    distractor_masked: float | None
    """Right where as much is covered elsewhere."""
    distractor_drop: float | None
    """``full`` less ``distractor_masked``; of one who looks at the evidence 0."""
    no_image: float | None
    """Gave the full picture's answer without any picture."""
    blind_floor: float | None
    """How often the best policy is right that does not look."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self)


def has_variants(env: Any) -> bool:
    """Tell whether an environment shows its instances in variants, as vision tasks do."""
    return "variant" in getattr(env.unwrapped, "reset_options", ())


def dependence(
    policy: str | Policy | Callable[..., Any],
    env_id: str,
    *,
    kwargs: Mapping[str, Any] | None = None,
    full: Sequence[Episode] | None = None,
    episodes: int = 100,
    split: str = "test",
    seed: int = 0,
    greedy: bool = True,
    temperature: float = 1.0,
    slots: int | None = None,
    on_episode: Callable[[Episode], None] | None = None,
) -> Dependence:
    """Play a policy on all variants of the same instances.

    Args:
        policy: See :func:`~tetrathlon.agents.evaluation.evaluate`, like all that follows but ``full``.
        env_id: Id of a vision task.
        kwargs: As there; without ``variant``.
        full: Episodes on the full pictures, where they were played already: one an instance.
        episodes: How many instances.
        split: As there.
        seed: As there.
        greedy: As there.
        temperature: As there.
        slots: As there.
        on_episode: As there.

    Raises:
        ValueError: ``kwargs`` name a variant.
    """
    env_id, given = known_id(env_id), dict(kwargs or {})
    if "variant" in given:
        raise ValueError(f"dependence plays every variant; kwargs must not name one, got {given['variant']!r}")
    played: dict[str, Sequence[Episode]] = {} if full is None else {"full": full}
    with contextlib.closing(make(env_id, **{**split_argument(env_id, split), **given})) as env:
        policy = make_policy(policy, env, seed=seed, temperature=temperature)  # once: some are learnt when made
    for variant in ("full", *OTHERS):
        if variant not in played:
            played[variant] = evaluate(
                policy,
                env_id,
                kwargs={**given, "variant": variant},
                episodes=episodes if full is None else len(full),
                split=split,
                seed=seed,
                greedy=greedy,
                slots=slots,
                on_episode=on_episode,
            ).episodes_played
    with contextlib.closing(make(env_id, **{**split_argument(env_id, split), **given})) as env:
        return compared(played, env.unwrapped)


def both_right(full: Sequence[Episode], twin: Sequence[Episode]) -> float | None:
    """Return the share of instances that were answered rightly on both pictures; None: there are none.

    Args:
        full: Episodes on full pictures.
        twin: Episodes on twins; those of one seed are of one instance.
    """
    of_twin = {episode.seed: episode.is_success for episode in twin if _is_fair(episode)}
    pairs = [
        episode.is_success and of_twin[episode.seed]
        for episode in full
        if _is_fair(episode) and episode.seed in of_twin
    ]
    return float(np.mean(pairs)) if pairs else None


def compared(played: Mapping[str, Sequence[Episode]], env: Any) -> Dependence:
    """Return what the episodes of a policy on all variants come to.

    Args:
        played: Episodes by variant; those of one seed are of one instance.
        env: The environment, bare, in which answers are graded for the full picture.
    """
    by_seed = {
        variant: {episode.seed: episode for episode in episodes if _is_fair(episode)}
        for variant, episodes in played.items()
    }
    seeds = sorted(set.intersection(*(set(found) for found in by_seed.values())) - {None})  # type: ignore[type-var]
    if not seeds:
        return Dependence(0, *[None] * 12)
    rows = {variant: [found[seed] for seed in seeds] for variant, found in by_seed.items()}
    right = {variant: np.array([episode.is_success for episode in episodes]) for variant, episodes in rows.items()}
    both = right["full"] & right["twin"]
    answers = {variant: [env.answer_in(_said(episode)) for episode in rows[variant]] for variant in ("full", "twin")}
    flips = [one != other for one, other in zip(answers["full"], answers["twin"], strict=True)]
    low, high = wilson(int(both.sum()), len(seeds))
    return Dependence(
        instances=len(seeds),
        full=float(right["full"].mean()),
        twin=float(right["twin"].mean()),
        pair=float(both.mean()),
        pair_low=low,
        pair_high=high,
        flips=float(np.mean(flips)),
        abstains=float(right["masked"].mean()),
        masked=float(np.mean([_is_right_for_full(env, episode) for episode in rows["masked"]])),
        distractor_masked=float(right["distractor_masked"].mean()),
        distractor_drop=float(right["full"].mean() - right["distractor_masked"].mean()),
        no_image=float(np.mean([_is_right_for_full(env, episode) for episode in rows["no_image"]])),
        blind_floor=float(rows["full"][0].info["blind_floor"]),
    )


def _is_fair(episode: Episode) -> bool:
    return episode.ended and episode.grader_error is None


def _said(episode: Episode) -> str:
    return str(episode.steps[-1].action)


def _is_right_for_full(env: Any, episode: Episode) -> bool:
    """Tell whether what was said at the end of ``episode`` answers the full picture."""
    env.reset(seed=episode.seed, options={"variant": "full"})
    return bool(env.step(_said(episode))[-1].get("is_success"))
