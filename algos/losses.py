"""Losses: pure functions of decision columns, each a value a decision, and the one reducer.

Shapes: B rows, T positions. Inputs are read at ``mask`` alone and may be NaN elsewhere.
"""

from __future__ import annotations

import torch
from torch import Tensor

_LARGEST_LOG_RATIO = 20.0


def select(x: Tensor, mask: Tensor) -> Tensor:
    """Return ``x`` with 0 where ``mask`` is False; gradients there are exactly 0, whatever ``x`` was."""
    return torch.where(mask, x, torch.zeros((), dtype=x.dtype, device=x.device))


def total(loss: Tensor, mask: Tensor, denominator: Tensor | float) -> Tensor:
    """Sum the losses at ``mask`` over a denominator that the caller takes from the whole batch.

    So a loss and its gradient do not depend on how the batch is split: the parts add up.

    Args:
        loss: float [B, T].
        mask: bool [B, T].
        denominator: How many decisions (or what else) the whole batch holds; 0 counts as 1.

    Returns:
        float scalar; 0 with gradients of 0 where the mask is empty.
    """
    count = torch.as_tensor(denominator, dtype=loss.dtype, device=loss.device)
    return select(loss, mask).sum() / count.clamp(min=1)


def exp_linear(x: Tensor) -> Tensor:
    """Return ``exp(x)``, going on as its tangent above 20, so that value and gradient stay finite and are never 0.

    Args:
        x: float, any shape: a log-ratio.
    """
    capped = x.clamp(max=_LARGEST_LOG_RATIO)
    return capped.exp() * (1 + (x - capped))


def clipped_surrogate(
    logp: Tensor,
    old_logp: Tensor,
    advantage: Tensor,
    mask: Tensor,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Return the clipped policy loss of each decision (PPO, Schulman et al., 2017, eq. 7).

    .. math:: -\min(\rho A, \mathrm{clip}(\rho, 1 - \epsilon_{low}, 1 + \epsilon_{high}) A)

    A larger ``clip_high`` is Clip-Higher (DAPO, Yu et al., 2025, eq. 10). ``dual_clip`` c > 1 bounds the loss of
    a negative advantage by -c A (Ye et al., 2020, eq. 4). Ratios above e**20 grow linearly; see :func:`exp_linear`.

    Args:
        logp: float [B, T], under the policy, with gradients.
        old_logp: float [B, T], under the policy before the update.
        advantage: float [B, T].
        mask: bool [B, T].
        clip_low: How far below 1 the ratio counts.
        clip_high: How far above 1 the ratio counts.
        dual_clip: c, or None.

    Returns:
        loss: float [B, T], 0 outside the mask.
        ratio: float [B, T], 1 outside the mask.
    """
    ratio = exp_linear(select(logp.float(), mask) - select(old_logp.float(), mask))
    gain = select(advantage.float(), mask)
    loss = -torch.minimum(ratio * gain, ratio.clamp(1 - clip_low, 1 + clip_high) * gain)
    if dual_clip is not None:
        loss = torch.where(gain < 0, torch.minimum(loss, -dual_clip * gain), loss)
    return loss, ratio.detach()


def squared_error(value: Tensor, returns: Tensor, mask: Tensor) -> Tensor:
    """Return half the squared error of each value.

    Args:
        value: float [B, T], with gradients.
        returns: float [B, T].
        mask: bool [B, T].

    Returns:
        float [B, T], 0 outside the mask.
    """
    return 0.5 * (select(value.float(), mask) - select(returns.float(), mask)) ** 2


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


def dpo(margin: Tensor, beta: float) -> Tensor:
    r"""Return the direct preference loss of each pair (DPO, Rafailov et al., 2023, eq. 7).

    .. math:: -\log \sigma(\beta m)

    Args:
        margin: float [P]: log-ratio to the reference of the preferred answer minus that of the rejected one, each
            summed over its decisions.
        beta: How strongly the reference holds.

    Returns:
        float [P].
    """
    return -torch.nn.functional.logsigmoid(beta * margin)


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
