"""What every environment promises, as checks: for whoever writes one, here or elsewhere.

``check("tetrathlon/Arithmetic-v0")`` runs Gymnasium's own checker and the checks below on a bare copy of the
environment (no wrappers), and raises a :class:`ContractError` that names the check, says what was seen and what
would be right. A check that does not apply (no ``split`` argument, say) is left out.
"""

from __future__ import annotations

import copy
import pickle
import tempfile
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import gymnasium as gym
from gymnasium.utils.env_checker import check_env

from tetrathlon.envs import hostile
from tetrathlon.envs.contract_course import check_reset_needed, check_threads
from tetrathlon.envs.contract_info import check_info, check_no_answer, check_vector
from tetrathlon.envs.contract_pay import check_expert_pay, check_no_answer_no_pay
from tetrathlon.envs.contract_seeds import (
    check_global_rng,
    check_interleaving,
    check_new_process,
    check_random_access,
    check_splits,
)
from tetrathlon.envs.episode import Episode, Step, load_episodes, save_episodes
from tetrathlon.envs.registry import make
from tetrathlon.envs.subject import (
    LONGEST_EPISODE,
    ContractError,
    CopyError,
    Moment,
    Subject,
    equal,
    go_on,
    has,
    mark,
    marks,
    play,
)

__all__ = ["CHECKS", "ContractError", "check", "replay"]

_SEEDS = range(8)


def check(
    env: str | gym.Env[Any, Any],
    *,
    kwargs: Mapping[str, Any] | None = None,
    skip: Iterable[str] = (),
    only: Iterable[str] | None = None,
) -> list[str]:
    """Check that an environment keeps its contract.

    Args:
        env: An id, or an environment. Of an environment bare copies are made, from its ``spec`` or else by calling
            its class again; it is not played itself.
        kwargs: Constructor arguments, with an id.
        skip: Names of checks to leave out: what an environment of another contract does not promise.
        only: Names of the checks to run; default: all.

    Returns:
        The names of the checks that applied, all of them passed.

    Raises:
        ContractError: The environment breaks its contract.
        ValueError: A name is none of :data:`CHECKS`.
    """
    skipped = {skip} if isinstance(skip, str) else set(skip)
    wanted = set(CHECKS) if only is None else {only} if isinstance(only, str) else set(only)
    if unknown := (skipped | wanted) - CHECKS.keys():
        raise ValueError(f"there are no checks {sorted(unknown)}; there are {list(CHECKS)}")
    try:
        subject = Subject(env, kwargs)
    except CopyError as error:
        raise ContractError("copies", str(error)) from error
    ran = []
    try:
        for name, function in CHECKS.items():
            if name not in wanted - skipped:
                continue
            try:
                if function(subject) is not False:
                    ran.append(name)
            except ContractError:
                raise
            except Exception as error:  # whatever the environment raised belongs to the check that it was in
                hint = f"{type(error).__name__}: {error}"
                raise ContractError(name, f"{subject.label} raised {hint}"[:3000]) from error
    finally:
        subject.close()
    return ran


def replay(episode: Episode, env: gym.Env[Any, Any] | None = None) -> list[float]:
    """Play the actions of ``episode`` again.

    Args:
        episode: Recorded from a seeded reset on.
        env: Where to play it; default: one made of the episode's ``env`` and ``kwargs``.

    Returns:
        The rewards, bit-equal to the recorded ones where the environment keeps its contract.

    Raises:
        ValueError: The episode began unseeded, names no environment, or ended sooner here than there.
    """
    options = episode.options or {}
    if episode.seed is None and not {"index", "task"} & options.keys():
        raise ValueError("the episode began without a seed, so nobody can begin it again")
    if env is None and not episode.env:
        raise ValueError("the episode names no environment; give one to play it in")
    played = env if env is not None else make(episode.env, **episode.kwargs)
    try:
        played.reset(seed=episode.seed, options=copy.deepcopy(episode.options))
        rewards: list[float] = []
        for number, step in enumerate(episode.steps, 1):
            _, reward, terminated, truncated, _ = played.step(step.action)
            rewards.append(float(reward))
            if (terminated or truncated) and number < len(episode):
                raise ValueError(f"the episode has {len(episode)} steps, but here it ended after {number}")
    finally:
        if env is None:
            played.close()
    return rewards


