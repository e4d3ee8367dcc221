"""Preference learning: a policy becomes likelier to do what was preferred, without a model of rewards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.algos.batch import parts
from tetrathlon.algos.collect import Collector
from tetrathlon.algos.columns import floating, select
from tetrathlon.algos.kl import kl
from tetrathlon.algos.pair_learning import PairLearning, PairOptions, Ranker
from tetrathlon.algos.pairs import Pair, flat
from tetrathlon.algos.preferences import bradley_terry, dpo, hinge, ipo, kto, orpo
from tetrathlon.envs.episode import Episode

Loss = Literal["dpo", "hinge", "ipo", "kto", "simpo", "orpo"]
"""Of :mod:`~tetrathlon.algos.preferences`: ``dpo``, ``hinge`` and ``kto`` read log-ratios to the reference summed over
an answer, ``ipo`` their mean; ``simpo`` and ``orpo`` the mean log-probability, and have no reference."""
_REFERENCED = ("dpo", "hinge", "ipo", "kto")
_MEANS = ("ipo", "simpo", "orpo")
_SMOOTHED = ("dpo", "simpo")


@dataclass(frozen=True, kw_only=True)
class Options(PairOptions):
    """Which loss of pairs is lowered, and how strongly the start holds.

    Raises:
        ValueError: A value is out of range, or the loss does not read it.
    """

    loss: Loss = "dpo"
    """What is lowered; of ``dpo``, ``hinge`` and ``kto`` log-ratios to the start are summed over an answer, of ``ipo``
    averaged; ``simpo`` and ``orpo`` take mean log-probabilities, and know no start."""
    beta: float = 0.1
    """How strongly the start holds: log-ratios are multiplied by it (``ipo``: they are to differ by 1 / (2 beta)). Of
    ``simpo`` the scale of mean log-probabilities; of ``orpo`` the weight of the odds ratio."""
    label_smoothing: float = 0.0
    """How often labels are taken to be wrong; of ``dpo`` and ``simpo``."""
    margin: float = 0.0
    """How far ``simpo`` wants answers apart: gamma of the paper."""
    desirable_weight: float = 1.0
    """Weight of preferred answers in ``kto``."""
    undesirable_weight: float = 1.0
    """Weight of rejected answers in ``kto``."""
    imitation_coef: float = 0.0
    """Weight of -log p of preferred answers, averaged over their decisions, beside the loss of pairs: part of ORPO; for
    others it keeps preferred answers from becoming unlikely with the rejected ones (Pang et al., 2024)."""
    online: bool = False
    """Whether each update plays anew and learns from its own pairs (online DPO: Guo et al., 2024), or all learn from
    what was played in the first."""

    def __post_init__(self) -> None:
        super().__post_init__()
        *ways, last = map(repr, get_args(Loss))
        if self.loss not in get_args(Loss):
            raise ValueError(f"loss must be {', '.join(ways)} or {last}, got {self.loss!r}")
        if not self.beta > 0:
            raise ValueError(f"beta must be above 0, got {self.beta!r}")
        if not 0 <= self.label_smoothing < 0.5:
            raise ValueError(f"label_smoothing must be in [0, 0.5), got {self.label_smoothing!r}")
        for name in ("margin", "desirable_weight", "undesirable_weight", "imitation_coef"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)!r}")
        for name, default, losses in (
            ("label_smoothing", 0.0, _SMOOTHED),
            ("margin", 0.0, ("simpo",)),
            ("desirable_weight", 1.0, ("kto",)),
            ("undesirable_weight", 1.0, ("kto",)),
        ):
            if getattr(self, name) != default and self.loss not in losses:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is of {' and '.join(losses)}, and loss={self.loss!r} does not "
                    "read it"
                )


class Preferrer(Ranker):
    """A policy, its optimizer and its reference: lowers a loss of pairs.

    Args:
        policy: What learns.
        options: See :class:`Options`.
        updates: How many updates there will be, over which the learning rate falls.

    Raises:
        ValueError: Weights that learn have 16 bits, in which most updates round to nothing; or nothing learns.
    """

    options: Options

    def __init__(self, policy: TrainablePolicy, options: Options, updates: int | None = None) -> None:
        super().__init__(policy, options, updates=updates, imitates=False)
        self.reference = policy.snapshot() if options.loss in _REFERENCED else None
        if options.loss == "kto":
            self.together = 4

    def rows(self, pairs: Sequence[Pair]) -> Decisions:
        """Return pairs as rows, with the log-probabilities of the reference where there is one.

        KTO's baseline is estimated on answers to other starts, which are two more rows a pair.

        Raises:
            ValueError: ``kto`` is to learn from episodes of several steps.
        """
        if self.options.loss != "kto":
            batch = self.labelled(self._collated(flat(pairs)), (1, 0))
        else:
            others = mismatched(pairs)
            both = zip(pairs, others, strict=True)
            batch = self.labelled(self._collated(flat(each for two in both for each in two)), (1, 0, -1, -1))
        if self.reference is not None:
            batch.ref_logp = self._logp(self.reference, batch).cpu()
        return batch

    def _collated(self, episodes: Sequence[Episode]) -> Decisions:
        return self.policy.collate([[episode] for episode in episodes], learn="action", last="never")

    @torch.no_grad()
    def _logp(self, policy: TrainablePolicy, batch: Decisions) -> Tensor:
        """Return log-probabilities, float [B, T], evaluated in parts as large as those of a step at most."""
        rows = self.together * self.options.batch_size
        found = []
        for start in range(0, len(batch), rows):
            minibatch = batch.select(range(start, min(start + rows, len(batch))))
            for part in parts(minibatch, self.options.max_cost, self.together):
                found.append(policy.evaluate(part.to(self.device)).logp)
        return torch.cat(found)

    def _whole(self, minibatch: Decisions) -> Tensor:
        """Return how many pairs there are, how many decisions of theirs, and KTO's baseline.

        The baseline is an estimate of the divergence from the reference: the mean log-ratio of mismatched answers
        (Ethayarajh et al., 2024, section 4.1). No gradient flows into it, and :func:`~preferences.kto` takes 0 for what
        is below 0. It is that of all of the minibatch, whatever the parts.
        """
        assert minibatch.preference is not None
        answers = minibatch.preference >= 0
        baseline = 0.0
        if self.options.loss == "kto":
            other = minibatch.select(~answers)
            assert other.ref_logp is not None
            ratio = self._logp(self.policy, other).cpu() - other.ref_logp
            baseline = float(_sum(ratio, other.mask).mean())
        count = len(minibatch) // self.together
        return torch.tensor([count, int(minibatch.mask[answers].sum()), baseline], dtype=torch.float64)

    def _loss(self, part: Decisions, whole: Tensor) -> tuple[Tensor, dict[str, float]]:
        options = self.options
        assert part.preference is not None
        count, decisions, baseline = whole.tolist()
        part = part.select(part.preference >= 0) if self.together > 2 else part
        mask = part.mask
        evaluation = self.policy.evaluate(part)
        logp = evaluation.logp
        length = mask.sum(dim=1).clamp(min=1)
        summed = _sum(logp, mask)
        score = summed if part.ref_logp is None else _sum(logp - part.ref_logp, mask)
        if options.loss in _MEANS:
            score = score / length
        gap = score[0::2] - score[1::2]
        each = {
            "dpo": lambda: dpo(gap, options.beta, label_smoothing=options.label_smoothing),
            "hinge": lambda: hinge(gap, options.beta),
            "ipo": lambda: ipo(gap, options.beta),
            "simpo": lambda: bradley_terry(
                options.beta * gap, margin=options.margin, label_smoothing=options.label_smoothing
            ),
            "orpo": lambda: options.beta * orpo(score[0::2], score[1::2]),
            "kto": lambda: self._kto(score, baseline),
        }[options.loss]()
        imitation = -(summed / length)[0::2]
        loss = (each + options.imitation_coef * imitation).sum() / count
        with torch.no_grad():
            reward = score if options.loss == "orpo" else options.beta * score
            told = {
                "loss": loss,
                "accuracy": (gap > 0).float().sum() / count,
                "margin": (reward[0::2] - reward[1::2]).sum() / count,
                "reward_preferred": reward[0::2].sum() / count,
                "reward_rejected": reward[1::2].sum() / count,
                "logp_preferred": summed[0::2].sum() / count,
                "logp_rejected": summed[1::2].sum() / count,
                "entropy": select(evaluation.entropy, mask).sum() / max(decisions, 1),
            }
            if options.imitation_coef:
                told["imitation_loss"] = imitation.sum() / count
            if part.ref_logp is not None:
                # Of what neither sampled: weighted as far as it is known who did. Unweighted, one rejected answer that
                # has become impossible would be all of it.
                sampled = torch.where(part.logp.isnan(), part.ref_logp, part.logp)
                told["kl_ref"] = kl(logp, part.ref_logp, mask, old_logp=sampled).sum() / max(decisions, 1)
            values = torch.stack([value.detach().double() for value in told.values()]).tolist()
            metrics = dict(zip(told, values, strict=True))
            if options.loss == "kto":
                metrics["baseline"] = max(baseline, 0.0) * len(gap) / count
        return loss, metrics

    def _kto(self, score: Tensor, baseline: float) -> Tensor:
        """Return the loss of each pair: the mean of its two verdicts."""
        desirable = torch.arange(len(score), device=score.device) % 2 == 0
        return (
            kto(
                score,
                desirable,
                baseline,
                beta=self.options.beta,
                desirable_weight=self.options.desirable_weight,
                undesirable_weight=self.options.undesirable_weight,
            )
            .view(-1, 2)
            .mean(dim=1)
        )

    def state_dict(self) -> dict[str, Any]:
        """Return all that an update depends on."""
        return super().state_dict() | {"reference": None if self.reference is None else self.reference.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        super().load_state_dict(state)
        if self.reference is not None:
            self.reference.load_state_dict(state["reference"])


def _sum(x: Tensor, mask: Tensor) -> Tensor:
    """Return the sum of each row at its mask, [B]; a row is one episode."""
    x = floating(x)
    return select(x, mask).double().sum(dim=1).to(x.dtype)  # in float32 a long answer loses digits


def mismatched(pairs: Sequence[Pair]) -> list[Pair]:
    """Return for each pair its start with the answers of the next pair that showed something else.

    Where all showed the same, they are those of the next pair.

    Raises:
        ValueError: An episode has several steps: what is shown after another answer is not known.
    """
    if long := [len(episode) for episode in flat(pairs) if len(episode) != 1]:
        raise ValueError(
            f"the baseline of KTO puts the answer of one episode behind the start of another, which takes episodes of "
            f"one step; one has {long[0]}: take another loss"
        )
    shown = [str(pair.preferred.steps[0].observation) for pair in pairs]
    found = []
    for i, pair in enumerate(pairs):
        later = ((i + k) % len(pairs) for k in range(1, len(pairs)))
        other = pairs[next((j for j in later if shown[j] != shown[i]), (i + 1) % len(pairs))]
        swapped = [
            replace(own, steps=[replace(own.steps[0], action=taken.steps[0].action, record=None)])
            for own, taken in ((pair.preferred, other.preferred), (pair.rejected, other.rejected))
        ]
        found.append(Pair(*swapped))
    return found


class PreferenceLearning(PairLearning):
    """Lowers a loss of pairs; :class:`Options` says which."""

    Options = Options

    def _collector(self, env_id: str, kwargs: Mapping[str, Any] | None) -> Collector:
        if not self.policy.has_density:
            raise TypeError(
                f"{type(self).__name__} needs log-probabilities, and this {type(self.policy).__name__} decides "
                "without a density: train it by BC or DAgger"
            )
        return super()._collector(env_id, kwargs)

    def _learner(self) -> Preferrer:
        return Preferrer(self.policy, self.options)


class DPO(PreferenceLearning):
    """Direct preference optimisation (Rafailov et al., 2023, eq. 7); with ``loss="hinge"`` SLiC's loss.

    With ``label_smoothing`` it is conservative DPO, with ``online`` each update plays anew.
    """

    @dataclass(frozen=True, kw_only=True)
    class Options(Options):
        """DPO's settings."""


