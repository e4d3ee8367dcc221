"""How a vision-language model takes pictures: what they are written as, and the arguments of its forward pass."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tetrathlon.agents.intake import inside_of
from tetrathlon.agents.picture import Picture, digest_of, in_order, spelled

_KEPT_BYTES = 2**28
"""What a processor made of pictures is kept up to this size, so that a batch that is learnt from in several passes is
processed once."""


class Sight(ABC):
    """Turns pictures into what one family of models reads.

    Args:
        model: The model.
        token: What the chat template writes for a picture.
        token_id: The id of that, which is also the model's placeholder of a picture's features.
        stand_in: What is read in place of a placeholder that is no picture's: one that the model itself said.
    """

    def __init__(self, model: Any, token: str, token_id: int, stand_in: int) -> None:
        self.model = model
        self.token, self.token_id, self.stand_in = token, token_id, stand_in
        self._ids: dict[tuple[int, ...], tuple[int, ...]] = {}

    @abstractmethod
    def write(self, array: np.ndarray) -> tuple[int, ...]:
        """Return the ids that a picture is written as; those of a size have the same."""

    @abstractmethod
    def join(self, pictures: Sequence[Picture], device: torch.device) -> dict[str, Any]:
        """Return the arguments of the forward pass for pictures in the order in which rows show them."""

    def positions(self, rows: Sequence[Sequence[int]], pictures: Sequence[Picture]) -> list[Tensor] | None:
        """Return the positions of each row's L tokens, int [A, L], where a position has A parts; None: they are plain.

        Args:
            rows: Ids and codes, pictures by number.
            pictures: By number.
        """
        return None

    def see(self, array: np.ndarray) -> Picture:
        """Return a picture, uint8 [H, W, 3], as the model reads it."""
        shape = array.shape
        if shape not in self._ids:
            self._ids[shape] = self.write(array)
        return Picture(array, digest_of(array), self._ids[shape])

    def read(self, codes: Tensor, pictures: Sequence[Picture]) -> tuple[Tensor, dict[str, Any]]:
        """Return the ids of rows, int [B, T], and what the model needs of the pictures in them, row by row.

        A placeholder that the model itself said is no picture, and is read as another token: the model would look
        for features that are not there.

        Args:
            codes: int [B, T]: ids and codes, pictures by number and each of them whole.
            pictures: By number.
        """
        plain = codes.masked_fill(codes == self.token_id, self.stand_in)
        shown = in_order(plain, pictures)
        return (spelled(plain, pictures), self.join(shown, codes.device)) if shown else (plain, {})


class ProcessorSight(Sight):
    """The sight of a model of transformers, through its own processor.

    Args:
        model: The model.
        processor: Its processor, with an image processor and the tokenizer.

    Raises:
        ValueError: The processor's tokenizer has no placeholder.
    """

    names: tuple[str, ...] = ("pixel_values",)
    """What the model takes of what the processor makes."""

    def __init__(self, model: Any, processor: Any) -> None:
        tokenizer = processor.tokenizer
        token = str(processor.image_token)
        token_id = tokenizer.convert_tokens_to_ids(token)
        if token_id is None or token_id == tokenizer.unk_token_id:
            raise ValueError(
                f"the tokenizer has no token {token!r}, which {type(processor).__name__} puts for a picture"
            )
        ends = (tokenizer.eos_token_id, tokenizer.pad_token_id, 0)
        super().__init__(model, token, int(token_id), next(i for i in ends if i is not None))
        self.processor = processor
        self._made: OrderedDict[int, dict[str, Tensor]] = OrderedDict()
        self._bytes = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> ProcessorSight:
        """Return the sight of the copied model; the processor never changes."""
        return type(self)(copy.deepcopy(self.model, memo), self.processor)

    def write(self, array: np.ndarray) -> tuple[int, ...]:
        """See :meth:`Sight.write`."""
        return tuple(self._process(array)["input_ids"][0].tolist())

    def tensors(self, picture: Picture) -> dict[str, Tensor]:
        """Return what the processor makes of a picture."""
        if picture.digest in self._made:
            self._made.move_to_end(picture.digest)
            return self._made[picture.digest]
        whole = self._process(picture.array)
        made = {name: whole[name] for name in self.names if name in whole}
        self._made[picture.digest] = made
        self._bytes += _size(made)
        while self._bytes > _KEPT_BYTES and len(self._made) > 1:
            self._bytes -= _size(self._made.popitem(last=False)[1])
        return made

    def join(self, pictures: Sequence[Picture], device: torch.device) -> dict[str, Any]:
        """See :meth:`Sight.join`; what belongs to pictures stands one after another."""
        made = [self.tensors(picture) for picture in pictures]
        return {name: torch.cat([each[name] for each in made]).to(device) for name in made[0]}

    def _process(self, array: np.ndarray) -> Mapping[str, Tensor]:
        from PIL import Image

        return self.processor(
            text=[self.token], images=[Image.fromarray(array)], add_special_tokens=False, return_tensors="pt"
        )


class PatchSight(ProcessorSight):
    """Of Qwen2-VL and what came after it: flat patches with their grids, and positions of three parts (M-RoPE)."""

    names = ("pixel_values", "image_grid_thw")

    def positions(self, rows: Sequence[Sequence[int]], pictures: Sequence[Picture]) -> list[Tensor] | None:
        """See :meth:`Sight.positions`; they are those of the model's own ``get_rope_index``."""
        width = max(map(len, rows))
        codes = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
        shown = in_order(codes, pictures)
        if not shown:
            return None
        grids = torch.cat([self.tensors(picture)["image_grid_thw"] for picture in shown])
        there = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        index = inside_of(self.model).model.get_rope_index
        options = {"image_grid_thw": grids, "attention_mask": there}
        if "mm_token_type_ids" in inspect.signature(index).parameters:
            options["mm_token_type_ids"] = (codes < 0).int()  # a picture is written as nothing but placeholders
        found, _ = index(spelled(codes, pictures), **options)
        return [found[:, b, : len(row)] for b, row in enumerate(rows)]


