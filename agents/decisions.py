"""What was decided, in one shape for every domain: the border between policies and algorithms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol, cast

import torch
from torch import Tensor

from tetrathlon.envs.episode import Episode


class Inputs(Protocol):
    """What a policy needs to evaluate its decisions, if that is no dict of tensors."""

    def select(self, rows: Tensor) -> Inputs:
        """Return the inputs of ``rows``, a LongTensor of row numbers."""
        ...

    def to(self, device: torch.device | str) -> Inputs:
        """Return the inputs on ``device``."""
        ...


@dataclass(slots=True, kw_only=True)
class Decisions:
    """A padded batch of decisions: B rows by T positions.

    A row is one or more episodes. Where ``mask`` is False the other columns mean nothing and may be NaN: masks
    select, they never multiply.
    """

    mask: Tensor
    """bool [B, T]: the policy decided here; False at prompts, tool output, last observations and padding."""
    logp: Tensor
    """float [B, T]: log-probability as sampled; NaN where the decision was not the policy's own."""
    reward: Tensor
    """float [B, T]: paid after this decision and before the next."""
    terminated: Tensor
    """bool [B, T]: the task ended after this decision."""
    truncated: Tensor
    """bool [B, T]: a limit outside the task ended the episode after this decision."""
    cut: Tensor
    """bool [B, T]: generation was stopped here by a length limit."""
    final: Tensor
    """bool [B, T]: not decided, but a true last state whose value is asked: after a truncation, and where
    recording stopped."""
    env_steps: Tensor
    """int [B, T]: environment steps until the next decision; the discount is gamma ** env_steps."""
    episode: Tensor
    """int [B, T]: which episode of the row; -1 at padding."""
    turn: Tensor
    """int [B, T]: which environment step of the episode; -1 at padding."""
    group: Tensor
    """int [B]: rows of one group began at the same start; a row without one has a number of its own."""
    source: Tensor
    """int [B]: which of the collated rows this one came from; a row may become several, one a label."""
    total_reward: Tensor
    """float [B]: all that the row's episodes were paid, what no decision earned included."""
    cost: Tensor
    """float [B]: what a row costs to evaluate, in tokens, pixels or positions."""
    inputs: Any
    """The policy's own: a dict of tensors with leading B, or of what is indexed and moved as they are, or
    :class:`Inputs`. Algorithms never look inside."""
    old_logp: Tensor | None = None
    """float [B, T], by the algorithm: under the policy before the update; the ratio is against it."""
    old_value: Tensor | None = None
    """float [B, T], by the algorithm: what the critic said before the update, at mask | final."""
    ref_logp: Tensor | None = None
    """float [B, T], by the algorithm: under the reference policy."""
    ref_entropy: Tensor | None = None
    """float [B, T], by the algorithm: of the reference policy."""
    advantage: Tensor | None = None
    """float [B, T], by the algorithm."""
    returns: Tensor | None = None
    """float [B, T], by the algorithm: what the critic learns, at mask."""
    preference: Tensor | None = None
    """int [B], by the algorithm: 1 preferred, 0 rejected, -1 neither (an answer to another start)."""
    pair: Tensor | None = None
    """int [B], by the algorithm: rows of one pair are compared."""
    policy_version: Tensor | None = None
    """int [B], by the algorithm: how many updates the policy had seen when it decided."""

    def __len__(self) -> int:
        return self.mask.shape[0]

    def select(self, rows: Tensor | Sequence[int]) -> Decisions:
        """Return the rows ``rows``, by number or by a bool mask over B; T stays as it is."""
        index = torch.as_tensor(rows, device=self.mask.device)
        if index.dtype == torch.bool:
            index = index.nonzero().flatten()
        index = index.long()
        chosen = {name: value[index] for name, value in self._tensors()}
        inputs = (
            {name: value[index] for name, value in self.inputs.items()}
            if isinstance(self.inputs, dict)
            else self.inputs.select(index)
        )
        return replace(self, **chosen, inputs=inputs)

    def to(self, device: torch.device | str) -> Decisions:
        """Return the batch on ``device``."""
        moved = {name: value.to(device) for name, value in self._tensors()}
        inputs = (
            {name: value.to(device) for name, value in self.inputs.items()}
            if isinstance(self.inputs, dict)
            else self.inputs.to(device)
        )
        return replace(self, **moved, inputs=inputs)

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        for column in fields(self):
            if column.name != "inputs" and (value := getattr(self, column.name)) is not None:
                yield column.name, value


@dataclass(slots=True)
class Evaluation:
    """What a policy says of decisions, with gradients."""

    logp: Tensor
    """float [B, T], valid at mask: log-probability of what was decided."""
    entropy: Tensor
    """float [B, T], valid at mask: of the distribution that it was drawn from, in nats."""
    value: Tensor | None = None
    """float [B, T], valid at mask | final: of the state before the decision; None without a critic."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where one step of an episode, or its last observation, lies in a row."""

    episode: int
    """Which episode of the row."""
    step: int
    """Which step of the episode; ``len(episode)`` for the last observation."""
    start: int
    """The first position of what was given."""
    given: int
    """How many positions what was given takes."""
    decided: int
    """How many decisions follow it; for a last observation the one position of its value."""

    @property
    def first(self) -> int:
        """The position of the first decision."""
        return self.start + self.given

    @property
    def end(self) -> int:
        """The position after the last decision."""
        return self.first + self.decided


Width = tuple[int, int]
"""(given, decided): how many positions a step takes."""

Learn = Literal["own", "label", "action"]
"""What ``collate`` takes for decisions: those of the policy itself, which have a record; the experts' labels, in the
states that were visited; or whatever was done, by whomever: demonstrations, logs, pairs."""

