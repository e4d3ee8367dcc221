"""What the forward pass of a language model takes, which depends on the model and on the version of transformers."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any


def inside_of(model: Any) -> Any:
    """Return the model that does the work: a LoRA wrapper passes everything on."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


@dataclass(frozen=True, slots=True)
class Intake:
    """Names of arguments."""

    cache: str
    """What the cache is called: ``past_key_values`` up to 5.x."""
    positions: bool
    """Whether positions are taken."""
    keep: bool
    """Whether it can be told how many logits to keep."""

    @classmethod
    def of(cls, model: Any) -> Intake:
        """Return what ``model`` takes."""
        takes = inspect.signature(inside_of(model).forward).parameters
        return cls(
            "cache" if "cache" in takes else "past_key_values", "position_ids" in takes, "logits_to_keep" in takes
        )