def _check_gymnasium(subject: Subject) -> None:
    """``gymnasium.utils.env_checker.check_env`` passes."""
    env = subject.make()
    check_env(env, skip_render_check="human" in subject.render_modes)  # a human's window needs a screen


def _check_reward_terms(subject: Subject) -> None:
    """``info["reward_terms"]`` sums to the reward exactly, in order, at every step."""
    env = subject.make()
    moments = [moment for how in ("expert", "random") for moment in play(env, [{"seed": s} for s in range(3)], how=how)]
    for bad in hostile.actions(env.action_space, longest=1_000):
        env.reset(seed=2)
        try:
            _, reward, _, _, info = env.step(bad.action)
        except Exception:  # that it raises is the business of the check "hostile"
            continue
        moments.append(Moment(bad.name, None, reward, info=info))
    for moment in moments:
        if moment.action is None:
            continue
        terms = moment.info.get("reward_terms")
        if not isinstance(terms, dict):
            raise ContractError(
                "reward_terms",
                f"a step's info has reward_terms {terms!r}: give a dict of name to what it paid, or "
                "skip='reward_terms' for an environment that promises none",
            )
        total = float(sum(terms.values()))
        if total != float(moment.reward):
            raise ContractError(
                "reward_terms",
                f"the terms {terms} sum to {total!r} but the reward is {float(moment.reward)!r} after the action "
                f"{str(moment.action)[:80]!r}: pay float(sum(terms.values()))",
            )


