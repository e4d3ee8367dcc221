"""Logs of every domain: what they hold is what they say, made anew they are the same, and they can be learnt from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tetrathlon.algos import FilteredBC
from tetrathlon.benchmarks.logs import NAMES, Arguments, content
from tetrathlon.benchmarks.matrix import DOMAINS
from tetrathlon.benchmarks.sums import near
from tetrathlon.envs.episode import load_episodes


def test_a_domain_is_made_once_and_is_the_same_made_again(tmp_path: Path) -> None:
    for folder, names in ((tmp_path / "one", NAMES), (tmp_path / "two", ("medium-replay", "mixed"))):
        assert Arguments(out=folder, domains=("text",), names=names, episodes=20).run() == 0
    told = {name: json.loads((tmp_path / "one/text" / name / "log.json").read_text()) for name in NAMES}
    assert len({each["digest"] for each in told.values()}) == len(NAMES)
    assert told["random"]["success"] == 0 and told["expert"]["success"] == 1
    assert told["mixed"]["success"] >= 0.5 > told["medium"]["success"]
    for name, each in told.items():
        episodes = load_episodes(tmp_path / "one/text" / name)
        assert content(episodes) == {key: each[key] for key in ("episodes", "steps", "reward", "success", "digest")}
        assert each["reference"]["expert"] == {"reward": 1.0, "success": 1.0} and each["episodes"] == 20
        # What a policy of ours played, it knows how likely it was; what others did, nobody does.
        noted = [step.record is not None for episode in episodes for step in episode.steps]
        assert (all(noted), any(noted)) == {
            "random": (False, False),
            "medium": (True, True),
            "expert": (False, False),
            "medium-replay": (True, True),
            "mixed": (False, True),
        }[name]
    for name in ("medium-replay", "mixed"):
        again = json.loads((tmp_path / "two/text" / name / "log.json").read_text())
        assert again["digest"] == told[name]["digest"]
    before = (tmp_path / "one/text/mixed/log.json").read_bytes()
    assert Arguments(out=tmp_path / "one", domains=("text",), episodes=20).run() == 0
    assert (tmp_path / "one/text/mixed/log.json").read_bytes() == before
    (learnt,) = FilteredBC(near(), DOMAINS[0].env, log=tmp_path / "one/text/mixed", steps=2).learn(1)
    assert learnt["kept"] == 20 * told["mixed"]["success"]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no log 'best'"):
        Arguments(out=tmp_path, names=("best",)).run()
    with pytest.raises(ValueError, match="there is no domain 'music'"):
        Arguments(out=tmp_path, domains=("music",)).run()
