"""An encoder that looks in pictures for what words name.

Shapes: B rows, L words, D size of a word, G gazes, C channels, S places of a map, E features.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from gymnasium import spaces
from torch import Tensor, nn

from tetrathlon.agents.features import Features
from tetrathlon.agents.networks import Channels, orthogonal

_BITS = 64  # of the hash of a word
_WORD = 64
_SUMMARY = 16
_CHANNELS = (24, 32, 32)
_GAZES = 8
_LONG = 16  # words: the unit in which a word's place in its text is told


class Words(nn.Module):
    """Embeds the words of texts, each by itself.

    A word is the bits of its hash as signs: there is no vocabulary, and no two words are the same.
    """

    shifts: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(_BITS + 1, _WORD)
        orthogonal(self.embed, 1.0)
        self.register_buffer("shifts", torch.arange(_BITS), persistent=False)

    def forward(self, words: Tensor) -> Tensor:
        """Return float [B, L, D] of ``words``, int64 [B, L]."""
        signs = ((words[..., None] >> self.shifts) & 1).to(self.embed.weight) * 2 - 1
        place = torch.arange(words.shape[1], device=words.device).to(signs) / _LONG
        return self.embed(torch.cat([signs / 2, place[:, None].expand(*words.shape, 1)], dim=-1))


class Gazes(nn.Module):
    """Looks at a picture G times, each time for something that it has read.

    A gaze attends to words, asks the picture for them, and tells where in it the answer is, as the mean of an
    attention, and how clear. Nothing else of the picture goes on: what is learnt is where things are, and not which
    picture it was.

    Attributes:
        size: E.
    """

    size = 3 * _GAZES

    def __init__(self, space: spaces.Box, channels: Channels) -> None:
        super().__init__()
        self.channels = channels
        depth = space.shape[-1] if channels == "last" else space.shape[0]
        first, second, third = _CHANNELS
        convolutions = [
            nn.Conv2d(depth, first, 4, stride=2, padding=1),
            nn.Conv2d(first, second, 3, stride=2, padding=1),
            nn.Conv2d(second, third, 3, padding=1),
        ]
        for layer in convolutions:
            orthogonal(layer, 2**0.5)
        self.see = nn.Sequential(*(part for layer in convolutions for part in (layer, nn.ReLU())))
        self.keys = nn.Conv2d(third, third, 1)
        self.pick = nn.Linear(_WORD, _GAZES)
        self.query = nn.Parameter(torch.randn(_GAZES, _WORD, third) / _WORD**0.5)
        self.always = nn.Parameter(0.3 * torch.randn(_GAZES, third))

    def forward(self, pictures: Tensor, words: Tensor | None, there: Tensor | None) -> Tensor:
        """Return float [B, E].

        Args:
            pictures: uint8 [B, *shape].
            words: float [B, L, D]; None: there is no text.
            there: bool [B, L], where there is a word; without any a gaze looks for what it always looks for.
        """
        if self.channels == "last":
            pictures = pictures.permute(0, 3, 1, 2)
        seen = self.see(pictures.to(self.always.dtype) / 255 - 0.5)
        keys = self.keys(seen).flatten(2).transpose(1, 2)  # [B, S, C]
        keys = F.layer_norm(keys, keys.shape[-1:])
        queries = self.always.expand(len(keys), -1, -1)
        if words is not None and there is not None:
            chosen = (2 * self.pick(words)).masked_fill(~there[..., None], -1e9).softmax(1)
            told = chosen.where(there[..., None], 0.0).transpose(1, 2) @ words  # [B, G, D]; of no word 0
            queries = queries + torch.einsum("bgd,gdc->bgc", F.layer_norm(told, told.shape[-1:]), self.query)
        answers = queries @ keys.transpose(1, 2)  # [B, G, S]
        where = answers.softmax(-1) @ _grid(seen)
        return torch.cat([where.flatten(1), answers.amax(-1) / 8], dim=1)


class VisionLanguage(nn.Module):
    """Makes E features of an observation: of its pictures by what its texts say, of the texts, and its numbers.

    Args:
        features: What observations consist of.
        channels: See :data:`~tetrathlon.agents.networks.Channels`.

    Attributes:
        size: E.
    """

    def __init__(self, features: Features, *, channels: Channels = "last") -> None:
        super().__init__()
        self._images, self._texts = list(features.images), features.texts
        self._has_numbers = features.count > 0
        self.words = nn.ModuleList(Words() for _ in self._texts)
        self.images = nn.ModuleList(Gazes(space, channels) for space in features.images.values())
        self.summary = nn.Linear(_WORD, _SUMMARY) if self._texts else None
        self.size = Gazes.size * len(self.images) + _SUMMARY * bool(self._texts) + features.count

    def forward(self, seen: Mapping[str, Tensor]) -> Tensor:
        """Return float [..., E] of what was observed, each part [..., *shape]."""
        name, part = next(iter(seen.items()))
        lead = part.shape[: part.ndim - (3 if name in self._images else 1)]
        flat = {name: part.flatten(0, len(lead) - 1) for name, part in seen.items()}
        parts = [flat["observation"]] if self._has_numbers else []
        words = there = None
        if self.summary is not None:
            words = torch.cat([read(flat[name]) for name, read in zip(self._texts, self.words, strict=True)], dim=1)
            there = torch.cat([flat[name] != 0 for name in self._texts], dim=1)
            total = words.where(there[..., None], 0.0).sum(1)
            parts.append(self.summary(total / there.sum(1, keepdim=True).clamp(min=1).sqrt()))
        parts += [gazes(flat[name], words, there) for name, gazes in zip(self._images, self.images, strict=True)]
        return torch.cat(parts, dim=-1).unflatten(0, lead)


def _grid(maps: Tensor) -> Tensor:
    """Return x and y of each place of maps [B, C, H, W], from -1 to 1, as [S, 2]."""
    height, width = maps.shape[-2:]
    down, across = (torch.linspace(-1, 1, side, dtype=maps.dtype, device=maps.device) for side in (height, width))
    return torch.stack([across.repeat(height), down.repeat_interleave(width)], dim=1)
