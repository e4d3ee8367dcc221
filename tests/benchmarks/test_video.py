"""Videos: how long each frame is shown, what is in them, and what is refused."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tetrathlon.benchmarks.video import Film, encode_gif, picture_in


def frame(colour: int, shape: tuple[int, ...] = (10, 14, 3)) -> np.ndarray:
    picture = np.full(shape, 255, np.uint8)
    picture[2:, 3:] = colour
    return picture


def read(gif: bytes | Path) -> tuple[list[np.ndarray], list[int], dict[str, Any]]:
    """Return the pictures of a GIF, the milliseconds of each and what else it says."""
    with Image.open(io.BytesIO(gif) if isinstance(gif, bytes) else gif) as file:
        pictures, durations = [], []
        for number in range(file.n_frames):  # type: ignore[attr-defined]
            file.seek(number)
            pictures.append(np.asarray(file.convert("RGB")))
            durations.append(int(file.info["duration"]))
        return pictures, durations, {str(key): value for key, value in file.info.items()}


def test_a_gif_holds_its_frames() -> None:
    frames = [frame(10 * number) for number in range(5)]
    pictures, durations, info = read(encode_gif(frames, 10))
    assert all(np.array_equal(one, two) for one, two in zip(pictures, frames, strict=True))
    assert durations == [100] * 5 and info["loop"] == 0


def test_colours_of_one_frame_are_not_those_of_another() -> None:
    rng = np.random.default_rng(0)
    frames = [np.repeat(rng.integers(0, 256, (1, 14, 3), dtype=np.uint8), 10, axis=0) for _ in range(4)]
    pictures, _, _ = read(encode_gif(frames, 10))
    assert all(np.array_equal(one, two) for one, two in zip(pictures, frames, strict=True))


@pytest.mark.parametrize(("fps", "frames", "shown", "first"), [(30, 30, 30, 0), (50, 10, 10, 0), (125, 125, 43, 3)])
def test_a_gif_runs_at_the_right_speed(fps: float, frames: int, shown: int, first: int) -> None:
    """GIFs count in hundredths of a second and browsers slow down those of more than fifty frames a second."""
    pictures, durations, _ = read(encode_gif([frame(2 * number) for number in range(frames)], fps))
    assert len(pictures) == shown and pictures[1][5, 5, 0] == 2 * max(1, first)
    assert pictures[-1][5, 5, 0] == 2 * (frames - 1)  # the end is always there
    assert min(durations) >= 20
    assert sum(durations) == pytest.approx(1000 * frames / fps, rel=0.03)


def test_kinds_of_frames(tmp_path: Path) -> None:
    for channels in (1, 3, 4):
        pictures, _, _ = read(encode_gif([frame(90, (6, 8, channels))], 10))
        assert pictures[0][3, 4].tolist() == [90, 90, 90]
    with Film(tmp_path / "x.gif", 10) as film:
        film.add(frame(0))
        for wrong, said in (
            (frame(0).astype(np.float32), r"float32 of shape \(10, 14, 3\)"),
            (frame(0)[..., 0], r"uint8 of shape \(10, 14\)"),
            (None, "got None"),
        ):
            with pytest.raises(ValueError, match=f"a frame must be uint8 of shape .*{said}"):
                film.add(wrong)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"a frame is of size \(8, 6\), those before it of \(14, 10\)"):
            film.add(frame(0, (6, 8, 3)))


def test_a_film_is_written_when_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.GIF"
    with Film(path, 20) as film:
        film.add(frame(0))
        film.add(frame(50))
        assert not path.exists()
    assert film.frames == 2 and read(path)[1] == [50, 50]
    with Film(tmp_path / "none.gif", 20):
        pass
    assert not (tmp_path / "none.gif").exists()
    with pytest.raises(RuntimeError), Film(tmp_path / "cut.gif", 20) as film:
        film.add(frame(0))
        raise RuntimeError
    assert len(read(tmp_path / "cut.gif")[0]) == 1  # what there was


def test_where_no_film_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"a \*.gif or a \*.mp4, not 'x.webm'"):
        Film(tmp_path / "x.webm", 20)
    with pytest.raises(ValueError, match=r"there is no folder '.*nowhere'"):
        Film(tmp_path / "nowhere" / "x.gif", 20)
    for fps in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="fps must be a number above 0"):
            Film(tmp_path / "x.gif", fps)
    monkeypatch.setattr("tetrathlon.benchmarks.video.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'x.mp4 needs av: pip install "tetrathlon\[video\]"; a \*.gif needs nothing'):
        Film(tmp_path / "x.mp4", 20)


def test_an_mp4(tmp_path: Path) -> None:
    av = pytest.importorskip("av", reason='needs av: pip install "tetrathlon[video]"')
    with Film(tmp_path / "x.mp4", 12.5) as film:
        for number in range(10):
            film.add(frame(20 * number, (33, 47, 3)))
    with av.open(str(tmp_path / "x.mp4")) as file:
        stream = file.streams.video[0]
        assert float(stream.average_rate) == 12.5 and (stream.width, stream.height) == (48, 34)
        pictures = [picture.to_ndarray(format="rgb24") for picture in file.decode(stream)]
    assert len(pictures) == 10 == film.frames
    assert [int(picture[20, 20, 0]) for picture in pictures] == pytest.approx([20 * n for n in range(10)], abs=6)


def test_the_picture_in_an_observation() -> None:
    picture = frame(3)
    assert picture_in(picture) is picture and picture_in({"image": picture, "wrist_image": frame(4)}) is picture
    assert picture_in({"wrist_image": picture}) is None and picture_in("text") is None
    assert picture_in({"image": picture.astype(np.float32)}) is None
