"""Whether the pictures that a model is given change what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tetrathlon.agents.decisions import Decisions
from tetrathlon.agents.picture import SPAN, Pictures

_ROWS = 4
_MOVED = 1e-7
_GREY = 128


class Blindness:
    """Looks once whether the log-probabilities of a few rows move when their pictures are made grey.

    A model that is trained on pictures which never reach it learns to guess, and its loss looks as any other.
    """

    def __init__(self) -> None:
        self.is_done = False

    @torch.no_grad()
    def check(self, policy: Any, decisions: Decisions) -> None:
        """Look, unless it was done before; rows without a picture that could be missed leave it open.

        Args:
            policy: A language policy with sight.
            decisions: What it is about to learn from, with pictures.

        Raises:
            ValueError: Nothing moved.
        """
        if self.is_done:
            return
        shown: Pictures = decisions.inputs["pictures"]
        rows = _looking(decisions, shown)
        if not len(rows):
            return
        some = decisions.select(rows)
        grey = [policy.sight.see(np.full_like(picture.array, _GREY)) for picture in shown.distinct]
        blind = replace(some, inputs={**some.inputs, "pictures": Pictures(some.inputs["pictures"].codes, tuple(grey))})
        seen, unseen = (policy.evaluate(each).logp[some.mask] for each in (some, blind))
        if bool(((seen - unseen).abs() > _MOVED).any()):
            self.is_done = True
        elif not bool((seen.abs() < _MOVED).all()):  # of a model that is sure of all it says, nothing can be told
            raise ValueError(
                f"the pictures do not reach the model: in {len(rows)} rows, no log-probability moved when they were "
                "made grey. Its forward pass drops what the processor makes of them, or the processor makes the same "
                "of all; check_sight=False trains it all the same"
            )


def _looking(decisions: Decisions, shown: Pictures) -> Tensor:
    """Return the first rows with a decision behind a picture that is not grey itself."""
    coloured = torch.tensor([bool((picture.array != _GREY).any()) for picture in shown.distinct])
    codes = shown.codes
    is_picture = (codes < 0) & coloured.to(codes.device)[((-1 - codes) // SPAN).clamp(min=0)]
    behind = decisions.mask & (is_picture.cumsum(1) > 0)
    return behind.any(dim=1).nonzero().flatten()[:_ROWS]
