"""Arguments of constructors: a flag is no text, and what is refused is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tetrathlon.envs.arguments import flag, names_of, share, some_of
from tetrathlon.envs.registry import listings, make
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


@pytest.mark.parametrize("value", [5, [[1]], [None], {"a": 1}, b"a", "a", [], True, ["a", "c"], {1}])
def test_what_is_no_list_of_names_is_told_all_of_them(value: Any) -> None:
    with pytest.raises(ValueError, match="kinds must be a list of some of a, b, got "):
        some_of("kinds", value, ("a", "b"))


def test_names_keep_their_order_and_a_set_has_none() -> None:
    assert some_of("kinds", ["b", "a"], ("a", "b")) == ("b", "a") and some_of("kinds", None, ("a", "b")) == ("a", "b")
    assert some_of("kinds", {"b", "a"}, ("a", "b")) == ("a", "b")


@pytest.mark.parametrize(
    ("env_id", "name"),
    [*((env_id, "kinds") for env_id in ("Files", "ServiceDesk", "Python", "Format")), ("RepoRepair", "families")],
)
@pytest.mark.parametrize("value", [5, [[1]], "x", ["x"]])
def test_environments_name_the_kinds_that_there_are(env_id: str, name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"{name} must be a list of some of \w+, \w+, "):
        make(env_id, **{name: value})


@pytest.mark.parametrize("listing", [*listings("text"), *listings("tools")], ids=lambda listing: listing.id)
def test_an_argument_that_is_none_is_told_by_the_environment(listing: Any) -> None:
    with pytest.raises(TypeError, match=r"\w+ has no argument 'splitt'; did you mean split\? \(it takes ") as told:
        make(listing.id, splitt="test")
    assert "__init__" not in str(told.value)


def test_the_names_of_a_class_are_those_of_its_bases_too() -> None:
    class First:
        def __init__(self, a: int, *, b: int = 0) -> None: ...

    class Second(First):
        def __init__(self, *, c: int = 0, **others: Any) -> None: ...

    class Third(Second):
        def __init__(self, d: int) -> None: ...

    assert names_of(Second) == {"a", "b", "c"} and names_of(Third) == {"d"}