class TileSight(ProcessorSight):
    """Of Idefics3 and SmolVLM: every picture is a stack of tiles, with a mask of what is no padding."""

    names = ("pixel_values", "pixel_attention_mask")

    def join(self, pictures: Sequence[Picture], device: torch.device) -> dict[str, Any]:
        """See :meth:`Sight.join`; all tiles stand in one row, the smaller ones padded."""
        made = [self.tensors(picture) for picture in pictures]
        size = [max(each["pixel_values"].shape[side] for each in made) for side in (-2, -1)]
        joined = {}
        for name in made[0]:
            tiles = [each[name] for each in made]
            padded = [F.pad(t, (0, size[1] - t.shape[-1], 0, size[0] - t.shape[-2])) for t in tiles]
            joined[name] = torch.cat(padded, dim=1).to(device)
        return joined


class StackSight(ProcessorSight):
    """Of LLaVA 1.5: one array a picture, all of one size."""


FAMILIES: dict[str, type[ProcessorSight]] = {
    "idefics3": TileSight,
    "llava": StackSight,
    "qwen2_5_vl": PatchSight,
    "qwen2_vl": PatchSight,
    "qwen3_vl": PatchSight,
    "qwen3_vl_moe": PatchSight,
    "smolvlm": TileSight,
}
"""``model_type`` of a model -> how it takes pictures."""


def sight_of(model: Any, processor: Any) -> Sight:
    """Return the sight of a vision-language model of transformers.

    Args:
        model: The model, or one with adapters around it.
        processor: Its processor.

    Raises:
        ValueError: It is of a family that is not known here.
    """
    kind = model.config.model_type
    if kind not in FAMILIES:
        raise ValueError(unknown_family(kind))
    return FAMILIES[kind](model, processor)


def unknown_family(kind: str) -> str:
    """Return what to say of a ``model_type`` that is none of :data:`FAMILIES`."""
    return f"how a model of type {kind!r} takes pictures is not known here; those of type {', '.join(FAMILIES)} are"


def looked_at(sight: Sight | None, array: np.ndarray | None) -> Picture | None:
    """Return what an observation shows as a model reads it.

    Raises:
        TypeError: It shows a picture, and the model takes none.
    """
    if array is None:
        return None
    if sight is None:
        raise TypeError(
            "this LanguagePolicy reads text alone, and the observation shows a picture; use a vision-language model "
            f"({', '.join(FAMILIES)}), or tiny_vlm()"
        )
    return sight.see(array)


def _size(made: Mapping[str, Tensor]) -> int:
    return sum(tensor.nbytes for tensor in made.values())
