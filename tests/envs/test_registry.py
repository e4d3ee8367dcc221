"""Ids without versions, and plug-ins of which some are broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import pytest

from tests.envs.toys import Echo
from tetrathlon.envs import registry


@pytest.fixture
def versions() -> Iterator[None]:
    ids = [f"tetrathlon/Toy-v{version}" for version in (0, 2, 10)]
    for env_id in ids:
        gym.register(env_id, entry_point=Echo)  # type: ignore[arg-type]
    yield
    for env_id in ids:
        del gym.registry[env_id]


@pytest.mark.usefixtures("versions")
@pytest.mark.parametrize(
    ("given", "full"),
    [
        ("CartPole", "CartPole-v1"),
        ("CartPole-v0", "CartPole-v0"),
        ("Toy", "tetrathlon/Toy-v10"),
        ("tetrathlon/Toy", "tetrathlon/Toy-v10"),
        ("Toy-v2", "tetrathlon/Toy-v2"),
        ("Arithmetic", "tetrathlon/Arithmetic-v0"),
        ("some.module:Thing", "some.module:Thing"),
    ],
)
def test_an_id_without_a_version_is_the_newest(given: str, full: str) -> None:
    assert registry.known_id(given) == full


def test_an_unknown_version_is_answered_with_a_known_one() -> None:
    with pytest.raises(gym.error.UnregisteredEnv, match="did you mean tetrathlon/Arithmetic-v0"):
        registry.known_id("Arithmetic-v7")


class Plugin:
    value = "their.module:register"

    def __init__(self, name: str, call: Callable[[], Any]) -> None:
        self.name, self.call = name, call

    def load(self) -> Callable[[], Any]:
        return self.call


def test_a_broken_plugin_keeps_no_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []

    def broken() -> None:
        raise ImportError("old simulator")

    good = [Plugin(name, lambda name=name: called.append(name)) for name in ("a", "c")]  # type: ignore[misc]
    monkeypatch.setattr(registry, "entry_points", lambda group: [good[0], Plugin("b", broken), good[1]])
    with pytest.raises(RuntimeError, match=r"failed: b \(their\.module:register\): ImportError: old simulator$"):
        registry.load_plugins()
    assert called == ["a", "c"]
    monkeypatch.setattr(registry, "entry_points", lambda group: good)
    assert registry.load_plugins() == ["a", "c"]
