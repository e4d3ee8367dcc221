"""Pictures for the documentation: what their figures share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COLOURS = ("#2563eb", "#c2410c", "#0f766e", "#7c3aed", "#a16207")


@contextmanager
def figure(out: Path, size: tuple[float, float], salt: str) -> Iterator[Any]:
    """Give a figure to draw on, and save it; one drawing always makes the same bytes.

    Args:
        out: A file whose ending says its kind (svg, png).
        size: Width and height in inches.
        salt: Makes its ids its own.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    style: Any = {"font.size": 8, "svg.hashsalt": salt, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(style):
        drawn = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(drawn)
        yield drawn
        drawn.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None, dpi=150)
