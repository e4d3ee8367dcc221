"""Videos of episodes: a GIF by Pillow alone, an MP4 by PyAV."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from PIL import Image

from tetrathlon.envs.codec import is_image
from tetrathlon.envs.episode import write_aside

_MOST_GIF_FPS = 50
"""Browsers show a shorter frame than a fiftieth of a second for a tenth of one."""
_INSTALL = 'pip install "tetrathlon[video]"'


class Film:
    """A video file, made frame by frame.

    Nothing is written before the first frame. A GIF is written when the film is closed, and its frames are kept until
    then at a byte a pixel; an MP4 is written as it goes.

    Args:
        path: ``*.gif`` or ``*.mp4``.
        fps: Frames a second. A GIF of more than 50 leaves frames out, so that it runs at the right speed.

    Raises:
        ValueError: The file is neither, or its folder is not there.
        ImportError: An MP4 is asked for, and PyAV is missing.

    Attributes:
        frames: How many frames there are.
    """

    def __init__(self, path: Path, fps: float) -> None:
        check_path(path)
        if not 0 < fps < math.inf:
            raise ValueError(f"fps must be a number above 0, got {fps}")
        self.path, self.fps, self.frames = path, fps, 0
        self._size: tuple[int, int] | None = None
        self._kept: list[Image.Image] = []
        self._encoder = _Mp4(path, fps) if path.suffix.lower() == ".mp4" else None

    def add(self, frame: np.ndarray) -> None:
        """Add a frame.

        Args:
            frame: A picture, uint8 of shape (H, W, 1|3|4).

        Raises:
            ValueError: It is no picture, or of another size than the first.
        """
        picture = _picture(frame)
        if self._size not in (None, picture.size):
            raise ValueError(f"a frame is of size {picture.size}, those before it of {self._size}")
        self._size = picture.size
        if self._encoder is not None:
            self._encoder.add(picture)
        else:
            self._kept.append(_indexed(picture))
        self.frames += 1

    def close(self) -> None:
        """Finish the file."""
        if self._encoder is not None:
            self._encoder.close()
        elif self._kept:
            write_aside(self.path, _gif(self._kept, self.fps))
        self._kept = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check_path(path: Path) -> None:
    """Refuse a path to which no video can be written; see :class:`Film`."""
    if path.suffix.lower() not in (".gif", ".mp4"):
        raise ValueError(f"a video is a *.gif or a *.mp4, not {path.name!r}")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"there is no folder {str(path.parent)!r} for the video")
    if path.suffix.lower() == ".mp4" and find_spec("av") is None:
        raise ImportError(f"{path.name} needs av: {_INSTALL}; a *.gif needs nothing", name="av")


def picture_in(observation: Any) -> np.ndarray | None:
    """Return the picture that an observation is or has as its ``image``; None where there is none."""
    seen = observation.get("image") if isinstance(observation, Mapping) else observation
    return seen if is_image(seen) else None


def encode_gif(frames: Iterable[np.ndarray], fps: float) -> bytes:
    """Return an endless GIF.

    Args:
        frames: At least one picture, uint8 of shape (H, W, 1|3|4), all of one size.
        fps: Frames a second, as :class:`Film` takes it.
    """
    return _gif([_indexed(_picture(frame)) for frame in frames], fps)


def _picture(frame: np.ndarray) -> Image.Image:
    if not is_image(frame):
        described = f"{frame.dtype} of shape {frame.shape}" if isinstance(frame, np.ndarray) else repr(frame)[:80]
        raise ValueError(f"a frame must be uint8 of shape (H, W, 1|3|4), got {described}")
    return Image.fromarray(frame.squeeze(-1) if frame.shape[-1] == 1 else frame).convert("RGB")


def _indexed(picture: Image.Image) -> Image.Image:
    return picture.quantize(dither=Image.Dither.NONE)


def _gif(pictures: list[Image.Image], fps: float) -> bytes:
    every = math.ceil(fps / _MOST_GIF_FPS)
    shown = sorted({*range(0, len(pictures), every), len(pictures) - 1})
    # A GIF counts in hundredths of a second: rounding the times, not the durations, keeps the speed.
    times = [round(100 * number / fps) for number in [*shown, shown[-1] + every]]
    durations = [10 * max(2, later - earlier) for earlier, later in pairwise(times)]
    first, *rest = [pictures[number] for number in shown]
    file = io.BytesIO()
    first.save(file, "GIF", save_all=True, append_images=rest, duration=durations, loop=0)
    return file.getvalue()


class _Mp4:
    """An H.264 stream in an MP4 file."""

    def __init__(self, path: Path, fps: float) -> None:
        self._path, self._rate = path, Fraction(fps).limit_denominator(1000)
        self._file: Any = None
        self._stream: Any = None

    def add(self, picture: Image.Image) -> None:
        import av

        # H.264 halves the colours' resolution: an odd row or column at the edge is shown twice.
        pixels = np.asarray(picture)
        pixels = np.pad(pixels, [(0, pixels.shape[0] % 2), (0, pixels.shape[1] % 2), (0, 0)], mode="edge")
        if self._file is None:
            self._file = av.open(str(self._path), "w")
            self._stream = self._file.add_stream("libx264", rate=self._rate)
            self._stream.height, self._stream.width = pixels.shape[:2]
            self._stream.pix_fmt = "yuv420p"
        self._file.mux(self._stream.encode(av.VideoFrame.from_ndarray(pixels, "rgb24")))

    def close(self) -> None:
        if self._file is not None:
            self._file.mux(self._stream.encode())
            self._file.close()
            self._file = None
