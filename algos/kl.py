"""Estimates of the divergence from a reference policy, a value a decision (Schulman, 2020)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from tetrathlon.algos.ratios import LARGEST_LOG_RATIO, exp_linear, log_ratio

Estimator = Literal["k1", "k2", "k3"]
"""With x = log pi - log pi_ref. k1: x. k2: x**2 / 2. k3: exp(-x) - 1 + x, never negative."""


def kl(
    logp: Tensor, ref_logp: Tensor, mask: Tensor, estimator: Estimator = "k3", *, old_logp: Tensor | None = None
) -> Tensor:
    r"""Return an estimate of KL(policy || reference) at each decision.

    In a reward any of them serves, k1 by custom. In a loss the gradient counts: that of k2 is x, on-policy an
    unbiased gradient of the divergence; that of k3 is 1 - exp(-x); that of k1 is 1 whatever the reference says,
    0 in expectation, so k1 alone in a loss pulls nowhere.

    Nothing is clamped. Where the reference is more than e**20 times as sure, the exponential of k3 goes on as its
    tangent: the value grows linearly, and the gradient stays at 1 - e**20, pulling towards the reference.

    Args:
        logp: float [B, T], under the policy, with gradients.
        ref_logp: float [B, T], under the reference.
        mask: bool [B, T].
        estimator: See :data:`Estimator`.
        old_logp: float [B, T], under the policy that sampled. If given, each estimate is weighted by the ratio of
            its own decision, with gradients, which makes it unbiased off-policy (DeepSeek-AI, 2025, section 3.1).
            The ratio is of the decision also where the surrogate takes that of a whole episode.

    Returns:
        float [B, T], 0 outside the mask.

    Raises:
        ValueError: The estimator is unknown.
    """
    x = log_ratio(logp, ref_logp, mask)
    if estimator == "k1":
        estimate = x
    elif estimator == "k2":
        estimate = 0.5 * x**2
    elif estimator == "k3":
        estimate = _k3(-x)
    else:
        raise ValueError(f"estimator must be 'k1', 'k2' or 'k3', got {estimator!r}")
    if old_logp is not None:
        estimate = estimate * exp_linear(log_ratio(logp, old_logp, mask))
    return estimate


def _k3(d: Tensor) -> Tensor:
    # expm1: in float32 exp(d) - 1 - d is rounding noise of either sign for |d| < 1e-3.
    capped = d.clamp(max=LARGEST_LOG_RATIO)
    estimate = torch.expm1(capped) + capped.exp() * (d - capped) - d
    return estimate - estimate.detach().clamp(max=0)  # the last rounding is taken off; the gradient stays
