"""Ratios between two policies, of one decision or of a whole turn or episode."""

from __future__ import annotations

import torch
from torch import Tensor

from tetrathlon.algos.columns import floating, select
from tetrathlon.algos.segments import Segments

LARGEST_LOG_RATIO = 20.0
"""Above it ``exp`` goes on as its tangent: no policy update is meant to reach e**20."""


def exp_linear(x: Tensor) -> Tensor:
    """Return ``exp(x)``, going on as its tangent above 20, so that value and gradient stay finite and are never 0.

    Args:
        x: float, any shape: a log-ratio.
    """
    capped = x.clamp(max=LARGEST_LOG_RATIO)
    return capped.exp() * (1 + (x - capped))


def log_ratio(logp: Tensor, old_logp: Tensor, mask: Tensor, segments: Segments | None = None) -> Tensor:
    r"""Return the log-ratio of each decision, or the mean over its segment.

    .. math:: \log s_t = \mathrm{sg}\Big[\frac{1}{|S|} \sum_{u \in S} \log \rho_u\Big]
              + \log \pi_t - \mathrm{sg}[\log \pi_t]

    The mean, not the sum, which grows with the length (GSPO, Zheng et al., 2025, eq. 7). The value is that of the
    segment at each of its decisions; the gradient is that of the decision alone (GSPO-token, eq. 14). Where the
    advantage is the same over a segment, the gradient of a loss is exactly that of the paper's eq. 5; where it
    differs, each decision is moved by its own.

    Args:
        logp: float [B, T], under the policy, with gradients.
        old_logp: float [B, T], under the policy to compare with.
        mask: bool [B, T].
        segments: Over what to average; default: each decision has its own ratio. Rows that hold parts of one
            segment have to come together.

    Returns:
        float [B, T], 0 outside the mask.

    Raises:
        ValueError: There are decisions at ``mask`` that no segment holds.
    """
    own = select(floating(logp), mask) - select(floating(old_logp), mask)
    if segments is None:
        return own
    if (outside := mask & ~segments.mask).any():
        raise ValueError(
            f"{int(outside.sum())} decisions of the mask are in no segment; make the segments of this mask"
        )
    fixed = own.detach()
    count = segments.sum(mask).clamp(min=1)
    mean = segments.spread(segments.sum(fixed) / count)
    return select(mean + (own - fixed), mask)


@torch.no_grad()
def truncated_weights(
    logp: Tensor, sampler_logp: Tensor, mask: Tensor, *, cap: float, segments: Segments | None = None
) -> Tensor:
    r"""Return weights that correct for a sampler that is not the trainer (truncated importance sampling).

    .. math:: w = \min(\pi_{trainer} / \pi_{sampler}, c)

    Multiply a loss by them. Over a segment the log-ratio is the mean, so that the variance does not grow with the
    length: .012 a token over 100 tokens gives 1.0121, and not 3.3201.

    Args:
        logp: float [B, T], under the trainer's weights as they were when the batch came (``old_logp``).
        sampler_logp: float [B, T], as sampled.
        mask: bool [B, T].
        cap: c, the largest weight.
        segments: Over what to average; default: each decision has its own weight.

    Returns:
        float [B, T], without gradients; 1 outside the mask.

    Raises:
        ValueError: The cap is not positive.
    """
    if not cap > 0:
        raise ValueError(f"cap must be above 0, got {cap}")
    return exp_linear(log_ratio(logp, sampler_logp, mask, segments)).clamp(max=cap)
