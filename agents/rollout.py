"""The one loop of policy and environments, which evaluation, recording and training share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from tetrathlon.agents.policy import EXPERT_KEY, STATE_KEY, Policy
from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.slots import Lost, Ready, SlotsLike
from tetrathlon.envs.spaces import stack, unstack

POLICY_STOPS = frozenset({"length", "episode_length", "context"})
"""Stops of ``Acted.stops`` that end an episode."""
MOST_CRASHES = 10
"""Crashes in a row, with no other answer between them, after which a stretch gives up."""

Force = Callable[[int, Any], Any]
"""``(slot, expert's action) -> action to take instead of the policy's own``, or None to let the policy decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where an episode begins."""

    seed: int | None = None
    """Seed of the reset."""
    options: dict[str, Any] | None = None
    """Options of the reset."""
    state: Any = None
    """A state to restore instead of a reset."""
    group: int | None = None
    """Starts of one group are the same start."""


@dataclass(slots=True)
class _Slot:
    start: Start = field(default_factory=Start)
    episode: Episode = field(default_factory=Episode)
    memory: Any = None
    observation: Any = None
    info: dict[str, Any] = field(default_factory=dict)
    busy: bool = False
    """Has an episode under way."""
    sent: bool = False
    """Was sent an action and has not answered."""
    stop: str | None = None
    """Why the policy stopped generating the action that was sent."""


class Rollout:
    """A policy in N slots, fed from a queue of starts.

    Args:
        policy: What acts.
        slots: Where it acts.
        starts: The queue; None starts for ever, unseeded.
        greedy: Take the most likely actions.
        ask: Ask the expert at every step: its action goes into the policy's infos and becomes the step's label.
            Policies whose attribute ``asks`` is true are asked for in any case, without a label. Those whose attribute
            ``needs_state`` is true find the environment's exact state in their infos.
        force: Decides, given the expert's action, what is done instead of the policy's own action (DAgger).
        env: Id of the environment, noted in each episode.
        kwargs: Constructor arguments of the environment, noted in each episode.
        on_episode: Called with each finished episode.

    Attributes:
        crashes: One message for each episode that was lost because its environment or its expert raised.
    """

    def __init__(
        self,
        policy: Policy,
        slots: SlotsLike,
        starts: Iterable[Start] | None = None,
        *,
        greedy: bool = False,
        ask: bool = False,
        force: Force | None = None,
        env: str = "",
        kwargs: dict[str, Any] | None = None,
        on_episode: Callable[[Episode], None] | None = None,
    ) -> None:
        self.policy = policy
        self.slots = slots
        self.crashes: list[str] = []
        self._starts: Iterator[Start] = iter(starts if starts is not None else repeat(Start()))
        self._greedy = greedy
        self._label = ask or force is not None
        self._ask = self._label or getattr(policy, "asks", False)
        self._force = force
        self._chunk = getattr(policy, "chunk", 1)
        self._env, self._kwargs = env, kwargs or {}
        self._on_episode = on_episode
        self._slots = [_Slot() for _ in range(len(slots))]
        self._waiting: list[int] = []
        self._in_a_row = 0  # crashes since the last answer that was none

    def episodes(self) -> list[Episode]:
        """Play the whole queue of starts.

        Returns:
            The finished episodes in the order of their starts; what crashed is missing.
        """
        order: dict[int, int] = {}
        finished: dict[int, Episode] = {}
        begun = 0

        def begin(ids: Sequence[int]) -> None:
            nonlocal begun
            for i in self._begin(ids):
                order[i], begun = begun, begun + 1

        begin(range(len(self._slots)))
        while any(slot.busy for slot in self._slots):
            finished.update({order[i]: episode for i, episode in self._turn(begin)})
            self._act()
        return [finished[number] for number in sorted(finished)]

    def stretch(self, steps: int) -> list[list[Episode]]:
        """Play ``steps`` steps in every slot, going on where the last stretch stopped.

        Args:
            steps: Steps a slot, at least 1. A slot whose restart takes a step of its vector environment
                (autoreset NEXT_STEP without a masked reset) takes one less for each restart.

        Returns:
            N rows; a row is the episodes of one slot in order, the first perhaps begun before, the last perhaps
            unfinished.

        Raises:
            ValueError: ``steps`` is below 1.
            RuntimeError: The queue of starts ran dry, or nothing but crashes came: with an endless queue
                there would be no end of them.
        """
        if steps < 1:
            raise ValueError(f"steps must be at least 1, got {steps}")
        rows: list[list[Episode]] = [[] for _ in self._slots]
        for slot in self._slots:
            if slot.busy:  # what was handed out stays as it was handed out
                old = slot.episode
                slot.episode = self._new_episode(slot.start)
                slot.episode.info = old.info
        if idle := [i for i, slot in enumerate(self._slots) if not slot.busy]:
            self._restart(idle)
            self._settle(rows)
        for _ in range(steps):
            self._act()
            self._settle(rows)
        for i, slot in enumerate(self._slots):
            if slot.busy and len(slot.episode):
                rows[i].append(slot.episode)
        return rows

    def _settle(self, rows: list[list[Episode]]) -> None:
        """Take answers until every slot waits for an action, or for a step of its vector environment."""
        turns = 0
        while any(slot.sent for slot in self._slots) or (self._starting() and (turns == 0 or not self.slots.lockstep)):
            turns += 1
            for i, episode in self._turn(self._restart):
                rows[i].append(episode)

    def _starting(self) -> bool:
        return any(slot.busy and not slot.sent and i not in self._waiting for i, slot in enumerate(self._slots))

    def _new_episode(self, start: Start) -> Episode:
        return Episode(
            seed=start.seed,
            options=start.options,
            group=start.group,
            env=self._env,
            kwargs=dict(self._kwargs),
        )

    def _restart(self, ids: Sequence[int]) -> None:
        if self._in_a_row >= max(MOST_CRASHES, len(self._slots)):
            crashes, self._in_a_row = self._in_a_row, 0  # another stretch may try again
            raise RuntimeError(f"{crashes} crashes in a row, the last of them: {self.crashes[-1]}")
        if len(self._begin(ids)) < len(ids):
            raise RuntimeError("the queue of starts ran dry in the middle of a stretch; give it without an end")

    def _begin(self, ids: Sequence[int]) -> list[int]:
        """Take a start for each of ``ids`` from the queue; return those that got one."""
        begun: list[int] = []
        for i in ids:
            start = next(self._starts, None)
            if start is None:
                break
            self._slots[i] = _Slot(start=start, episode=self._new_episode(start), busy=True)
            begun.append(i)
        resets = [i for i in begun if self._slots[i].start.state is None]
        states = [i for i in begun if self._slots[i].start.state is not None]
        if resets:
            chosen = [self._slots[i].start for i in resets]
            self.slots.reset(resets, [start.seed for start in chosen], [start.options for start in chosen])
        if states:
            self.slots.set_state(states, [self._slots[i].start.state for i in states])
        return begun

    def _turn(self, begin: Callable[[Sequence[int]], None]) -> Iterator[tuple[int, Episode]]:
        """Take what is ready, hand out the episodes that ended, and begin the next in their slots."""
        ended = self._collect()
        while ended:
            for i in ended:
                if self._slots[i].episode.ended:
                    yield i, self._slots[i].episode
            begin(ended)
            ended = self._collect(block=False)

    def _collect(self, block: bool = True) -> list[int]:
        """Take what is ready; return the slots whose episode ended or was lost."""
        ended = []
        answers = self.slots.ready(block)
        # Answers come in the order of slots: one that is no crash speaks for all that came with it.
        fine = any(answer.crash is None for answer in answers)
        self._in_a_row = 0 if fine else self._in_a_row + len(answers)
        for answer in answers:
            slot = self._slots[answer.id]
            if answer.crash is not None:
                self.crashes.append(answer.crash)
                self._slots[answer.id] = _Slot()
                ended.append(answer.id)
                continue
            if answer.started:
                slot.episode.info = answer.info
            else:
                self._receive(slot, answer)
            slot.observation, slot.info = answer.observation, answer.info
            slot.episode.final_observation = answer.observation
            if slot.episode.ended:
                slot.busy = False
                ended.append(answer.id)
                if self._on_episode is not None:
                    self._on_episode(slot.episode)
            else:
                self._waiting.append(answer.id)
        return ended

    def _receive(self, slot: _Slot, answer: Ready) -> None:
        slot.sent = False
        step = slot.episode.steps[-1]
        step.reward, step.info = answer.reward, answer.info
        step.terminated, step.truncated = answer.terminated, answer.truncated
        if slot.stop in POLICY_STOPS:
            # The policy keeps a token limit that the agent was told of: its cut is an end of the task.
            if not (step.terminated or step.truncated):
                self.slots.drop([answer.id])
            step.terminated, step.truncated = True, False
            step.info = {"is_success": False, **step.info, "stop_reason": slot.stop}

    def _act(self) -> None:
        """Act in every slot that waits for it."""
        ids, self._waiting = sorted(self._waiting), []
        if not ids:
            return
        forced: list[Any] | None = None
        labels: list[Any] = [None] * len(ids)
        if self._ask:
            asked = self.slots.expert(ids, self._chunk)
            # Of a slot whose expert crashed, the next answer says so.
            ids = [i for i, label in zip(ids, asked, strict=True) if not isinstance(label, Lost)]
            labels = [label for label in asked if not isinstance(label, Lost)]
            if not ids:
                return
        slots = [self._slots[i] for i in ids]
        infos = [slot.info for slot in slots]
        if self._ask:
            infos = [{**info, EXPERT_KEY: label} for info, label in zip(infos, labels, strict=True)]
            if self._force is not None:
                forced = [self._force(i, label) for i, label in zip(ids, labels, strict=True)]
        infos = with_states(self.policy, self.slots, ids, infos)
        acted = self.policy.act(
            stack(self.slots.observation_space, [slot.observation for slot in slots]),
            [slot.memory for slot in slots],
            infos=infos,
            greedy=self._greedy,
            forced=forced,
        )
        actions = unstack(self.slots.action_space, acted.actions, len(ids))
        stops = acted.stops or [None] * len(ids)
        for slot, action, memory, record, stop, label in zip(
            slots, actions, acted.memory, acted.records, stops, labels, strict=True
        ):
            slot.memory, slot.stop, slot.sent = memory, stop, True
            slot.episode.steps.append(
                Step(slot.observation, action, record=record, label=label if self._label else None)
            )
        self.slots.send(ids, actions)


def with_states(policy: Any, slots: SlotsLike, ids: Sequence[int], infos: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the infos of ``ids`` with the exact states of their environments, for a policy that needs them."""
    if not getattr(policy, "needs_state", False):
        return infos
    return [{**info, STATE_KEY: state} for info, state in zip(infos, slots.get_state(ids), strict=True)]