class IPO(PreferenceLearning):
    """Identity preference optimisation (Azar et al., 2024, eq. 17): a margin to reach, not to exceed."""

    @dataclass(frozen=True, kw_only=True)
    class Options(Options):
        """IPO's settings."""

        loss: Loss = "ipo"


class KTO(PreferenceLearning):
    """Kahneman-Tversky optimisation (Ethayarajh et al., 2024, eq. 8): each answer by itself, against a baseline.

    The baseline is the mean log-ratio to the start of mismatched answers of the minibatch; it takes episodes of one
    step.
    """

    @dataclass(frozen=True, kw_only=True)
    class Options(Options):
        """KTO's settings."""

        loss: Loss = "kto"


class SimPO(PreferenceLearning):
    """Simple preference optimisation (Meng et al., 2024, eq. 6): mean log-probabilities, no reference."""

    @dataclass(frozen=True, kw_only=True)
    class Options(Options):
        """SimPO's settings."""

        loss: Loss = "simpo"
        beta: float = 2.0
        margin: float = 0.5


class ORPO(PreferenceLearning):
    """Odds ratio preference optimisation (Hong et al., 2024, eq. 6 and 7): imitation of the preferred, and the odds."""

    @dataclass(frozen=True, kw_only=True)
    class Options(Options):
        """ORPO's settings."""

        loss: Loss = "orpo"
        imitation_coef: float = 1.0


ALGORITHMS: Mapping[str, type[PreferenceLearning]] = {
    algorithm.__name__.lower(): algorithm for algorithm in (DPO, IPO, KTO, SimPO, ORPO)
}
"""By the names of the command line."""
