"""What actions are worth, out of a log: pure functions of what critics say.

Shapes: K critics, n actions a state, B rows, T positions. A log holds what was done; what else might have been done is
where values are too high, and each function here is one way to live with that.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tetrathlon.algos.columns import floating


def td_target(reward: Tensor, following: Tensor, *, terminated: Tensor, env_steps: Tensor, gamma: float) -> Tensor:
    r"""Return what an action turned out to be worth, one decision later.

    .. math:: r_t + \gamma^{k_t} V_{t+1}

    At a termination the next value is 0 and may be anything, NaN included; after a truncation it is that of the true
    last state.

    Args:
        reward: float [...].
        following: float [...], the value of the state that the decision led to.
        terminated: bool [...].
        env_steps: int [...], k: environment steps until then, 0 inside a turn of tokens.
        gamma: Discount of one environment step.

    Returns:
        float [...].
    """
    reward = floating(reward)
    discount = torch.as_tensor(gamma, dtype=reward.dtype, device=reward.device) ** env_steps
    return reward + discount * torch.where(terminated, 0.0, floating(following))


def advantage_weights(advantage: Tensor, beta: float, most: float) -> Tensor:
    r"""Return how much what was done is imitated (AWR: Peng et al., 2019, eq. 8; IQL: Kostrikov et al., 2021, eq. 7).

    .. math:: \min(e^{\beta A}, w_{max})

    No gradient flows through it.

    Args:
        advantage: float, any shape.
        beta: The inverse temperature; 0 imitates everything alike. AWR writes 1 / beta, AWAC 1 / lambda.
        most: Largest weight.
    """
    return (beta * floating(advantage).detach()).clamp(max=math.log(most)).exp()


def soft_maximum(q: Tensor, log_density: Tensor, temperature: float = 1.0) -> Tensor:
    r"""Estimate the soft maximum of Q over all actions out of n draws (CQL(H): Kumar et al., 2020, appendix F).

    .. math:: \tau \log \int e^{Q(a) / \tau} da \approx
              \tau \Big(\log \sum_i e^{Q(a_i) / \tau - \log d(a_i)} - \log n\Big)

    The draws may come from several densities, each with its own. The temperature divides Q alone. Gradients reach Q,
    and no density.

    Args:
        q: float [n, ...].
        log_density: float [n, ...]: of each draw under what it was drawn from, in the same units of action.
        temperature: tau.

    Returns:
        float [...].
    """
    told = floating(q) / temperature - floating(log_density).detach()
    return temperature * (torch.logsumexp(told, dim=0) - math.log(q.shape[0]))


def q_scale(q: Tensor, alpha: float) -> Tensor:
    r"""Return by what Q is multiplied beside an imitation loss of size 1 (TD3+BC: Fujimoto and Gu, 2021, eq. 5).

    .. math:: \lambda = \alpha / \mathrm{mean}|Q|

    One number for a batch, through which no gradient flows.

    Args:
        q: float, any shape.
        alpha: How much more Q counts than imitation.
    """
    size = floating(q).detach().abs().mean()
    return alpha / size.clamp(min=torch.finfo(size.dtype).tiny)
