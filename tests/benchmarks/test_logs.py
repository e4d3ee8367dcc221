"""Logs of every domain: what they hold is what they say, made anew they are the same, and they can be learnt from."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
import torch

from tetrathlon.agents.vla import VLAPolicy
from tetrathlon.algos import FilteredBC
from tetrathlon.algos.replay import Replay
from tetrathlon.benchmarks import pushes
from tetrathlon.benchmarks.logs import NAMES, Arguments, content
from tetrathlon.benchmarks.matrix import DOMAINS
from tetrathlon.benchmarks.sums import near
from tetrathlon.envs.episode import load_episodes
from tetrathlon.envs.registry import make

LOGS = Path(__file__).parent.parent / "logs"
SHIPPED = sorted(card.parent for card in LOGS.glob("*/*/log.json"))


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


@pytest.mark.parametrize("folder", SHIPPED, ids=[f"{folder.parent.name}-{folder.name}" for folder in SHIPPED])
def test_small_logs_of_each_domain_ship(folder: Path) -> None:
    """What is committed is whole, step by step, and is what its card says."""
    told, episodes = json.loads((folder / "log.json").read_text()), load_episodes(folder)
    assert content(episodes) == {key: told[key] for key in ("episodes", "steps", "reward", "success", "digest")}
    assert (told["domain"], told["log"], told["episodes"]) == (folder.parent.name, folder.name, 10)
    assert told["reference"]["expert"]["success"] == 1.0 > told["reference"]["random"]["success"]
    domain = next(domain for domain in DOMAINS if domain.name == folder.parent.name)
    assert (told["env"], told["kwargs"]) == (domain.env, json.loads(json.dumps(dict(domain.kwargs))))
    for episode in episodes:
        ends = [step.terminated or step.truncated for step in episode.steps]
        assert ends == [False] * (len(episode) - 1) + [True]
        assert episode.steps[-1].terminated or episode.final_observation is not None


def test_a_shipped_log_of_control_is_cut_into_what_followed_what() -> None:
    with closing(make(pushes.ENV, **pushes.SETTINGS)) as env:
        policy = VLAPolicy(env.observation_space, env.action_space)
    for name in ("random", "expert"):
        episodes = load_episodes(LOGS / "robots" / name)
        replay = Replay(policy, episodes)
        assert len(replay) == sum(map(len, episodes))  # no step is dropped, the last of an episode neither
        rows = replay.rows
        paid = rows.reward[rows.mask]
        assert paid.sum().item() == pytest.approx(sum(episode.total_reward for episode in episodes), rel=1e-5)
        ends = [bool(step.terminated) for episode in episodes for step in episode.steps]
        assert rows.terminated[rows.mask].tolist() == ends  # who ran out of time did not end
        lengths = torch.unique_consecutive(rows.episode[:, 0], return_counts=True)[1].tolist()
        assert lengths == [len(episode) + (not episode.steps[-1].terminated) for episode in episodes]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no log 'best'"):
        Arguments(out=tmp_path, names=("best",)).run()
    with pytest.raises(ValueError, match="there is no domain 'music'"):
        Arguments(out=tmp_path, domains=("music",)).run()
