"""Robot tasks in their state-only form in Stable-Baselines3, and what it makes of them in ours."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import tetrathlon  # noqa: F401  (registers the ids)
from tetrathlon.agents.evaluation import evaluate
from tetrathlon.agents.sb3_policy import SB3Policy
from tetrathlon.cli import main
from tetrathlon.envs.episode import load_episodes

sb3 = pytest.importorskip("stable_baselines3", reason='needs stable-baselines3: pip install "tetrathlon[sb3]"')

ID = "tetrathlon/PushToZone-v0"
KWARGS: dict[str, Any] = {"observation": "state", "reward": "dense", "max_steps": 20}
WORDS = ["--env", "observation=state", "reward=dense", "max_steps=20"]
KINDS: dict[str, dict[str, Any]] = {
    "PPO": {"n_steps": 100, "batch_size": 50, "n_epochs": 2},
    "SAC": {"buffer_size": 500, "learning_starts": 50, "batch_size": 16},
    "TD3": {"buffer_size": 500, "learning_starts": 50, "batch_size": 16},
}


def model_of(kind: str, env: Any) -> Any:
    settings = {**KINDS[kind], "policy_kwargs": {"net_arch": [16, 16]}}
    return getattr(sb3, kind)("MlpPolicy", env, seed=3, device="cpu", **settings)


def weights(model: Any) -> list[np.ndarray]:
    return [p.detach().numpy().copy() for p in model.policy.parameters()]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sb3") / "model.zip"
    model_of("SAC", gym.make(ID, **KWARGS)).learn(60).save(path)
    return path


@pytest.mark.parametrize("robot", ["pusher", "arm"])
@pytest.mark.parametrize("chunk", [1, 2])
def test_they_pass_sb3_s_checker(robot: str, chunk: int) -> None:
    from stable_baselines3.common.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(ID, robot=robot, chunk=chunk, **KWARGS).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copies", [1, 2])
def test_they_train_without_a_warning(kind: str, copies: int) -> None:
    from stable_baselines3.common.env_util import make_vec_env

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning)  # of SB3's own imports
        env = gym.make(ID, **KWARGS) if copies == 1 else make_vec_env(ID, copies, seed=5, env_kwargs=KWARGS)
        model = model_of(kind, env)
        before = weights(model)
        model.learn(200)
    after = weights(model)
    assert any(not np.array_equal(now, old) for now, old in zip(after, before, strict=True))
    assert all(np.isfinite(now).all() for now in after)
    lengths = [episode["l"] for episode in model.ep_info_buffer]
    assert lengths == [20] * (200 // 20) and list(model.ep_success_buffer) == [False] * len(lengths)
    if kind != "PPO":
        kept = model.replay_buffer
        assert kept.timeouts[: 200 // copies].sum() == 10  # time is no end of the task: there it bootstraps
        assert kept.dones[: 200 // copies].sum() == 10


def test_a_model_is_evaluated_by_name_as_by_itself(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", ID, "--policy", f"sb3:{saved}", "--episodes", "4", "--json", *WORDS]) == 0
    told = json.loads(capsys.readouterr().out)
    result = evaluate(sb3.SAC.load(saved), ID, kwargs=KWARGS, episodes=4)
    assert told["reward"]["mean"] == pytest.approx(result.reward["mean"], abs=1e-6)
    policy = SB3Policy.load(saved)
    for episode in result.episodes_played:
        for step in episode.steps:
            action, _ = policy.model.predict(step.observation, deterministic=True)
            assert np.allclose(step.action, action, atol=1e-6)


def test_a_model_is_a_source_of_data_and_an_expert(saved: Path, tmp_path: Path) -> None:
    policy = SB3Policy.load(saved)
    record = ["record", ID, "--policy", f"sb3:{saved}", "--episodes", "3", "--split", "train", *WORDS]
    assert main([*record, "--out", str(tmp_path / "demos")]) == 0
    assert [len(episode) for episode in load_episodes(tmp_path / "demos")] == [20] * 3
    words = ["train", "dagger", ID, "--policy", "control", "--expert", f"sb3:{saved}", "--track", "none", *WORDS]
    few = ["--episodes", "2", "--steps", "1", "--updates", "2", "--test-episodes", "0", "--seed", "1"]
    assert main([*words, *few, "--out", str(tmp_path / "run")]) == 0
    noted = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["queries"] for line in noted] == [40.0, 80.0]
    assert noted[0]["interventions"] == 40.0  # in the first update the expert acts
    labelled = [step for episode in load_episodes(tmp_path / "run") for step in episode.steps if step.label is not None]
    assert len(labelled) >= 40
    for step in labelled:
        expected = policy.act(step.observation[None], greedy=True).actions[0]
        assert np.allclose(step.label, expected, atol=1e-5)


def test_the_page_s_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/sb3.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(block.replace("20_000", "120").replace("seed=0, device", "seed=0, buffer_size=200, device"), {})
    (line,) = [line for line in page.splitlines() if line.startswith("tetrathlon eval")]
    assert main([*line.split()[1:], "max_steps=5", "--episodes", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 2
