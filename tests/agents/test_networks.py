"""Networks of control policies: what they see and remember."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from tetrathlon.agents.features import Features
from tetrathlon.agents.networks import Encoder, ImageEncoder, Trunk, check_choices


def image(*shape: int) -> spaces.Box:
    return spaces.Box(0, 255, shape, np.uint8)


@pytest.mark.parametrize("shape", [(64, 64, 3), (2, 2, 3), (3, 3, 3), (84, 84, 4), (16, 8, 32)])
@pytest.mark.parametrize("channels", ["last", "first"])
def test_every_pixel_is_where_it_was_declared(shape: tuple[int, ...], channels: Any) -> None:
    pixels = torch.randint(0, 256, (2, *shape), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    space = image(*shape)
    if channels == "first":
        pixels, space = pixels.permute(0, 3, 1, 2), image(shape[2], *shape[:2])
    encoder = ImageEncoder(space, "impala", channels)
    seen: list[torch.Tensor] = []
    encoder.layers[0].register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    found = encoder(pixels)
    height, width, depth = shape
    assert found.shape == (2, encoder.size) and seen[0].shape == (2, depth, height, width)
    for y, x, c in ((0, 0, 0), (height - 1, 0, depth - 1), (1, width - 1, 0)):
        value = pixels[1, y, x, c] if channels == "last" else pixels[1, c, y, x]
        assert seen[0][1, c, y, x] == value / 255


@pytest.mark.parametrize(("kind", "size", "count"), [("nature", 512, 4), ("impala", 256, 16)])
def test_sizes(kind: Any, size: int, count: int) -> None:
    encoder = ImageEncoder(image(40, 52, 3), kind, "last")
    layers = [m for m in encoder.modules() if isinstance(m, torch.nn.Conv2d | torch.nn.Linear)]
    assert len(layers) == count and encoder.size == size
    assert encoder(torch.zeros(2, 3, 40, 52, 3, dtype=torch.uint8)).shape == (2, 3, size)
    if kind == "nature":  # 40 x 52 -> 9 x 12 -> 3 x 5 -> 1 x 3
        assert [tuple(layer.weight.shape) for layer in layers][2:] == [(64, 64, 3, 3), (512, 64 * 1 * 3)]


def test_images_and_numbers_stand_side_by_side() -> None:
    space = spaces.Dict({"camera": image(8, 8, 3), "speed": spaces.Box(-1, 1, (2,)), "gear": spaces.Discrete(3)})
    encoder = Encoder(Features(space), cnn="impala")
    trunk = Trunk(encoder)
    pixels = torch.zeros(4, 8, 8, 3, dtype=torch.uint8)
    numbers = torch.rand(4, 5)
    found = trunk({"image/camera": pixels, "observation": numbers}, None, None)
    assert found.shape == (4, 261) and trunk.size == 261 and torch.equal(found[:, 256:], numbers)
    assert torch.equal(found[:, :256], encoder.images[0](pixels))


def test_rows_are_remembered_as_steps_are() -> None:
    trunk = Trunk(Encoder(Features(spaces.Box(-1, 1, (2,)))), memory=6)
    seen = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(0))
    first = torch.randn(3, 6, generator=torch.Generator().manual_seed(1))
    starts = torch.zeros(3, 5, dtype=torch.bool)
    starts[1, 2] = True
    found = trunk({"observation": seen}, first, starts)
    state = first
    for t in range(5):
        state = torch.where(starts[:, t, None], torch.zeros(()), state)
        state = trunk.step({"observation": seen[:, t]}, state)
        torch.testing.assert_close(found[:, t], state)
    # nothing of what was before an episode is left in it
    other = trunk({"observation": torch.cat([seen[:, :2].flip(0), seen[:, 2:]], dim=1)}, -first, starts)
    assert torch.equal(other[1, 2:], found[1, 2:]) and not torch.equal(other[0, 2:], found[0, 2:])


def test_what_it_refuses() -> None:
    with pytest.raises(ValueError, match="at least 36 pixels a side, got 84 x 3; take cnn='impala'"):
        ImageEncoder(image(3, 84, 3), "nature", "first")
    with pytest.raises(ValueError, match=r"activation must be one of 'tanh', .* got 'sine'"):
        check_choices(activation="sine", cnn="nature", channels="last")
    with pytest.raises(ValueError, match="cnn must be one of 'nature', 'impala', got 'vgg'"):
        check_choices(activation="tanh", cnn="vgg", channels="last")
