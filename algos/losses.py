"""Losses: pure functions of decision columns, each a value a decision.

Shapes: B rows, T positions. Inputs are read at ``mask`` alone and may be NaN elsewhere.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from tetrathlon.algos.columns import floating, select
from tetrathlon.algos.ratios import exp_linear, log_ratio
from tetrathlon.algos.segments import Segments

ValueClip = Literal["none", "max", "clipped_only"]
"""``none``; ``max``: the larger of the errors of the value and of the clipped value (PPO2, CleanRL); ``clipped_only``:
that of the clipped value, whose gradient is 0 outside the range (Stable-Baselines3)."""


def total(loss: Tensor, mask: Tensor, denominator: Tensor | float) -> Tensor:
    """Sum the losses at ``mask``, each over its denominator, which comes from the whole batch.

    So a loss and its gradient do not depend on how the batch is split: the parts add up. Where ranks average their
    gradients, multiply by how many there are.

    Args:
        loss: float [B, T].
        mask: bool [B, T].
        denominator: float [B, T], see :func:`tetrathlon.algos.denominators.denominators`, or a scalar for all; 0
            counts as 1.

    Returns:
        float scalar; 0 with gradients of 0 where the mask is empty.
    """
    loss = floating(loss)
    divisor = torch.as_tensor(denominator, dtype=loss.dtype, device=loss.device).clamp(min=1)
    return (select(loss, mask) / divisor).sum()


def clipped_surrogate(
    logp: Tensor,
    old_logp: Tensor,
    advantage: Tensor,
    mask: Tensor,
    *,
    segments: Segments | None = None,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Return the clipped policy loss of each decision (PPO, Schulman et al., 2017, eq. 7).

    .. math:: -\min(\rho A, \mathrm{clip}(\rho, 1 - \epsilon_{low}, 1 + \epsilon_{high}) A)

    A larger ``clip_high`` is Clip-Higher (DAPO, Yu et al., 2025, eq. 10). ``dual_clip`` c > 1 bounds the loss of
    a negative advantage by -c A (Ye et al., 2020, eq. 4). Ratios above e**20 grow linearly; see
    :func:`tetrathlon.algos.ratios.exp_linear`.

    Args:
        logp: float [B, T], under the policy, with gradients.
        old_logp: float [B, T], under the policy before the update.
        advantage: float [B, T].
        mask: bool [B, T].
        segments: Whose ratio counts: turns, or episodes (GSPO, Zheng et al., 2025); default: each decision has its
            own. See :func:`tetrathlon.algos.ratios.log_ratio`.
        clip_low: How far below 1 the ratio counts.
        clip_high: How far above 1 the ratio counts.
        dual_clip: c, or None.

    Returns:
        loss: float [B, T], 0 outside the mask.
        ratio: float [B, T], 1 outside the mask.

    Raises:
        ValueError: ``dual_clip`` is not above 1.
    """
    if dual_clip is not None and not dual_clip > 1:
        raise ValueError(f"dual_clip must be above 1, got {dual_clip}")
    ratio = exp_linear(log_ratio(logp, old_logp, mask, segments))
    gain = select(floating(advantage), mask)
    loss = -torch.minimum(ratio * gain, ratio.clamp(1 - clip_low, 1 + clip_high) * gain)
    if dual_clip is not None:
        loss = torch.where(gain < 0, torch.minimum(loss, -dual_clip * gain), loss)
    return loss, ratio.detach()


def entropy_bonus(entropy: Tensor, mask: Tensor, coef: float) -> Tensor:
    """Return the loss whose descent raises the entropy: -coef H.

    Args:
        entropy: float [B, T], with gradients.
        mask: bool [B, T].
        coef: Weight of the bonus.

    Returns:
        float [B, T], 0 outside the mask.
    """
    return -coef * select(floating(entropy), mask)


def squared_error(value: Tensor, returns: Tensor, mask: Tensor) -> Tensor:
    """Return half the squared error of each value.

    Args:
        value: float [B, T], with gradients.
        returns: float [B, T].
        mask: bool [B, T].

    Returns:
        float [B, T], 0 outside the mask.
    """
    return 0.5 * (select(floating(value), mask) - select(floating(returns), mask)) ** 2


def value_loss(
    value: Tensor,
    returns: Tensor,
    mask: Tensor,
    *,
    old_value: Tensor | None = None,
    clip: float | None = None,
    clip_mode: ValueClip = "none",
    huber: float | None = None,
) -> Tensor:
    """Return the loss of each value: half its squared error, or Huber's.

    Args:
        value: float [B, T], with gradients.
        returns: float [B, T].
        mask: bool [B, T]; with credit by turn or episode, the first decision of each.
        old_value: float [B, T], before the update; read where values are clipped.
        clip: How far a value may move from ``old_value``.
        clip_mode: See :data:`ValueClip`.
        huber: From which error on the loss grows linearly; default: never.

    Returns:
        float [B, T], 0 outside the mask.

    Raises:
        ValueError: The mode is unknown, or it clips without ``old_value`` and ``clip``, or the other way round.
    """
    if clip_mode not in ("none", "max", "clipped_only"):
        raise ValueError(f"clip_mode must be 'none', 'max' or 'clipped_only', got {clip_mode!r}")
    if (clip_mode == "none") != (clip is None):
        raise ValueError(f"clip_mode={clip_mode!r} and clip={clip} do not go together; say both or neither")

    def error(value: Tensor) -> Tensor:
        if huber is None:
            return squared_error(value, returns, mask)
        wanted = select(floating(returns), mask)
        return functional.huber_loss(select(floating(value), mask), wanted, reduction="none", delta=huber)

    if clip is None:
        return error(value)
    if old_value is None:
        raise ValueError(f"clip_mode={clip_mode!r} needs old_value")
    clipped = error(old_value + (value - old_value).clamp(-clip, clip))
    return clipped if clip_mode == "clipped_only" else torch.maximum(error(value), clipped)


def expectile(difference: Tensor, tau: float) -> Tensor:
    r"""Return the expectile loss of each difference (IQL, Kostrikov et al., 2021, eq. 5).

    .. math:: L_\tau(u) = |\tau - 1(u < 0)| u^2

    Args:
        difference: float, any shape: target minus estimate.
        tau: In (0, 1); 0.5 is half the squared error, nearer to 1 tends to the maximum.

    Returns:
        float of the same shape.
    """
    return torch.where(difference < 0, 1 - tau, tau) * difference**2


def episode_sums(x: Tensor, mask: Tensor, episode: Tensor) -> Tensor:
    """Return the sum of ``x`` over the decisions of each episode.

    Args:
        x: float [B, T].
        mask: bool [B, T].
        episode: int [B, T], which episode of its row; read at ``mask``.

    Returns:
        float [B, E], E the most episodes that a row holds; 0 where a row holds fewer.
    """
    index = torch.where(mask, episode, 0)
    count = int(index.max()) + 1 if index.numel() else 0
    return x.new_zeros(x.shape[0], count).scatter_add(1, index, select(x, mask))
