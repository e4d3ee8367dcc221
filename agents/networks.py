"""Networks of control policies: perceptrons, small CNNs, and a memory.

Shapes: B rows, T positions, N slots; F numbers, E features, H size of the memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any, Literal, get_args

import torch
from gymnasium import spaces
from torch import Tensor, nn

from tetrathlon.agents.features import Features

Activation = Literal["tanh", "relu", "elu", "silu"]
"""What follows on each hidden layer."""
CNN = Literal["nature", "impala"]
"""That of Mnih et al., 2015, for 36 pixels and more; or the residual one of Espeholt et al., 2018, for any size."""
Channels = Literal["last", "first"]
"""Whether images are [height, width, channels] or [channels, height, width]; it is never guessed from their shape."""

_ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "elu": nn.ELU, "silu": nn.SiLU}
_NATURE = ((32, 8, 4), (64, 4, 2), (64, 3, 1))  # filters, kernel, stride
_IMPALA = (16, 32, 32)
_NATURE_OUT, _IMPALA_OUT = 512, 256
_NATURE_LEAST = 36


def perceptron(sizes: Sequence[int], *, gain: float, activation: Activation = "tanh") -> nn.Sequential:
    """Return linear layers with orthogonal weights, scaled by sqrt 2 and in the last layer by ``gain``."""
    layers: list[nn.Module] = []
    for position, (inputs, outputs) in enumerate(pairwise(sizes)):
        layer = nn.Linear(inputs, outputs)
        orthogonal(layer, gain if position == len(sizes) - 2 else 2**0.5)
        layers += [layer, _ACTIVATIONS[activation]()]
    return nn.Sequential(*layers[:-1])


class ImageEncoder(nn.Module):
    """Makes E features of an image.

    Args:
        space: Of the image.
        kind: See :data:`CNN`.
        channels: See :data:`Channels`.

    Raises:
        ValueError: The image is too small for ``kind``.
    """

    def __init__(self, space: spaces.Box, kind: CNN, channels: Channels) -> None:
        super().__init__()
        self.channels = channels
        height, width, depth = space.shape if channels == "last" else (*space.shape[1:], space.shape[0])
        if kind == "nature":
            if min(height, width) < _NATURE_LEAST:
                raise ValueError(
                    f"cnn='nature' needs images of at least {_NATURE_LEAST} pixels a side, got {height} x {width}; "
                    "take cnn='impala', and check whether channels are last or first"
                )
            layers: list[nn.Module] = []
            for filters, kernel, stride in _NATURE:
                layers += [nn.Conv2d(depth, filters, kernel, stride), nn.ReLU()]
                depth = filters
                height, width = ((side - kernel) // stride + 1 for side in (height, width))
            self.size = _NATURE_OUT
        else:
            layers = []
            for filters in _IMPALA:
                layers += [
                    nn.Conv2d(depth, filters, 3, padding=1),
                    nn.MaxPool2d(3, stride=2, padding=1),
                    _Residual(filters),
                    _Residual(filters),
                ]
                depth = filters
                height, width = ((side + 1) // 2 for side in (height, width))
            layers += [nn.ReLU()]
            self.size = _IMPALA_OUT
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Linear(depth * height * width, self.size), nn.ReLU())
        for layer in self.layers.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                orthogonal(layer, 2**0.5)

    def forward(self, images: Tensor) -> Tensor:
        """Return float [..., E] of ``images``, uint8 [..., *shape]."""
        lead = images.shape[:-3]
        flat = images.flatten(0, -4) if lead else images[None]
        if self.channels == "last":
            flat = flat.permute(0, 3, 1, 2)
        dtype = next(self.parameters()).dtype
        return self.layers(flat.to(dtype) / 255).reshape(*lead, self.size)


class _Residual(nn.Module):
    def __init__(self, filters: int) -> None:
        super().__init__()
        convolutions = [nn.Conv2d(filters, filters, 3, padding=1) for _ in range(2)]
        self.layers = nn.Sequential(nn.ReLU(), convolutions[0], nn.ReLU(), convolutions[1])

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x)


class Encoder(nn.Module):
    """Makes E features of an observation: of its images by CNNs, its numbers as they are.

    Args:
        features: What observations consist of.
        cnn: See :data:`CNN`.
        channels: See :data:`Channels`.

    Attributes:
        size: E.
    """

    def __init__(self, features: Features, *, cnn: CNN = "nature", channels: Channels = "last") -> None:
        super().__init__()
        self._names = list(features.images)
        self._has_numbers = features.count > 0
        self.images = nn.ModuleList(ImageEncoder(space, cnn, channels) for space in features.images.values())
        self.size: int = features.count + sum(encoder.size for encoder in self.images)  # type: ignore[misc]

    def forward(self, seen: Mapping[str, Tensor]) -> Tensor:
        """Return float [..., E] of what was observed, each part [..., *shape]."""
        if not self.images:
            return seen["observation"]
        parts = [encoder(seen[name]) for name, encoder in zip(self._names, self.images, strict=True)]
        return torch.cat([*parts, seen["observation"]] if self._has_numbers else parts, dim=-1)


class Trunk(nn.Module):
    """Makes features of an observation by an encoder; then, by option, a GRU.

    Args:
        encoder: Makes ``encoder.size`` features of an observation, as :class:`Encoder` does.
        memory: H, the size of the state of the GRU (Cho et al., 2014); 0: none.

    Attributes:
        size: E, how many features come out.
        memory: H.
    """

    def __init__(self, encoder: nn.Module, *, memory: int = 0) -> None:
        super().__init__()
        self.encoder, self.memory = encoder, memory
        size: int = encoder.size  # type: ignore[assignment]
        self.gru = nn.GRUCell(size, memory) if memory else None
        if self.gru is not None:
            for name, parameter in self.gru.named_parameters():
                nn.init.orthogonal_(parameter) if "weight" in name else nn.init.zeros_(parameter)
        self.size = memory or size

    def step(self, seen: Mapping[str, Tensor], state: Tensor) -> Tensor:
        """Return what is remembered after N observations, float [N, H], which is the features, too."""
        assert self.gru is not None
        return self.gru(self.encoder(seen), state)

    def forward(self, seen: Mapping[str, Tensor], state: Tensor | None, starts: Tensor | None) -> Tensor:
        """Return the features of whole rows.

        Args:
            seen: Observations, [B, T, ...].
            state: float [B, H], what was remembered before the first position; read where there is a memory.
            starts: bool [B, T], where an episode begins, before which nothing is remembered; read where there is a
                memory.

        Returns:
            float [B, T, E].
        """
        features = self.encoder(seen)
        if self.gru is None:
            return features
        assert state is not None and starts is not None
        remembered = []
        for t in range(features.shape[1]):
            state = self.gru(features[:, t], torch.where(starts[:, t, None], 0.0, state))
            remembered.append(state)
        return torch.stack(remembered, dim=1)


class Critic(nn.Module):
    """The value of a state, out of features of its own or of those of the actor.

    Args:
        trunk: Its own; None: it is given the features of the actor's.
        head: Makes one number of E features.
    """

    def __init__(self, trunk: Trunk | None, head: nn.Module) -> None:
        super().__init__()
        self.trunk, self.head = trunk, head

    def forward(self, features: Tensor) -> Tensor:
        """Return float [...], the value of each of ``features``, [..., E]."""
        return self.head(features)[..., 0]


def check_choices(*, activation: str, cnn: str, channels: str) -> None:
    """Check names of parts.

    Raises:
        ValueError: There is no such part.
    """
    for name, value, known in (
        ("activation", activation, get_args(Activation)),
        ("cnn", cnn, get_args(CNN)),
        ("channels", channels, get_args(Channels)),
    ):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")


def check_sizes(hidden: Any, memory: int) -> None:
    """Check the widths of hidden layers and the size of a memory.

    Raises:
        ValueError: One of them is none.
    """
    if not isinstance(hidden, Sequence) or not all(isinstance(width, Integral) and int(width) >= 1 for width in hidden):
        raise ValueError(f"hidden must be a list of widths of at least 1, got {hidden!r}")
    if memory < 0:
        raise ValueError(f"memory must be the size of a state, or 0 for none, got {memory!r}")


def orthogonal(layer: nn.Conv2d | nn.Linear, gain: float) -> None:
    """Give a layer orthogonal weights, scaled by ``gain``, and no bias."""
    nn.init.orthogonal_(layer.weight, gain)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
