"""One episode in the terminal: a person is the agent, or watches one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from PIL import Image
from rich.console import Console

from tetrathlon.agents.policy import Acted, Policy
from tetrathlon.agents.rollout import Rollout, Start
from tetrathlon.benchmarks.video import Film, picture_in
from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.slots import Slots
from tetrathlon.envs.spaces import stack
from tetrathlon.terminal import heading, say, show_end, show_given, show_payment, show_value, step_action
from tetrathlon.typed_calls import FORMS, CallError, OpenQuote, manual, typed_call

_SMALLEST_FRAME = 256
"""Pixels of a frame's longer side to which a small observed picture grows."""


class Quit(Exception):
    """The person at the terminal has gone."""


class Person:
    """A policy that asks whoever sits at the terminal.

    Args:
        action_space: The space of a single action. A text ends with an empty line or with ctrl-D, and a line of it
            that begins with ``/`` is a call where there are tools, with those after it while a quote is open; any other
            action is one line of JSON.
        console: Where to ask.
    """

    def __init__(self, action_space: spaces.Space[Any], console: Console) -> None:
        self.action_space = action_space
        self.console = console
        self._calls = False

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        """See :meth:`tetrathlon.agents.policy.Policy.act`; there is one person and one slot.

        Raises:
            Quit: The input ended before there was an action.
        """
        is_text = isinstance(self.action_space, spaces.Text)
        tools = (infos or [{}])[0].get("tools") if is_text else None
        if tools:
            self._calls = True
            say(self.console, "your tools, one call a line:", "dim")
            for line in (*manual(tools), *FORMS):
                say(self.console, f"  {line}", "dim")
        action = self._text() if is_text else self._other()
        return Acted(stack(self.action_space, [action]), [()], [None])

    def _text(self) -> str:
        what = "calls or your answer" if self._calls else "your answer"
        say(self.console, f"{what} (an empty line or ctrl-D sends it):", "dim")
        lines: list[str] = []
        while True:
            try:
                entered = input()
            except EOFError:
                if not lines:
                    raise Quit from None
                break
            if self._calls and entered.startswith("/"):
                try:
                    entered = self._call(entered)
                except CallError as error:
                    say(self.console, f"{error}; once more:", "yellow")
                    continue
            if entered:
                lines.append(entered)
            elif lines:
                break
        return "\n".join(lines)

    def _call(self, entered: str) -> str:
        """Return the call that a line stands for, with those after it while a quote is open.

        Raises:
            CallError: It is none.
        """
        while True:
            try:
                return typed_call(entered)
            except OpenQuote:
                say(self.console, "the quote is open; its next line (ctrl-D: the call anew):", "dim")
                try:
                    entered = f"{entered}\n{input()}"
                except EOFError:
                    raise CallError("no call: a quote is open") from None

    def _other(self) -> Any:
        say(self.console, f"your action, as JSON in {self.action_space}:", "dim")
        while True:
            try:
                entered = input()
            except EOFError:
                raise Quit from None
            try:
                return as_action(self.action_space, entered)
            except ValueError as error:
                say(self.console, f"{error}; once more:", "yellow")


def as_action(space: spaces.Space[Any], entered: str) -> Any:
    """Return the action that a line of JSON stands for.

    Raises:
        ValueError: It is no JSON, or not in the space.
    """
    try:
        value = json.loads(entered)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    action = value
    if isinstance(space, spaces.Discrete) and isinstance(value, int) and not isinstance(value, bool):
        action = space.dtype.type(value)
    elif isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        try:
            action = np.asarray(value, dtype=space.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"not numbers of {space}: {error}") from error
    if not space.contains(action):
        raise ValueError(f"{entered.strip()!r:.80} is not in {space}")
    return action


class Watched(gym.Wrapper[Any, Any, Any, Any]):
    """Shows each observation, action and payment as it happens, and films it.

    Args:
        env: The environment.
        console: Where to show.
        actions: Show the actions too.
        whole: Show all of a text, however long.
        film: Takes what ``render`` returns in mode ``rgb_array``, else the picture that is observed; None: no film.
        picture: File in which the newest observed picture is; None: none.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        console: Console,
        *,
        actions: bool,
        whole: bool,
        film: Film | None = None,
        picture: Path | None = None,
    ) -> None:
        super().__init__(env)
        self._console, self._actions, self._whole, self._film = console, actions, whole, film
        self._picture = picture
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode and show its first observation."""
        observation, info = super().reset(seed=seed, options=options)
        self._steps = 0
        show_given(self._console, info)
        show_value(self._console, observation, whole=self._whole)
        self._save(observation, info)
        self._shoot(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and show what happened."""
        observation, reward, terminated, truncated, info = super().step(action)
        self._steps += 1
        step = Step(None, action, float(reward), bool(terminated), bool(truncated), info)
        if self._actions:
            say(self._console, "> " + step_action(step), "bold")
        show_payment(self._console, step)
        if not (terminated or truncated):
            heading(self._console, f"step {self._steps}")
            show_value(self._console, observation, whole=self._whole)
            self._save(observation, info)
        self._shoot(observation)
        return observation, reward, terminated, truncated, info

    def _save(self, observation: Any, info: dict[str, Any]) -> None:
        """Save the picture that is observed, if there is one, and say where."""
        if self._picture is None or not info.get("has_image", True) or (shown := picture_in(observation)) is None:
            return
        grown = max(1, _SMALLEST_FRAME // max(shown.shape[:2]))
        self._picture.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(shown.repeat(grown, axis=0).repeat(grown, axis=1)).save(self._picture)
        say(self._console, f"the picture is in {self._picture}", "dim")

    def _shoot(self, observation: Any) -> None:
        if self._film is None:
            return
        if self.env.render_mode == "rgb_array":
            frame: Any = self.env.render()
        elif (frame := picture_in(observation)) is not None:
            grown = max(1, _SMALLEST_FRAME // max(frame.shape[:2]))
            frame = frame.repeat(grown, axis=0).repeat(grown, axis=1)
        self._film.add(np.asarray(frame))


def play(
    make: Callable[[], gym.Env[Any, Any]],
    policy: Policy | None,
    *,
    console: Console,
    start: Start,
    greedy: bool = False,
    film: Film | None = None,
    picture: Path | None = None,
) -> Episode | str:
    """Play one episode and show it.

    Args:
        make: Makes the environment.
        policy: What acts; None: a person at the terminal.
        console: Where to show.
        start: Where the episode begins.
        greedy: Ask the policy for its most likely actions.
        film: Where to add the frames; None: there is no film.
        picture: Where to save the newest observed picture; None: nowhere.

    Returns:
        The episode, or the message of an environment that crashed.

    Raises:
        Quit: The person has gone.
    """
    human = policy is None
    slots = Slots(lambda: Watched(make(), console, actions=not human, whole=human, film=film, picture=picture), 1)
    try:
        actor = Person(slots.action_space, console) if policy is None else policy
        rollout = Rollout(actor, slots, [start], greedy=greedy)
        episodes = rollout.episodes()
    finally:
        slots.close()
    if not episodes:
        return rollout.crashes[0]
    show_end(console, episodes[0])
    return episodes[0]
