"""Arguments of constructors: a flag is no text, and what is refused is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tetrathlon.envs.arguments import flag, share
from tetrathlon.envs.registry import make
from tetrathlon.usage import arguments


@pytest.mark.parametrize("value", ["no", "False", "", 0, 1, None])
def test_what_is_no_bool_is_no_flag(value: Any) -> None:
    with pytest.raises(ValueError, match="brief must be True or False, got"):
        flag("brief", value)
    assert flag("x", np.True_) is True and flag("x", False) is False


@pytest.mark.parametrize(
    ("env_id", "name"),
    [("PushToZone-v0", "end_on_violation"), ("PushToZone-v0", "wrist_image"), ("Lookup-v0", "brief")],
)
def test_environments_take_no_text_for_a_flag(env_id: str, name: str) -> None:
    more = {"observation": "state"} if env_id.startswith("Push") else {}
    with pytest.raises(ValueError, match=f"{name} must be True or False, got 'no'"):
        make(env_id, **{name: "no"}, **more)


def test_a_counterfactual_is_asked_for_by_a_flag() -> None:
    env = make("PushToZone-v0", observation="state")
    with pytest.raises(ValueError, match=r"options\['counterfactual'\] must be True or False, got 'no'"):
        env.reset(seed=0, options={"counterfactual": "no"})


def test_the_command_line_reads_what_python_writes() -> None:
    words = ["a=True", "b=False", "c=None", "d=true", "e=[1]", "f=text"]
    assert arguments("env", words) == {"a": True, "b": False, "c": None, "d": True, "e": [1], "f": "text"}


@pytest.mark.parametrize("value", [-0.1, 1, 1.5, True, "0.5", float("nan")])
def test_a_share_is_below_one(value: Any) -> None:
    with pytest.raises(ValueError, match="w must be a number from 0 to less than 1"):
        share("w", value)
    assert share("w", 1, last=True) == 1.0 and share("w", 0) == 0.0
