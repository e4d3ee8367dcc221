"""Preference losses: what pairs, rankings and verdicts say of scores or of policies.

Shapes: P pairs, K items of a ranking, N answers. The log-probability of an answer is a sum over its decisions or
their mean, as each function says. Computed in float32 at least.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from tetrathlon.algos.columns import floating, select


def bradley_terry(difference: Tensor, *, margin: Tensor | float = 0.0, label_smoothing: float = 0.0) -> Tensor:
    r"""Return the loss of each pair of scores (Bradley and Terry, 1952; margin: Llama 2, Touvron et al., 2023, eq. 2).

    .. math:: -(1 - \epsilon) \log \sigma(d - m) - \epsilon \log \sigma(m - d)

    SimPO (Meng et al., 2024, eq. 6) is this with d = beta times the difference of mean log-probabilities and
    m = gamma.

    Args:
        difference: float [P]: the score of the preferred answer minus that of the rejected one.
        margin: float [P] or a number: how far they should be apart.
        label_smoothing: epsilon, how often labels are taken to be wrong.

    Returns:
        float [P].

    Raises:
        ValueError: ``label_smoothing`` is not in [0, 0.5).
    """
    if not 0 <= label_smoothing < 0.5:
        raise ValueError(f"label_smoothing must be in [0, 0.5), got {label_smoothing}")
    d = floating(difference) - margin
    return -(1 - label_smoothing) * logsigmoid(d) - label_smoothing * logsigmoid(-d)


def plackett_luce(score: Tensor, mask: Tensor) -> Tensor:
    r"""Return the loss of each ranking (Plackett, 1975; Luce, 1959); of two items it is :func:`bradley_terry`.

    .. math:: \sum_k \Big(\log \sum_{j \ge k} e^{s_j} - s_k\Big)

    Args:
        score: float [P, K], the best first.
        mask: bool [P, K], which items there are.

    Returns:
        float [P].
    """
    score = floating(score)
    # An absent item weighs e**lowest = 0; -inf would turn the gradient of a row's empty tail into NaN.
    present = torch.where(mask, score, torch.finfo(score.dtype).min)
    rest = present.flip(1).logcumsumexp(dim=1).flip(1)
    return select(rest - present, mask).sum(dim=1)


def dpo(margin: Tensor, beta: float, *, label_smoothing: float = 0.0) -> Tensor:
    r"""Return the direct preference loss of each pair (DPO, Rafailov et al., 2023, eq. 7).

    .. math:: -\log \sigma(\beta m)

    With label smoothing it is conservative DPO (Mitchell, 2023); see :func:`bradley_terry`.

    Args:
        margin: float [P]: log-ratio to the reference of the preferred answer minus that of the rejected one, each
            summed over its decisions.
        beta: How strongly the reference holds.
        label_smoothing: How often labels are taken to be wrong.

    Returns:
        float [P].

    Raises:
        ValueError: ``label_smoothing`` is not in [0, 0.5).
    """
    return bradley_terry(beta * floating(margin), label_smoothing=label_smoothing)


def hinge(margin: Tensor, beta: float) -> Tensor:
    r"""Return the hinge loss of each pair (SLiC; Zhao et al., 2023).

    .. math:: \max(0, 1 - \beta m)

    Args:
        margin: float [P], as :func:`dpo` takes it.
        beta: How strongly the reference holds.

    Returns:
        float [P].
    """
    return (1 - beta * floating(margin)).clamp(min=0)


def ipo(margin: Tensor, beta: float) -> Tensor:
    r"""Return the squared loss of each pair (IPO, Azar et al., 2024, eq. 17).

    .. math:: (m - 1 / (2 \beta))^2

    Args:
        margin: float [P]: log-ratio to the reference of the preferred answer minus that of the rejected one, each
            the mean over its decisions: a sum would ask long answers for less a decision.
        beta: How strongly the reference holds.

    Returns:
        float [P].
    """
    return (floating(margin) - 1 / (2 * beta)) ** 2


def orpo(preferred: Tensor, rejected: Tensor) -> Tensor:
    r"""Return the odds-ratio term of each pair, to add to the loss of imitation (ORPO, Hong et al., 2024, eq. 7).

    .. math:: -\log \sigma\Big(\log \frac{p_w}{1 - p_w} - \log \frac{p_l}{1 - p_l}\Big)

    Args:
        preferred: float [P], mean log-probability of the preferred answer.
        rejected: float [P], that of the rejected one.

    Returns:
        float [P].
    """
    return -logsigmoid(_log_odds(preferred) - _log_odds(rejected))


def _log_odds(logp: Tensor) -> Tensor:
    logp = floating(logp).clamp(max=-torch.finfo(torch.float32).eps)  # of certainty the odds are infinite
    near_zero = logp > -math.log(2)  # each form keeps its digits on one side
    small = torch.where(near_zero, logp, -1.0)
    large = torch.where(near_zero, -1.0, logp)
    return logp - torch.where(near_zero, (-torch.expm1(small)).log(), torch.log1p(-large.exp()))


def kto(
    log_ratio: Tensor,
    desirable: Tensor,
    baseline: Tensor | float,
    *,
    beta: float = 0.1,
    desirable_weight: float = 1.0,
    undesirable_weight: float = 1.0,
) -> Tensor:
    r"""Return the loss of each answer that was called good or bad (KTO, Ethayarajh et al., 2024, eq. 8).

    .. math:: \lambda_D (1 - \sigma(\beta (r - z)))\ \text{or}\ \lambda_U (1 - \sigma(\beta (z - r)))

    Args:
        log_ratio: float [N], r: log-ratio to the reference, summed over the answer's decisions.
        desirable: bool [N].
        baseline: z: the divergence from the reference, estimated over the batch; no gradient flows into it, and
            below 0 it counts as 0.
        beta: How strongly the reference holds.
        desirable_weight: lambda_D.
        undesirable_weight: lambda_U.

    Returns:
        float [N].
    """
    r = floating(log_ratio)
    gain = beta * (r - torch.as_tensor(baseline, dtype=r.dtype, device=r.device).detach().clamp(min=0))
    return torch.where(desirable, desirable_weight * torch.sigmoid(-gain), undesirable_weight * torch.sigmoid(gain))
