"""Collating for policies to which an environment step is one position: control."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tetrathlon.agents.decisions import Decisions, Last, Learn, layout
from tetrathlon.envs.episode import Episode, Step

Record = dict[str, Any]


def collate_steps(
    rows: Sequence[Sequence[Episode]],
    observed: Callable[[list[Any]], Mapping[str, Any]],
    decided: Callable[[list[Any], list[Record | None]], Mapping[str, Any]],
    *,
    learn: Learn = "own",
    last: Last = "open",
    every: bool = False,
    chunk: int = 0,
) -> Decisions:
    """Return what was decided in B rows of episodes, one position a step.

    Args:
        rows: B rows of episodes.
        observed: Makes of N observations arrays with leading N, by name; of last observations too.
        decided: Makes of M actions and their records arrays with leading M, by name. A record is None where the action
            is a label or somebody else's.
        learn: See :meth:`tetrathlon.agents.trainable.TrainablePolicy.collate`.
        last: See there.
        every: Whether steps without a decision have a position, too, for what they showed: a policy that remembers
            has seen it.
        chunk: K, where an action is a chunk of K, whose record has a log-probability each; 0: an action is one.

    Returns:
        Decisions whose inputs are those arrays, as [B, T, ...] with 0 where nothing was put. A record's ``logp``, if it
        has any, is the log-probability. Of a chunk that of the actions that were executed counts, as many as the info
        lists ``step_rewards``, and ``executed`` [B, T] of the inputs says how many; a label or somebody else's chunk
        counts whole.
    """

    def is_decided(step: Step) -> bool:
        return {"own": step.record is not None, "label": step.label is not None, "action": True}[learn]

    undecided = (int(every), 0)
    widths = [
        [[(0, 1) if is_decided(step) else undecided for step in episode.steps] + [0] for episode in row] for row in rows
    ]
    decisions, spans = layout(rows, widths, last=last)
    seen: list[Any] = []
    actions: list[Any] = []
    records: list[Record | None] = []
    executed: list[int] = []
    for row, row_spans in zip(rows, spans, strict=True):
        for span in row_spans:
            if span.end == span.start:
                continue
            episode = row[span.episode]
            if span.step == len(episode):
                seen.append(episode.final_observation)
                continue
            step = episode.steps[span.step]
            seen.append(step.observation)
            if not span.decided:
                continue
            actions.append(step.label if learn == "label" else step.action)
            records.append(record := None if learn == "label" else step.record)
            done = chunk if record is None else len(step.info.get("step_rewards", range(chunk)))
            executed.append(min(done, chunk))
    if seen:
        decisions.inputs |= _placed(observed(seen), decisions.episode >= 0)
    if actions:
        decisions.inputs |= _placed(decided(actions, records), decisions.mask)
        if chunk:
            decisions.inputs |= _placed({"executed": executed}, decisions.mask)
        logp = [_logp(record, done) for record, done in zip(records, executed, strict=True)]
        decisions.logp[decisions.mask] = torch.tensor(logp)
    return decisions


def _logp(record: Record | None, executed: int) -> float:
    """Return the log-probability that a record holds, of a chunk that of the actions that were executed."""
    if record is None or "logp" not in record:
        return np.nan
    logp = record["logp"]
    return float(logp[:executed].sum() if np.ndim(logp) else logp)


def _placed(columns: Mapping[str, Any], where: Tensor) -> dict[str, Tensor]:
    """Return each column [N, ...] as [B, T, ...], at the N true places of ``where`` in order."""
    placed = {}
    for name, column in columns.items():
        values = torch.as_tensor(column)
        placed[name] = values.new_zeros(*where.shape, *values.shape[1:])
        placed[name][where] = values
    return placed
