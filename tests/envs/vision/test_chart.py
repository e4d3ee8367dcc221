"""Reading values off charts."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import tetrathlon  # noqa: F401  (registers the ids)
from tetrathlon.envs import hostile
from tetrathlon.envs.vision.chart.environment import KINDS, Chart
from tetrathlon.envs.vision.chart.library import LibraryDrawing, LibraryScene, rendered
from tetrathlon.envs.vision.chart.plot import PlotScene
from tetrathlon.envs.vision.chart.scale import Scale, blind, number_in
from tetrathlon.envs.vision.drawing import Drawing
from tetrathlon.envs.vision.scene import Ellipse, Line, Rectangle, Text
from tetrathlon.envs.vision.task import VisionTask
from tetrathlon.envs.vision.things import COLORS
from tetrathlon.envs.vision.variants import VARIANTS

OWN = [kind for kind in KINDS if kind != "matplotlib"]
KNOBS: list[dict[str, Any]] = [
    {},
    {"size": 256, "series": 3, "items": 5, "ticks": 20, "steps": [1], "start": 2000, "unit": "kg", "labelled": 4},
    {"log": 2, "ticks": 6, "labelled": 1, "unit": "°C", "series": 2},
    {"steps": [1, 5, 100], "start": -30, "ticks": 8, "grid": False, "items": 6},
]
knobs = pytest.mark.parametrize("kwargs", KNOBS, ids=["default", "years", "log", "steps"])
kinds = pytest.mark.parametrize("kind", KINDS)
BLANK = np.zeros((8, 8, 3), np.uint8)
"""What is shown to who does not look: drawing takes long."""


def made(**kwargs: Any) -> Chart:
    env = gym.make("tetrathlon/Chart-v0", disable_env_checker=True, **kwargs).unwrapped
    assert isinstance(env, Chart)
    return env


def task_of(env: Chart) -> VisionTask:
    assert isinstance(env._task, VisionTask)
    return env._task


def right(env: Chart) -> float:
    return float(env.evidence()["answer"])


def measured(env: Chart) -> float:
    """The value as the picture shows it: the place of the bar, point or needle between two numbers of the scale."""
    scene = env.view.scene
    value = env.view.evidence[0]
    if isinstance(scene, LibraryScene):
        panel = scene.panel
        (shape,) = rendered(panel, scene.plot).regions[value]
        assert isinstance(shape, Rectangle | Ellipse)
        at = shape.box[1] if panel == "bars" else (shape.box[1] + shape.box[3]) / 2
        _, bottom = ends_of_axis(env)
        top = ends_of_axis(env)[0]
        share = (bottom - at) / (bottom - top)
    elif scene.kind == "gauge":  # type: ignore[attr-defined]
        needle = next(mark for mark in scene.marks if mark.tag == value and isinstance(mark, Line))
        (x, y), (x2, y2) = needle.points
        share = 1 - math.atan2(y - y2, x2 - x) / math.pi
    else:
        shape = next(m for m in scene.marks if m.tag == value and isinstance(m, Rectangle | Ellipse))
        at = shape.box[1] if isinstance(shape, Rectangle) else (shape.box[1] + shape.box[3]) / 2
        top, bottom = ends_of_axis(env)
        share = (bottom - at) / (bottom - top)
    low, high = end_numbers(env)
    return low * (high / low) ** share if env.scales[0].base else low + share * (high - low)


def ends_of_axis(env: Chart) -> tuple[float, float]:
    scene = env.view.scene
    if isinstance(scene, LibraryScene):
        spine = rendered(scene.panel, scene.plot).regions["axis"][0]
        assert isinstance(spine, Rectangle)
        return spine.box[1], spine.box[3]
    spine = max(
        (m for m in scene.marks if m.tag == "axis" and isinstance(m, Rectangle)), key=lambda m: m.box[3] - m.box[1]
    )
    return spine.box[1], spine.box[3]


def end_numbers(env: Chart) -> tuple[float, float]:
    """The values of the ends of the scale, from its first two numbers and how many ticks are between them."""
    plot = env.view.scene.plot  # type: ignore[attr-defined]
    scale: Scale = plot.scale
    if scale.base is not None:
        return 1.0, float(scale.base**scale.ticks)
    return float(scale.start), float(scale.start + scale.ticks * scale.step)


@kinds
@knobs
def test_the_picture_shows_the_answer(kind: str, kwargs: dict[str, Any]) -> None:
    env = made(kinds=[kind], **kwargs)
    for seed in range(3 if kind == "matplotlib" else 8):
        for variant in ("full", "twin"):
            env.reset(seed=seed, options={"variant": variant})
            assert measured(env) == pytest.approx(right(env), rel=6e-3 if env.scales[0].base else 1e-4, abs=0.01)


@kinds
@knobs
def test_the_question_names_what_the_evidence_is(kind: str, kwargs: dict[str, Any]) -> None:
    env = made(kinds=[kind], **kwargs)
    for seed in range(6):
        env.reset(seed=seed, options={"variant": "no_image"})
        task = task_of(env)
        scene = task.view.scene
        assert isinstance(scene, PlotScene)
        plot = scene.plot
        value, name, _ = task.view.evidence
        series, item = map(int, value.split()[1:])
        assert name == f"name {item}"
        words = task.question.removesuffix("?").split()
        assert plot.names[item] in words
        if len(plot.colors) > 1:
            assert plot.colors[series] in words
        assert ("in" in words) == bool(env.unit)
        # No other value is near enough, neither here nor in the twin.
        for view in (task.view, task.twin):
            assert isinstance(view.scene, PlotScene)
            texts = [plot.scale.written(p) for row in view.scene.plot.values for p in row]
            assert sum(env.matches(view, text) for text in texts) == 1


@kinds
@knobs
def test_the_twin_has_another_value_and_nothing_else(kind: str, kwargs: dict[str, Any]) -> None:
    env = made(kinds=[kind], **kwargs)
    for seed in range(8):
        env.reset(seed=seed, options={"variant": "no_image"})
        task = task_of(env)
        one, two = task.view.scene, task.twin.scene
        assert isinstance(one, PlotScene) and isinstance(two, PlotScene)
        assert one.plot.with_place(two.plot.place) == two.plot
        assert abs(one.plot.place - two.plot.place) > 10
        assert not env.matches(task.view, task.twin.answer) and not env.matches(task.twin, task.view.answer)


@kinds
@knobs
def test_covers_hide_the_value_and_do_not_tell_it(kind: str, kwargs: dict[str, Any]) -> None:
    env = made(kinds=[kind], **kwargs)
    for seed in range(2 if kind == "matplotlib" else 8):
        pictures = {v: env.reset(seed=seed, options={"variant": v})[0]["image"] for v in VARIANTS}
        task = task_of(env)
        plot = task.view.scene.plot  # type: ignore[attr-defined]
        env.reset(seed=seed, options={"variant": "masked"})
        value, name, axis = task.view.evidence
        assert not env.drawing.mask([value]).any() and env.drawing.mask([name]).any()
        drawn = LibraryDrawing if kind == "matplotlib" else Drawing
        as_twin = drawn(task.twin.covered(task.covers, is_hidden=True).scene).picture
        assert (as_twin == pictures["masked"]).all()
        (cover,), (decoy,) = task.covers, task.decoys
        assert (cover[2] - cover[0], cover[3] - cover[1]) == (decoy[2] - decoy[0], decoy[3] - decoy[1])
        for x1, y1, x2, y2 in (cover, decoy):
            assert 0 <= x1 < x2 <= env.size and 0 <= y1 < y2 <= env.size
            assert all(edge == int(edge) for edge in (x1, y1, x2, y2))
        env.reset(seed=seed, options={"variant": "distractor_masked"})
        bare = drawn(task.view.scene)
        for tag in (value, name, axis):
            assert (env.drawing.mask([tag]) == bare.mask([tag])).all(), tag
        x1, y1, x2, y2 = map(int, decoy)
        assert (pictures["distractor_masked"][y1:y2, x1:x2] == 127).all()
        changed = (pictures["distractor_masked"] != pictures["full"]).any(axis=2)
        changed[y1:y2, x1:x2] = False
        assert not changed.any() and plot.size == env.size
        assert (pictures["no_image"] == 127).all() and (pictures["full"] != pictures["twin"]).any()


@pytest.mark.parametrize("kind", OWN)
@knobs
def test_nothing_written_is_clipped_or_touched(kind: str, kwargs: dict[str, Any]) -> None:
    env = made(kinds=[kind], **kwargs)
    for seed in range(2):
        env.reset(seed=seed)
        scene = env.view.scene
        masks = []
        for mark in scene.marks:
            if isinstance(mark, Text):
                alone = replace(scene, marks=(mark,))
                moved = replace(mark, at=(mark.at[0] + 20, mark.at[1] + 20))
                larger = replace(scene, marks=(moved,), width=env.size + 40, height=env.size + 40)
                box, wide = Drawing(alone).box(mark.tag), Drawing(larger).box(mark.tag)
                assert box is not None and wide is not None
                assert np.allclose(np.array(wide) - 20, box), mark.text
                masks.append(Drawing(alone).mask([mark.tag]))
        assert np.sum(masks, axis=0).max() == 1
        shapes = [mark for mark in scene.marks if not isinstance(mark, Text) and mark.tag != "grid"]
        seen = Drawing(replace(scene, marks=tuple(shapes))).mask({mark.tag for mark in shapes})
        assert not (seen & np.any(masks, axis=0)).any()


@pytest.mark.parametrize("kwargs", KNOBS[:3], ids=["default", "years", "log"])
def test_what_matplotlib_draws_is_where_its_evidence_says(kwargs: dict[str, Any]) -> None:
    env = made(kinds=["matplotlib"], **kwargs)
    panels = set()
    for seed in range(8):
        env.reset(seed=seed)
        scene = env.view.scene
        assert isinstance(scene, LibraryScene)
        panels.add(scene.panel)
        plot, tag = scene.plot, env.view.evidence[0]
        (region,) = rendered(scene.panel, plot).regions[tag]
        assert isinstance(region, Rectangle | Ellipse)
        # The same chart without it: in the colour of what is behind, all that changes is what it covers.
        picture = env.drawing.picture.astype(float)
        alone = replace(plot, values=tuple(tuple(0 for _ in row) for row in plot.values))
        moved = alone.with_place(plot.place)
        if scene.panel == "bars":
            there, gone = (rendered("bars", each).picture.astype(float) for each in (moved, alone))
            strength = np.abs(there - gone).max(axis=2)
            rows, columns = np.nonzero(strength > 8)
            x1, y1, x2, y2 = region.box
            if y2 - y1 > 3:
                assert abs(rows.min() - y1) < 1 and abs(columns.min() - x1) < 0.5 and abs(columns.max() + 1 - x2) < 0.5
        else:  # around the middle of a point its colour is in balance
            x1, y1, x2, y2 = region.box
            color = np.array(COLORS[plot.colors[plot.series]], dtype=float)
            assert np.abs(picture[int((y1 + y2) / 2), int((x1 + x2) / 2)] - color).max() < 3
    assert panels == {"bars", "lines"}


def test_points_of_matplotlib_are_not_moved_to_whole_pixels() -> None:
    env = made(kinds=["matplotlib"], grid=False)
    env.reset(
        seed=next(s for s in range(50) if "point" in env.reset(seed=s, options={"variant": "no_image"})[0]["text"])
    )
    scene = env.view.scene
    assert isinstance(scene, LibraryScene)
    for place in (31, 33, 36, 38):
        flat = replace(scene.plot, values=((place,) * 4,), style=0)
        picture = rendered("lines", flat).picture.astype(float)
        (region,) = rendered("lines", flat).regions["value 0 1"]
        assert isinstance(region, Ellipse)
        x1, y1, x2, y2 = region.box
        column = np.abs(picture - np.array(flat.ground)).max(axis=2)[int(y1) - 2 : int(y2) + 3, int((x1 + x2) / 2)]
        middle = int(y1) - 2 + (column * (np.arange(len(column)) + 0.5)).sum() / column.sum()
        assert abs(middle - (y1 + y2) / 2) < 0.1


def test_matplotlib_draws_the_same_whatever_its_settings_are() -> None:
    import matplotlib

    env = made(kinds=["matplotlib"])
    picture = env.reset(seed=3)[0]["image"]
    settings: dict[Any, Any] = {
        "axes.grid": True,
        "font.family": "serif",
        "axes.facecolor": "pink",
        "lines.linewidth": 9.0,
    }
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context(settings):
        rendered.cache_clear()
        assert (env.reset(seed=3)[0]["image"] == picture).all()
        assert matplotlib.rcParams["axes.facecolor"] == "pink"
    assert dict(matplotlib.rcParams) == before


@kinds
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_expert_is_right_in_every_variant(kind: str, split: str) -> None:
    for i, kwargs in enumerate(KNOBS):
        env = made(kinds=[kind], split=split, **kwargs)
        for seed in range(2 if kind == "matplotlib" or i else 70):
            for variant in VARIANTS:
                env.reset(seed=seed, options={"variant": variant})
                action = env.expert_action()
                assert ("unseen" in action) == (variant == "masked")
                assert env.step(action)[1] == 1.0


FLOORS: list[tuple[dict[str, Any], float]] = [
    ({}, 11 / 100),
    ({"ticks": 5, "log": 10, "labelled": 1}, 11 / 50),
    ({"steps": [10, 21], "start": 5}, 11 / 100),
    ({"ticks": 20, "steps": [1], "start": 2000, "size": 128, "labelled": 5}, 11 / 200),
]


@pytest.mark.parametrize(("kwargs", "floor"), FLOORS, ids=["default", "log", "steps", "years"])
def test_the_blind_floor_is_exact(kwargs: dict[str, Any], floor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    env = made(**kwargs)
    assert env.blind_floor == pytest.approx(floor, abs=1e-12)
    monkeypatch.setattr(env, "picture", lambda: BLANK)  # nobody looks
    for variant in ("no_image", "twin") if not kwargs else ("no_image",):
        paid, n = 0.0, 500 if kwargs else 2000
        for seed in range(n):
            prompt = env.reset(seed=seed, options={"variant": variant})[0]["text"]
            paid += env.step(env.blind_action(prompt))[1]
        assert abs(paid / n - floor) < 4 * math.sqrt(floor * (1 - floor) / n)


@pytest.mark.parametrize(
    "scales",
    [
        (Scale(10, 10),),
        (Scale(3, 1, -7),),
        (Scale(5, 1, 2), Scale(5, 2, 2), Scale(5, 10, 2)),
        (Scale(4, base=10),),
        (Scale(7, base=2),),
    ],
    ids=str,
)
def test_no_number_does_better_than_the_blind_one(scales: tuple[Scale, ...]) -> None:
    said, floor = blind(scales)

    def share(number: Fraction) -> float:
        hits = [scale.accepts(place, number) for scale in scales for place in range(1, scale.places + 1)]
        return sum(hits) / len(hits)

    assert share(Fraction(said)) == pytest.approx(floor)
    rng = np.random.default_rng(0)
    tried = [scales[0].value(place) for place in np.arange(-10, scales[0].places + 20, 0.5)]
    tried += list(rng.uniform(scales[0].value(0), scales[-1].value(scales[-1].places), 200))
    assert max(share(Fraction(f"{number:.9f}")) for number in tried) <= floor + 1e-12


def test_half_a_tick_is_near_enough_and_no_more() -> None:
    years = Scale(20, 1, 2000)
    assert years.written(104) == "2010.4" and years.written(100) == "2010"
    for text, is_near in (("2010.4", True), ("2010.9", True), ("2009.9", True), ("2010.91", False), ("2008", False)):
        assert years.accepts(104, Fraction(text)) is is_near
    powers = Scale(4, base=10)
    assert [powers.written(place) for place in (0, 10, 15, 40)] == ["1", "10", "31.6", "10000"]
    for text, is_near in (("31.6", True), ("10", True), ("100", True), ("9.99", False), ("100.1", False)):
        assert powers.accepts(15, Fraction(text)) is is_near
    for text in ("0", "-31.6", "1" + "0" * 60):
        assert not powers.accepts(15, Fraction(text))
    assert Scale(10, 1, -5).written(3) == "-4.7" and Scale(10, 1, -5).written(50) == "0"


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("37", 37),
        (" 37. ", 37),
        ("**37**", 37),
        ("-4.7", Fraction(-47, 10)),
        ("+4", 4),
        ("1,234.5", Fraction(12345, 10)),
        ("37 kg", 37),
        ("37kg", 37),
        ("37 g", None),
        ("kg", None),
        ("", None),
        ("37 38", None),
        ("37-38", None),
        ("37 or 38", None),
        ("about 37", None),
        ("3 7", None),
        ("1,23", None),
        ("1e2", None),
        ("nan", None),
        ("inf", None),
        ("1/2", None),
        ("37%", None),
        ("٣٧", None),
        ("3²", None),
        ("9" * 10_000, None),
        ("9" * 30, None),
        ("[0, 0, 96, 96]", None),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_numbers_are_read_strictly(said: str, number: int | Fraction | None) -> None:
    assert number_in(said, "kg") == number
    if "kg" in said:
        assert number_in(said) is None


@pytest.mark.parametrize(
    "attack",
    [
        "",
        "unseen",
        " ".join(map(str, range(1, 101))),
        ", ".join(map(str, range(1, 101))),
        "1-100",
        "[0, 0, 96, 96]",
        "nan",
        "inf",
        "1e400",
        "9" * 10_000,
        "{answer} or {other}",
        "{answer} {other}",
        "{answer}-{other}",
        "{answer}±50",
        "{arabic}",
        "not {answer}",
        "{answer} kg",
        "\ud800",
        *hostile.WRONG,
    ],
    ids=lambda text: ascii(text)[:30],
)
def test_attacks_are_not_paid(attack: str) -> None:
    env = made(start=2000, steps=[1], size=128)
    for seed in range(2):
        observation, _ = env.reset(seed=seed)
        answer = env.evidence()["answer"]
        said = attack.replace("{answer}", answer).replace("{other}", str(float(answer) + 3))
        said = said.replace("{arabic}", "".join(chr(ord("٠") + int(d)) if d.isdigit() else d for d in answer))
        for action in (f"<answer>{said}</answer>", said, observation["text"] + said):
            env.reset(seed=seed)
            _, reward, terminated, truncated, info = env.step(action)
            assert terminated and not truncated and reward == 0.0 and not info["is_success"]


def test_what_is_covered_is_unseen_and_nothing_else() -> None:
    env = made(variant="masked")
    for seed in range(10):
        env.reset(seed=seed)
        assert env.step(f"<answer>{task_of(env).view.answer}</answer>")[1] == 0.0
        env.reset(seed=seed)
        assert env.step("<answer>unseen</answer>")[1] == 1.0


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("size", [64, 96, 128, 512])
def test_sizes(kind: str, size: int) -> None:
    env = made(kinds=[kind], size=size)
    observation, _ = env.reset(seed=0)
    assert observation["image"].shape == (size, size, 3)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"kinds": ["pie"]}, "kinds must be a list of some of bars, lines, gauge, matplotlib"),
        ({"items": 3}, "items .* from 4 to 8, got 3"),
        ({"items": 1, "kinds": ["bars"]}, "items .* from 2 to 8, got 1"),
        ({"series": 4}, "series must be an integer from 1 to 3, got 4"),
        ({"ticks": 2}, "ticks must be an integer from 3 to 20, got 2"),
        ({"labelled": 11}, "labelled .* from 1 to 10, got 11"),
        ({"steps": []}, "steps must be a list of integers"),
        ({"steps": [0]}, "steps .* got 0"),
        ({"steps": [5, 5]}, "steps must differ"),
        ({"start": 0.5}, "start must be an integer"),
        ({"log": 1}, "log .* from 2 to 10, got 1"),
        ({"unit": "12"}, "unit must be up to 6 letters"),
        ({"grid": 1}, "grid must be True or False, got 1"),
        ({"size": 48, "ticks": 20}, "a chart of 48 pixels has no room for 20 ticks; make size larger"),
        ({"size": 48, "kinds": ["bars"], "start": 900_000}, "has no room for numbers such as 900100"),
        ({"kinds": ["bars"], "items": 8, "series": 3}, "has no room for 8 times 3 bars"),
        ({"kinds": ["lines"], "items": 8, "size": 64}, "has no room for 8 points"),
        ({"labelled": 1, "size": 64, "kinds": ["bars"]}, "a number at each 1 ticks"),
    ],
)
def test_arguments_out_of_range_are_refused(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**kwargs)
