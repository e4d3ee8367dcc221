"""Models of Stable-Baselines3 as policies, and environments of ours in Stable-Baselines3."""

from __future__ import annotations

import base64
import json
import pickle
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from tests.agents.toys import Counting
from tetrathlon.agents.evaluation import evaluate
from tetrathlon.agents.naming import PolicyError, make_policy
from tetrathlon.agents.result import Result
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.agents.sb3_policy import SB3Policy
from tetrathlon.envs.slots import Slots

sb3 = pytest.importorskip("stable_baselines3", reason='needs stable-baselines3: pip install "tetrathlon[sb3]"')
torch = pytest.importorskip("torch")


class Aim(gym.Env[Any, Any]):
    """Four steps: the reward is minus the squared distance of the action to the target that is seen."""

    def __init__(self, parts: bool = False, picture: bool = False, discrete: bool = False, high: float = 2.0) -> None:
        self.parts, self.picture, self.discrete = parts, picture, discrete
        box = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space: Any = box
        if parts:
            self.observation_space = spaces.Dict({"target": box, "time": spaces.Box(0.0, 1.0, (1,), np.float32)})
        if picture:
            self.observation_space = spaces.Dict({"image": spaces.Box(0, 255, (40, 44, 3), np.uint8), "target": box})
        self.action_space: Any = spaces.Discrete(5) if discrete else spaces.Box(-high, high, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.t = 0
        return self._see(), {"task_id": "aim"}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        move = np.full(2, action / 2 - 1) if self.discrete else np.asarray(action)
        reward = -float(np.square(move - self.target).sum())
        self.t += 1
        info = {"reward_terms": {"near": reward}}
        if self.t == 4:
            info["is_success"] = reward > -0.1  # type: ignore[assignment]
        return self._see(), reward, False, self.t == 4, info

    def _see(self) -> Any:
        self.target = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        if self.picture:
            image = self.np_random.integers(0, 256, (40, 44, 3), dtype=np.uint8)
            return {"image": image, "target": self.target}
        time = np.array([self.t / 4], np.float32)
        return {"target": self.target, "time": time} if self.parts else self.target


KINDS = {
    "PPO": {"n_steps": 8, "batch_size": 8},
    "A2C": {},
    "DQN": {"buffer_size": 50},
    "SAC": {"buffer_size": 50},
    "TD3": {"buffer_size": 50},
    "DDPG": {"buffer_size": 50},
}


def model_of(kind: str, env: gym.Env[Any, Any] | Any = None, policy: str = "MlpPolicy", **more: Any) -> Any:
    env = Aim(discrete=kind == "DQN") if env is None else env
    return getattr(sb3, kind)(policy, env, seed=3, device="cpu", **{**KINDS[kind], **more})


@pytest.fixture
def registered() -> Iterator[str]:
    gym.register("toys/Aim-v0", entry_point=Aim)  # type: ignore[arg-type]
    yield "toys/Aim-v0"
    del gym.registry["toys/Aim-v0"]


def mean(result: Result) -> float:
    return float(result.reward["mean"] or 0.0)


def seen(env: gym.Env[Any, Any], n: int) -> list[Any]:
    env.observation_space.seed(0)
    return [env.observation_space.sample() for _ in range(n)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_acts_as_it_did(kind: str, tmp_path: Path) -> None:
    model = model_of(kind)
    model.save(tmp_path / "model")
    env = Aim(discrete=kind == "DQN")
    policy: Any = make_policy(f"sb3:{tmp_path / 'model.zip'}", env)
    assert type(policy.model).__name__ == kind
    batch = np.stack(seen(env, 6))
    acted = policy.act(batch, greedy=True)
    alone = [model.predict(one, deterministic=True)[0] for one in batch]
    np.testing.assert_allclose(acted.actions, np.stack(alone), rtol=0, atol=1e-6)
    assert len(set(map(str, acted.actions.tolist()))) > 1 or kind == "DQN"
    assert all(env.action_space.contains(action) for action in acted.actions)
    assert acted.records == [None] * 6 and acted.stops == []
    assert getattr(policy.model, "buffer_size", 1) == 1  # a replay buffer of a million pictures helps nobody act


def test_draws_are_seeded_and_disturb_nobody(tmp_path: Path) -> None:
    for kind in ("PPO", "SAC", "DQN"):
        model = model_of(kind)
        if kind == "DQN":
            model.exploration_rate = 0.5
        batch = np.stack(seen(Aim(), 4))
        draws = {}
        for seed in (1, 2):
            for theirs in (7, 8):  # whose first draws of NumPy are 0.08 and 0.87
                torch.manual_seed(theirs)
                np.random.seed(theirs)
                expected = torch.rand(1).item(), np.random.rand()
                torch.manual_seed(theirs)
                np.random.seed(theirs)
                policy = SB3Policy(model, seed=seed)
                draws[seed, theirs] = [policy.act(batch).actions.tolist() for _ in range(8)]
                assert (torch.rand(1).item(), np.random.rand()) == expected, kind
        assert draws[1, 7] == draws[1, 8] != draws[2, 7] == draws[2, 8], kind
        assert len(set(map(str, draws[1, 7]))) > 1, kind
        assert model.action_space is not policy._exploration


def test_it_plays_and_is_evaluated(registered: str, tmp_path: Path) -> None:
    model = model_of("PPO", Aim(parts=True), "MultiInputPolicy")
    model.save(tmp_path / "model")
    result = evaluate(f"sb3:{tmp_path / 'model'}", registered, kwargs={"parts": True}, episodes=3, slots=2)
    by_model = evaluate(model, registered, kwargs={"parts": True}, episodes=3)
    assert mean(result) == pytest.approx(mean(by_model), abs=1e-6)
    for episode in result.episodes_played:
        assert len(episode) == 4 and episode.steps[-1].truncated
        for step in episode.steps:
            assert np.allclose(step.action, model.predict(step.observation, deterministic=True)[0], atol=1e-6)


def test_forced_actions_and_labels() -> None:
    """As an expert and in DAgger: any policy's actions can be asked for, and replaced."""
    policy = SB3Policy(model_of("SAC"))
    batch = np.stack(seen(Aim(), 3))
    own = policy.act(batch, greedy=True).actions
    forced = policy.act(batch, greedy=True, forced=[None, np.array([1.5, -1.5], np.float32), None]).actions
    assert np.array_equal(forced[[0, 2]], own[[0, 2]]) and forced[1].tolist() == [1.5, -1.5]
    discrete = SB3Policy(model_of("DQN"))
    own = discrete.act(batch, greedy=True).actions
    assert discrete.act(batch, greedy=True, forced=[4, 3, None]).actions.tolist() == [4, 3, own[2]]


def test_pictures_have_their_channels_last(tmp_path: Path) -> None:
    env = Aim(picture=True)
    model = model_of("PPO", env, "MultiInputPolicy")
    assert model.observation_space["image"].shape == (3, 40, 44)  # SB3 moved them
    policy = SB3Policy(model)
    policy.check_spaces(env.observation_space, env.action_space)
    slots = Slots(lambda: Aim(picture=True), 2)
    episodes = Rollout(policy, slots, [Start(seed=s) for s in range(2)], greedy=True).episodes()
    for step in episodes[1].steps:
        assert np.allclose(step.action, model.predict(step.observation, deterministic=True)[0], atol=1e-5)


@pytest.mark.parametrize("kind", ["array", "parts", "picture"])
def test_statistics_are_used_and_kept(kind: str, tmp_path: Path) -> None:
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    options = {} if kind == "array" else {kind: True}
    venv = VecNormalize(DummyVecEnv([lambda: Aim(**options)]))
    model = model_of("PPO", venv, "MlpPolicy" if kind == "array" else "MultiInputPolicy")
    venv.reset()
    for _ in range(20):
        venv.step(venv.action_space.sample()[None])
    model.save(tmp_path / "model")
    venv.save(str(tmp_path / "stats.pkl"))
    env = Aim(**options)
    policy: Any = make_policy(f"sb3:{tmp_path / 'model.zip'},{tmp_path / 'stats.pkl'}", env)
    moments = pickle.dumps(policy.statistics.obs_rms)
    raw = seen(env, 3)
    batch: Any = np.stack(raw) if kind == "array" else {k: np.stack([one[k] for one in raw]) for k in raw[0]}
    acted = policy.act(batch, greedy=True).actions
    expected, _ = model.predict(venv.normalize_obs(batch), deterministic=True)
    assert np.allclose(acted, expected, atol=1e-6)
    bare, _ = model.predict(batch, deterministic=True) if kind != "picture" else (None, None)
    assert bare is None or not np.allclose(acted, bare, atol=1e-4)
    assert pickle.dumps(policy.statistics.obs_rms) == moments
    given = make_policy(f"sb3:{tmp_path / 'model'}", env, arguments={"statistics": tmp_path / "stats.pkl"})
    assert np.array_equal(given.act(batch, greedy=True).actions, acted)
    if kind == "parts":
        with pytest.raises(PolicyError, match=r"the statistics are of observations of shape \{'target': \(2,\)"):
            make_policy(f"sb3:{tmp_path / 'model.zip'},{tmp_path / 'stats.pkl'}", Aim())


def test_a_comma_in_a_file_s_name(tmp_path: Path) -> None:
    model_of("PPO").save(tmp_path / "a,b.zip")
    assert isinstance(make_policy(f"sb3:{tmp_path / 'a,b.zip'}", Aim()), SB3Policy)


def test_other_spaces_are_refused(tmp_path: Path) -> None:
    model_of("SAC").save(tmp_path / "model")
    name = f"sb3:{tmp_path / 'model.zip'}"
    with pytest.raises(PolicyError, match=r"does not fit Counting: the model was trained on observations Box\(-1.0"):
        make_policy(name, Counting())
    # Of the same shape, so that nothing would fail: every action would be half of what the model means.
    with pytest.raises(PolicyError, match=r"trained on actions Box\(-2.0, 2.0.*this environment has Box\(-4.0, 4.0"):
        make_policy(name, Aim(high=4.0))
    with pytest.raises(PolicyError, match=r"does not fit Aim: the model was trained on actions"):
        make_policy(SB3Policy(model_of("SAC")), Aim(high=4.0))
    with pytest.raises(PolicyError, match=r"does not fit Aim: the model was trained on observations"):
        make_policy(model_of("SAC"), Aim(parts=True))


def test_a_factory_may_make_a_model(tmp_path: Path) -> None:
    assert isinstance(make_policy(lambda: model_of("A2C"), Aim()), SB3Policy)


def edited(path: Path, out: Path, **changes: Any) -> Path:
    """Copy a saved model with other entries in its data; None takes one out."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for member in old.namelist():
            data = old.read(member)
            if member == "data":
                kept = {**json.loads(data), **changes}
                data = json.dumps({key: value for key, value in kept.items() if value is not None}).encode()
            new.writestr(member, data)
    return out


def test_what_is_no_saved_model(tmp_path: Path) -> None:
    model_of("A2C").save(tmp_path / "model")
    (tmp_path / "text.zip").write_text("no zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("weights", "1")
    (tmp_path / "stats.pkl").write_bytes(pickle.dumps([1]))
    (tmp_path / "torn.pkl").write_bytes(b"\x80")
    edited(tmp_path / "model.zip", tmp_path / "trpo.zip", cg_max_steps=15)
    edited(tmp_path / "model.zip", tmp_path / "odd.zip", normalize_advantage=None)
    edited(tmp_path / "model.zip", tmp_path / "lstm.zip", policy_class={"__module__": "sb3_contrib.common.policies"})
    edited(tmp_path / "model.zip", tmp_path / "spaceless.zip", observation_space=None)
    for rest, said in (
        ("nothing.zip", "there is no file '.*nothing.zip'"),
        ("text.zip", "'.*text.zip' is no model that Stable-Baselines3 saved"),
        ("other.zip", "is no model that Stable-Baselines3 saved: .*data"),
        ("trpo.zip", "was saved by no algorithm of Stable-Baselines3 itself"),
        ("odd.zip", r"no algorithm of Stable-Baselines3 itself \(PPO, A2C, DQN, SAC, TD3, DDPG\); load it with"),
        ("lstm.zip", "no algorithm of Stable-Baselines3 itself"),
        ("spaceless.zip", "cannot be loaded as A2C: KeyError"),
        ("model.zip,nothing.pkl", "there is no file 'nothing.pkl'"),
        (f"model.zip,{tmp_path / 'stats.pkl'}", "holds a list, no VecNormalize"),
        (f"model.zip,{tmp_path / 'torn.pkl'}", "is no statistics of VecNormalize: "),
    ):
        with pytest.raises(PolicyError, match=said):
            make_policy(f"sb3:{tmp_path}/{rest}", Aim())
    with pytest.raises(PolicyError, match="colour"):
        make_policy(f"sb3:{tmp_path / 'model.zip'}", Aim(), arguments={"colour": 1})


def test_no_code_of_a_file_is_run_before_it_is_known(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return (exec, ("raise SystemExit('boom')",))

    model_of("A2C").save(tmp_path / "model")
    bomb = {":type:": "x", ":serialized:": base64.b64encode(pickle.dumps(Bomb())).decode()}
    edited(tmp_path / "model.zip", tmp_path / "bomb.zip", normalize_advantage=None, observation_space=bomb)
    with pytest.raises(PolicyError, match="no algorithm of Stable-Baselines3"):
        make_policy(f"sb3:{tmp_path / 'bomb.zip'}", Aim())


def test_a_recurrent_model_is_refused() -> None:
    policy = SB3Policy(model_of("PPO"))
    policy.model.predict = lambda observations, deterministic: (np.zeros((1, 2)), (np.zeros(1),))  # type: ignore
    with pytest.raises(TypeError, match="PPO is recurrent"):
        policy.act(np.zeros((1, 2), np.float32))


def test_missing_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(ImportError, match=r"needs stable_baselines3: pip install \"tetrathlon\[sb3\]\""):
        make_policy(f"sb3:{tmp_path / 'model.zip'}", Aim())


@pytest.mark.parametrize("options", [{}, {"parts": True}, {"picture": True}])
def test_our_environments_pass_sb3_s_checker(options: dict[str, Any], registered: str) -> None:
    from stable_baselines3.common.env_checker import check_env

    check_env(gym.make(registered, **options).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("kind", ["PPO", "SAC"])
def test_our_environments_train_with_sb3(kind: str, registered: str) -> None:
    """SB3 learns to aim, from parts too, and what it learnt is worth as much in our evaluation."""
    parts = kind == "PPO"
    env = gym.make(registered, parts=parts)
    presets: dict[str, tuple[dict[str, Any], int]] = {
        "PPO": ({"n_steps": 128, "batch_size": 64, "n_epochs": 6, "policy_kwargs": {"log_std_init": -1.0}}, 1024),
        "SAC": ({"buffer_size": 1000, "learning_starts": 50, "ent_coef": 0.01}, 200),
    }
    settings, steps = presets[kind]
    settings["policy_kwargs"] = {"net_arch": [32, 32], **settings.get("policy_kwargs", {})}
    policy = "MultiInputPolicy" if parts else "MlpPolicy"
    model = model_of(kind, env, policy, learning_rate=1e-2, gamma=0.0, **settings)
    before = evaluate(model, registered, kwargs={"parts": parts}, episodes=20)
    model.learn(steps)
    after = evaluate(model, registered, kwargs={"parts": parts}, episodes=20)
    assert mean(before) < -1.5 and mean(after) > -0.5


def test_the_page_s_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/policies.md").read_text(encoding="utf-8")
    block = next(b for b in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "stable_baselines3" in b)
    monkeypatch.chdir(tmp_path)
    exec(block.replace("20_000", "64").replace("seed=0", "seed=0, n_steps=64"), {})
    assert 8 < float(capsys.readouterr().out) < 500
    assert isinstance(make_policy("sb3:pole.zip", gym.make("CartPole-v1")), SB3Policy)
