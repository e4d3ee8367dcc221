"""A vision-language model from scratch, small enough to train in a minute on a CPU: ``char_lm`` with eyes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM, LlamaModel

from tetrathlon.agents.char_lm import CHARACTERS, character_tokenizer
from tetrathlon.agents.language import LanguagePolicy
from tetrathlon.agents.picture import Picture
from tetrathlon.agents.sight import Sight

IMAGE = "<image>"
"""What stands for a picture's features."""
_FEWEST, _STRIDES = 16, (16, 8, 4, 2)


class Encoder(nn.Module):
    """Turns pictures into tokens, row by row: convolutions of stride 2, each with a group normalisation.

    Without the normalisation it did not learn. Where a token lies is told by two channels of coordinates, at the
    picture and again at the tokens.

    Args:
        stride: Pixels of a token's side, a power of 2.
        channels: Of the first convolution; each further one has twice as many.
        size: E, the size of a token.
    """

    def __init__(self, stride: int, channels: int, size: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before, width = 5, channels
        for _ in range(stride.bit_length() - 1):
            layers += [nn.Conv2d(before, width, 3, stride=2, padding=1), nn.GroupNorm(8, width), nn.SiLU()]
            before, width = width, 2 * width
        self.look = nn.Sequential(*layers)
        self.project = nn.Linear(before + 2, size)

    def forward(self, pictures: Tensor) -> Tensor:
        """Return float [K, N, E] of pictures, uint8 [K, H, W, 3]."""
        colours = pictures.permute(0, 3, 1, 2).to(self.project.weight.dtype) / 127.5 - 1
        seen = self.look(torch.cat([colours, _coordinates(colours)], dim=1))
        return self.project(torch.cat([seen, _coordinates(seen)], dim=1).flatten(2).transpose(1, 2))


class TinyModel(LlamaModel):
    """A Llama that reads features of pictures where placeholders stand."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.encoder = Encoder(config.stride, config.channels, config.hidden_size)

    def forward(
        self,
        input_ids: Tensor | None = None,
        *,
        inputs_embeds: Tensor | None = None,
        pixel_values: Sequence[Tensor] = (),
        shown: Tensor | None = None,
        **options: Any,
    ) -> Any:
        """Read rows.

        Args:
            input_ids: int [B, T].
            inputs_embeds: Instead of them.
            pixel_values: Pictures, each once: uint8 [K, H, W, 3] for each size.
            shown: int [M]: which of the features of all these pictures stands at each of the M placeholders.
            **options: Those of Llama.
        """
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids)
        if shown is not None:
            features = torch.cat([self.encoder(pictures).flatten(0, 1) for pictures in pixel_values])
            there = (input_ids == self.config.image_token_id)[..., None]
            inputs_embeds = inputs_embeds.masked_scatter(there, features.to(inputs_embeds.dtype)[shown])
        return super().forward(inputs_embeds=inputs_embeds, **options)


class TinyVLM(LlamaForCausalLM):
    """The model with its output layer."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.model = TinyModel(config)
        self.post_init()


class TinySight(Sight):
    """The sight of a :class:`TinyVLM`: a picture is as many placeholders as its encoder makes tokens of it."""

    def write(self, array: np.ndarray) -> tuple[int, ...]:
        """See :meth:`~tetrathlon.agents.sight.Sight.write`.

        Raises:
            ValueError: A side of the picture is no multiple of the stride.
        """
        height, width = array.shape[:2]
        stride = self.model.config.stride
        if height % stride or width % stride:
            raise ValueError(
                f"the sides of a picture must be multiples of the stride {stride}, got {height} x {width}; "
                "tiny_vlm(stride=...) takes other strides"
            )
        return (self.token_id,) * (height // stride * (width // stride))

    def join(self, pictures: Sequence[Picture], device: torch.device) -> dict[str, Any]:
        """See :meth:`~tetrathlon.agents.sight.Sight.join`; each picture is encoded once, however many rows show it."""
        distinct = {picture.digest: picture for picture in pictures}
        sizes: dict[tuple[int, ...], list[Picture]] = {}
        for picture in distinct.values():
            sizes.setdefault(picture.array.shape, []).append(picture)
        starts, end = {}, 0
        for picture in (picture for group in sizes.values() for picture in group):
            starts[picture.digest] = end
            end += len(picture.ids)
        places = [np.arange(len(picture.ids)) + starts[picture.digest] for picture in pictures]
        arrays = [np.stack([picture.array for picture in group]) for group in sizes.values()]
        return {
            "pixel_values": [torch.from_numpy(array).to(device) for array in arrays],
            "shown": torch.from_numpy(np.concatenate(places)).to(device),
        }


def tiny_vlm(
    *,
    characters: str = CHARACTERS,
    words: Sequence[str] = (),
    stride: int = 16,
    channels: int = 16,
    size: int = 128,
    layers: int = 3,
    heads: int = 4,
    context: int = 1024,
    seed: int = 0,
    **options: Any,
) -> LanguagePolicy:
    """Return a policy that sees: a few convolutions and a transformer of the Llama kind, weights drawn from ``seed``.

    A picture becomes one token for each square of ``stride`` pixels: one of 64 x 64 becomes 16, or 64 with a stride of
    8. It has no chat template: what it reads is the observation, the picture before the text, by words and characters
    (a digit is one), and what it says ends with its end-of-text token. With the defaults it has less than a million
    parameters.

    Args:
        characters: What it can read and say; others are read as one unknown character.
        words: Texts that are read and said as one token each; see :func:`~tetrathlon.agents.char_lm.char_lm`.
        stride: Pixels of the side of what becomes a token: 2, 4, 8, 16 or 32. It divides the sides of all pictures.
        channels: Of the first convolution, a multiple of 8; each further one has twice as many.
        size: Width of the transformer.
        layers: Its depth.
        heads: Attention heads; they divide ``size``.
        context: Most tokens it reads, those of pictures among them.
        seed: Seed of the weights, and of the samples.
        **options: Those of :class:`~tetrathlon.agents.language.LanguagePolicy`.

    Raises:
        ValueError: A character comes twice, or a word is empty, or a size does not fit.
    """
    if stride not in (2, 4, 8, 16, 32):
        raise ValueError(f"stride must be 2, 4, 8, 16 or 32, got {stride!r}")
    if channels < 8 or channels % 8:
        raise ValueError(f"channels must be a multiple of 8, got {channels!r}")
    if size % heads:
        raise ValueError(f"heads must divide size {size}, got {heads}")
    tokenizer = character_tokenizer(characters, words, special=(IMAGE,))
    eos = tokenizer.eos_token_id
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=size,
        intermediate_size=8 * size // 3,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=context,
        bos_token_id=None,
        eos_token_id=eos,
        pad_token_id=eos,
        tie_word_embeddings=False,
        initializer_range=size**-0.5,
    )
    image = tokenizer.convert_tokens_to_ids(IMAGE)
    config.stride, config.channels, config.image_token_id = stride, channels, image
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = TinyVLM(config).eval()
    policy = LanguagePolicy(model, tokenizer, seed=seed, sight=TinySight(model, IMAGE, image, eos), **options)
    policy.default_lr, policy.default_rl_lr = 1e-3, 1e-4
    return policy


def fitting_stride(height: int, width: int) -> int:
    """Return the largest stride up to 16 that makes at least 16 tokens of a picture.

    Raises:
        ValueError: None does.
    """
    for stride in _STRIDES:
        if not height % stride and not width % stride and height // stride * (width // stride) >= _FEWEST:
            return stride
    raise ValueError(
        f"the sides of pictures must be even and hold {_FEWEST} squares of 2 pixels, got {height} x {width}"
    )


def _coordinates(maps: Tensor) -> Tensor:
    """Return x and y of each place of maps [K, C, H, W], from -1 to 1, as [K, 2, H, W]."""
    count, _, height, width = maps.shape
    down, across = (torch.linspace(-1, 1, side, dtype=maps.dtype, device=maps.device) for side in (height, width))
    grid = torch.stack([across.expand(height, width), down[:, None].expand(height, width)])
    return grid.expand(count, -1, -1, -1)