Last = Literal["open", "always", "never"]
"""Which episodes are followed by their last observation: those without a termination, whose value is asked; all, for
what reads the state after the last decision (a reward model); or none, where only decisions are learnt."""


def layout(
    rows: Sequence[Sequence[Episode]],
    widths: Sequence[Sequence[Sequence[Width | int]]],
    *,
    last: Last = "open",
    source: Sequence[int] | None = None,
) -> tuple[Decisions, list[list[Span]]]:
    """Lay out the structure of a batch, so that a policy cannot misplace a reward.

    A policy says only how many positions each step takes; every column but ``logp``, ``cut``, ``inputs`` and
    ``cost`` is set here. Within a step what was given comes first, then the decisions. The reward is paid at the
    step's last decision; that of a step without decisions (inside an open-loop chunk, a forced action) at the
    decision before it in the episode, and nowhere if there is none. A step whose info lists ``step_rewards`` was a
    chunk and took as many environment steps. An episode that was truncated or not finished is followed by its last
    observation and one more position, which is ``final``.

    Args:
        rows: B rows of episodes, each with a step or more.
        widths: For each row and episode one (given, decided) a step: (5, 3) a prompt and an answer, (0, 1) a
            control step or a chunk, (0, 0) inside a chunk; and then the number of positions that the last
            observation takes, used only where it is laid out: 0 for control.
        last: Which episodes are followed by their last observation; see :data:`Last`.
        source: Which of the collated rows each of these came from; default: row b from row b.

    Returns:
        The batch, with NaN in ``logp``, False in ``cut``, T in ``cost`` and an empty dict in ``inputs``; and for
        each row the spans in order.

    Raises:
        ValueError: The widths do not fit the episodes, an episode has no step, or a row of a group holds more than
            one episode.
    """
    spans: list[list[Span]] = []
    for b, (row, row_widths) in enumerate(zip(rows, widths, strict=True)):
        spans.append([])
        position = 0
        for e, (episode, sizes) in enumerate(zip(row, row_widths, strict=True)):
            if not episode.steps:
                raise ValueError(f"episode {e} of row {b} has no step")
            if row[0].group is not None and len(row) > 1:
                raise ValueError(
                    f"row {b} belongs to group {row[0].group} and holds {len(row)} episodes; it may hold one"
                )
            if len(sizes) != len(episode) + 1 or isinstance(sizes[-1], tuple):
                raise ValueError(
                    f"episode {e} of row {b} has {len(episode)} steps: it needs as many (given, decided) and "
                    f"then the size of its last observation, got {list(sizes)}"
                )
            for s, size in enumerate(sizes[:-1]):
                given, decided = cast(Width, size)
                spans[b].append(Span(e, s, position, given, decided))
                position += given + decided
            if last == "always" or (last == "open" and not episode.steps[-1].terminated):
                tail = int(sizes[-1])
                spans[b].append(Span(e, len(episode), position, tail, 1))
                position += tail + 1
    longest = max((row_spans[-1].end for row_spans in spans if row_spans), default=0)
    shape = (len(rows), longest)
    decisions = Decisions(
        mask=torch.zeros(shape, dtype=torch.bool),
        logp=torch.full(shape, torch.nan),
        reward=torch.zeros(shape),
        terminated=torch.zeros(shape, dtype=torch.bool),
        truncated=torch.zeros(shape, dtype=torch.bool),
        cut=torch.zeros(shape, dtype=torch.bool),
        final=torch.zeros(shape, dtype=torch.bool),
        env_steps=torch.zeros(shape, dtype=torch.long),
        episode=torch.full(shape, -1, dtype=torch.long),
        turn=torch.full(shape, -1, dtype=torch.long),
        group=_groups(rows),
        source=torch.arange(len(rows)) if source is None else torch.tensor(list(source), dtype=torch.long),
        total_reward=torch.tensor([float(sum(episode.total_reward for episode in row)) for row in rows]),
        cost=torch.tensor([float(row_spans[-1].end if row_spans else 0) for row_spans in spans]),
        inputs={},
    )
    # Through NumPy, which shares their memory: one element of a tensor costs microseconds.
    mask, final, reward = decisions.mask.numpy(), decisions.final.numpy(), decisions.reward.numpy()
    terminated, truncated = decisions.terminated.numpy(), decisions.truncated.numpy()
    env_steps, number, turn = decisions.env_steps.numpy(), decisions.episode.numpy(), decisions.turn.numpy()
    for b, (row, row_spans) in enumerate(zip(rows, spans, strict=True)):
        latest: int | None = None  # the latest decision of this episode
        for span in row_spans:
            episode = row[span.episode]
            number[b, span.start : span.end] = span.episode
            turn[b, span.start : span.end] = span.step
            if span.step == 0:
                latest = None
            if span.step == len(episode):
                final[b, span.first] = True
                continue
            step = episode.steps[span.step]
            if span.decided:
                mask[b, span.first : span.end] = True
                latest = span.end - 1
            if latest is not None:
                reward[b, latest] += step.reward
                env_steps[b, latest] += len(step.info.get("step_rewards", (step.reward,)))
                terminated[b, latest] = step.terminated
                truncated[b, latest] = step.truncated and not step.terminated
    return decisions, spans


def _groups(rows: Sequence[Sequence[Episode]]) -> Tensor:
    named = [row[0].group if row else None for row in rows]
    free = max((group for group in named if group is not None), default=-1) + 1
    return torch.tensor([free + b if group is None else group for b, group in enumerate(named)], dtype=torch.long)


def placed(values: Tensor, where: Tensor) -> Tensor:
    """Return [B, T] with ``values`` [N] at the N true places of ``where``, in order, and 0 elsewhere."""
    return values.new_zeros(where.shape).masked_scatter(where, values)
