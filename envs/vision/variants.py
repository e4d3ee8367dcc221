"""The variants of a vision task: one instance, shown in ways that tell whether an answer comes from the picture."""

from __future__ import annotations

from typing import Any, Literal, get_args

Variant = Literal["full", "twin", "masked", "distractor_masked", "no_image"]
"""The picture as it is; changed so that the answer is another; with what must be seen covered, so that the right act is
to say that it cannot be seen; with as much covered elsewhere, so that the answer stays; and no picture at all."""

VARIANTS: tuple[Variant, ...] = get_args(Variant)


def variant_of(name: str, value: Any) -> Variant:
    """Return ``value``, an argument called ``name``.

    Raises:
        ValueError: It is none of :data:`VARIANTS`.
    """
    if value not in VARIANTS:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, VARIANTS))}, got {value!r}")
    return value