def _check_state(subject: Subject) -> None:
    """A state restores exactly what followed, in the same and in a fresh copy, later randomness included."""
    env = subject.make()
    for method in ("get_state", "set_state"):
        if not has(env, method):
            raise ContractError(
                "state",
                f"{subject.label} has no {method}: give get_state() -> state and set_state(state) -> (observation, "
                "info), randomness and counters included, or skip='state'",
            )
    for seed in range(3):
        length = len(marks(play(env, [{"seed": seed}], seed=seed))) - 1
        for steps in sorted({0, 1 if length > 1 else 0, length // 2}):
            *_, last = islice(play(env, [{"seed": seed}], seed=seed), steps + 1)
            state = env.get_state()
            frozen = pickle.dumps(state)
            wanted = _continuation(env, seed)
            _refuse_live(frozen, state, "after more steps")
            for where, restored, kept in (
                ("the same copy", env, state),
                ("the same copy again", env, state),
                ("a fresh copy, after pickling", subject.make(), pickle.loads(frozen)),
            ):
                given = restored.set_state(kept)
                if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[1], dict):
                    raise ContractError(
                        "state", f"set_state returned {str(given)[:200]}; return (observation, info) like reset"
                    )
                if mark(given[0]) != mark(last.observation) or (steps == 0 and mark(given[1]) != mark(last.info)):
                    raise ContractError(
                        "state",
                        f"set_state after {steps} steps gave an observation or info other than the one that was last "
                        f"seen, in {where}: {str(given)[:200]}",
                    )
                if _continuation(restored, seed) != wanted:
                    raise ContractError(
                        "state",
                        f"restored after {steps} steps in {where}, the same actions led elsewhere: get_state must "
                        "hold a copy of everything that changes, np_random's state and counters included",
                    )
            _refuse_live(frozen, state, "after it was restored and played on from")


def _refuse_live(frozen: bytes, state: Any, when: str) -> None:
    """Raise where a state is no longer what it was when ``frozen`` was made of it."""
    if not _is_still(frozen, state):
        raise ContractError(
            "state", f"what get_state returned was another {when}: let get_state and set_state copy what they hold"
        )


def _continuation(env: Any, seed: int) -> list[str]:
    return [*marks(go_on(env, seed=seed + 100)), *marks(play(env, [{}], seed=seed + 200))]


def _check_expert(subject: Subject) -> None:
    """``expert_action`` is pure, in the action space, and leads to success."""
    env = subject.make()
    if not has(env, "expert_action"):
        raise ContractError(
            "expert",
            f"{subject.label} has no expert_action: give expert_action(k=1) -> a good next action (or the next k) "
            "from privileged knowledge, or skip='expert'",
        )
    for seed in _SEEDS:
        last = None
        for last in play(env, [{"seed": seed}], how="expert", most=LONGEST_EPISODE):
            if last.action is not None and last.action not in env.action_space:
                raise ContractError("expert", f"{str(last.action)[:200]!r} is outside {env.action_space}")
        if last is None or last.info.get("is_success") is not True:
            seen = last.info if last is not None else {}
            raise ContractError(
                "expert", f"its actions did not lead to success on seed {seed}; the last info: {str(seen)[:500]}"
            )
    check_expert_pay(subject)
    played = [_asked(subject.make(), times) for times in (0, 1, 3)]
    if not played[0] == played[1] == played[2]:
        raise ContractError(
            "expert", "asking changed what followed: draw nothing from self.np_random and change no state"
        )


def _asked(env: Any, times: int) -> list[str]:
    """Return what follows when the expert is asked ``times`` times before each of some random actions."""
    seen = []
    for moment in play(env, [{"seed": 5}, {}], how="random"):
        seen.append(moment.mark)
        if moment.ended or not times:
            continue
        before = _frozen(env.get_state()) if has(env, "get_state") else None
        first = env.expert_action()
        for _ in range(times - 1):
            if mark(again := env.expert_action()) != mark(first):
                raise ContractError("expert", f"asked twice it said {first!r} and then {again!r}")
        several = env.expert_action(3)
        if len(several) != 3 or mark(several[0]) != mark(first):
            raise ContractError(
                "expert", f"expert_action(3) gave {str(several)[:200]}; give three actions that begin with {first!r}"
            )
        if before is not None and not _is_still(before, env.get_state()):
            raise ContractError("expert", "asking changed the state that get_state returns")
    return seen


def _frozen(state: Any) -> Any:
    """Return what a state is now, whatever becomes of it: as bytes, or else as a copy."""
    try:
        return pickle.dumps(state)
    except Exception:  # that a state can be pickled is the business of the check "state"
        return copy.deepcopy(state)


def _is_still(frozen: Any, state: Any) -> bool:
    """Tell whether a state is what :func:`_frozen` saw."""
    if not isinstance(frozen, bytes):
        return equal(frozen, state)
    # A lazily computed property may change the bytes of an equal state.
    return pickle.dumps(state) == frozen or equal(pickle.loads(frozen), state)


def _check_replay(subject: Subject) -> None:
    """A recorded episode, written and read again, replays to bit-equal rewards."""
    env = subject.make()
    episodes = []
    for how in ("expert", "random", "mixed"):
        for seed in range(2):
            start, *steps = play(env, [{"seed": seed}], how=how, seed=seed)
            episode = Episode(env=subject.label, seed=seed, info=start.info)
            seen = start.observation
            for moment in steps:
                ends = bool(moment.terminated), bool(moment.truncated)
                episode.steps.append(Step(seen, moment.action, float(moment.reward), *ends, moment.info))
                seen = moment.observation
            episode.final_observation = seen
            episodes.append(episode)
    with tempfile.TemporaryDirectory() as folder:
        try:
            save_episodes(folder, episodes)
        except TypeError as error:
            raise ContractError("replay", f"an episode cannot be written: {error}") from error
        loaded = load_episodes(folder)
    for one, other in zip(episodes, loaded, strict=True):
        before, after = [step.reward for step in one.steps], replay(other, subject.make())
        if before != after:
            raise ContractError(
                "replay", f"seed {one.seed} was paid {before} when it was recorded and {after} when it was replayed"
            )


CHECKS = {
    "gymnasium": _check_gymnasium,
    "global_rng": check_global_rng,
    "interleaving": check_interleaving,
    "new_process": check_new_process,
    "splits": check_splits,
    "hostile": hostile.check_hostile,
    "reset_needed": check_reset_needed,
    "no_answer_no_pay": check_no_answer_no_pay,
    "expert": _check_expert,
    "info": check_info,
    "vector": check_vector,
    "threads": check_threads,
    "no_answer": check_no_answer,
    "reward_terms": _check_reward_terms,
    "state": _check_state,
    "replay": _check_replay,
    "random_access": check_random_access,
}
"""Name -> check, in the order in which they run."""
