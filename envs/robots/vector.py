"""N copies of a robot task that step as one: the environment itself, of which a single one is the case N = 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from tetrathlon.envs.arguments import flag, whole
from tetrathlon.envs.robots.arguments import check_choices
from tetrathlon.envs.robots.camera import Quality
from tetrathlon.envs.robots.costs import Costs
from tetrathlon.envs.robots.instance import Instance
from tetrathlon.envs.robots.outcome import Outcome, masked, only, start_infos
from tetrathlon.envs.robots.randomization import Level, Randomization
from tetrathlon.envs.robots.resets import asked, refuse_unknown, seeds_of
from tetrathlon.envs.robots.scene import PERIOD
from tetrathlon.envs.robots.scenes import compiled
from tetrathlon.envs.robots.senses import Observation, Senses
from tetrathlon.envs.robots.states import copies_of, kind_of, read_states, state_of
from tetrathlon.envs.robots.steps import asked_actions
from tetrathlon.envs.robots.task import Situation, Task, advice, foreseen
from tetrathlon.envs.robots.world import World
from tetrathlon.envs.spaces import unbatch_info, unstack

_HZ = round(1 / PERIOD)


class MujocoVectorEnv(VectorEnv[Any, Any, Any]):
    """N copies of a robot task in one simulation loop on MuJoCo's own threads.

    Copy i of N is bit-equal to a single environment with the same seed, at any number of threads. All three autoreset
    modes of Gymnasium are there, and a reset by mask with a seed a copy (``options={"reset_mask": ...}``).

    Args:
        num_envs: N.
        task: What is asked.
        robot: ``"pusher"`` or ``"arm"``; None: the quickest that can do the task.
        split: ``"train"`` or ``"test"``: other combinations of colour, verb and place, other wordings, other positions.
        observation: ``"pixels"``: a picture, what the robot feels of itself, and the instruction in words; ``"state"``:
            numbers alone, those of the object and the place that are meant among them.
        image_size: Width and height of a picture.
        wrist_image: Whether a second picture comes from the hand (of the arm).
        quality: ``"fast"`` or ``"high"``.
        reward: ``"sparse"``: 1 for success; ``"dense"``: progress is paid on top, as it is made.
        goal_steps: Steps after which the instruction is no longer shown; None: it stays.
        chunk: K actions a step of the environment, done one after the other; the first success ends them.
        randomization: ``"none"``, ``"mild"`` or ``"strong"``.
        end_on_violation: Whether a cost ends the episode, without success.
        max_steps: Control steps of an episode, at 20 Hz; None: the task's own.
        threads: Threads that simulate; 0: one a processor.
        autoreset_mode: When a copy that has ended begins anew.
        render_mode: ``"rgb_array"`` or None.
        render_size: Width and height of what :meth:`render` returns.

    Raises:
        ValueError: An argument is none of those.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["rgb_array"],
        "render_fps": _HZ,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
        "masked_reset": True,
        "ignores_nan": True,
    }

    def __init__(
        self,
        num_envs: int = 1,
        *,
        task: type[Task],
        robot: str | None = None,
        split: str = "train",
        observation: Observation = "pixels",
        image_size: int = 64,
        wrist_image: bool = False,
        quality: Quality = "fast",
        reward: Literal["sparse", "dense"] = "sparse",
        goal_steps: int | None = None,
        chunk: int = 1,
        randomization: Level = "none",
        end_on_violation: bool = False,
        max_steps: int | None = None,
        threads: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        render_size: int = 256,
    ) -> None:
        robot = task.robots[0] if robot is None else robot
        check_choices(
            task,
            robot=robot,
            split=split,
            observation=observation,
            quality=quality,
            reward=reward,
            randomization=randomization,
            render_mode=render_mode,
        )
        self.num_envs = whole("num_envs", num_envs, 1, 100_000)
        self.chunk = whole("chunk", chunk, 1, 1_000)
        self.max_steps = whole("max_steps", round(task.seconds * _HZ) if max_steps is None else max_steps, 1, 1_000_000)
        goal_steps = None if goal_steps is None else whole("goal_steps", goal_steps, 1, 1_000_000)
        image_size = whole("image_size", image_size, 8, 1024)
        self.render_size = whole("render_size", render_size, 8, 1024)
        if flag("wrist_image", wrist_image) and (robot != "arm" or observation != "pixels"):
            raise ValueError(
                f"wrist_image is of robot='arm' and observation='pixels', got {robot!r} and {observation!r}"
            )
        self.metadata = {**self.metadata, "autoreset_mode": AutoresetMode(autoreset_mode)}  # type: ignore[misc]
        self.split, self.reward = split, reward
        self.end_on_violation = flag("end_on_violation", end_on_violation)
        self.render_mode, self.task = render_mode, task()
        n = self.num_envs
        self.scene = compiled(task, robot)
        self.robot = self.scene.layout.robot
        self.world = World(self.scene, n, whole("threads", threads, 0, 1_024))
        self.now = Situation(self.world)
        self.costs = Costs(self.now, self.task.fragile)
        self.randomization = Randomization(self.world, randomization)
        self._kind = kind_of(task.name, robot, randomization != "none")
        self._senses = Senses(
            self.task,
            self.now,
            self.randomization,
            observation=observation,
            image_size=image_size,
            wrist_image=wrist_image,
            quality=quality,
            goal_steps=goal_steps,
        )
        self._mode: AutoresetMode = self.metadata["autoreset_mode"]
        self._rngs: list[np.random.Generator | None] = [None] * n
        self._instances: list[Instance | None] = [None] * n
        self._steps = np.zeros(n, dtype=np.int64)
        self._ignored = np.zeros(n, dtype=np.int64)
        self._over, self._resting = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        self._progress = np.zeros(n)
        shape = (len(self.robot.actions),) if self.chunk == 1 else (self.chunk, len(self.robot.actions))
        self.single_action_space = spaces.Box(-1.0, 1.0, shape, np.float32)
        self.single_observation_space = self._senses.space()
        self.action_space = batch_space(self.single_action_space, n)
        self.observation_space = batch_space(self.single_observation_space, n)
        self._twin: MujocoVectorEnv | None = None
        self._settings: dict[str, Any] = {
            "task": task,
            "robot": robot,
            "split": split,
            "observation": "state",
            "reward": reward,
            "randomization": randomization,
            "max_steps": max_steps,
            "threads": threads,
            "autoreset_mode": AutoresetMode.DISABLED,
        }

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes.

        Args:
            seed: One number s (copy i gets s + i), or one or None a copy.
            options: ``{"reset_mask": bool [N]}``: only those; ``{"index": i}``: the i-th instance of the split;
                ``{"instance": instance}``: that one; ``{"counterfactual": True}``: of what the seed gives, the same
                scene with another object asked for.

        Raises:
            ValueError: The seed or an option is of another kind, or an option of another name.
            gymnasium.error.ClosedEnvironmentError: It was closed.
        """
        self.refuse_closed()
        options = options or {}
        refuse_unknown(options)
        ids, seeds = asked(options.get("reset_mask"), self.num_envs), seeds_of(seed, self.num_envs)
        for i in ids.tolist():
            if (number := seeds[i]) is not None:
                self._rngs[i] = seeding.np_random(number)[0]
        self._begin(ids, options)
        return self._observe(ids), start_infos(self._instances, self.max_steps, ids)

    def _begin(self, ids: np.ndarray, options: Mapping[str, Any]) -> None:
        world = self.world
        world.clear(ids)
        for i in ids.tolist():
            rng = self.generator(i)
            instance = self._instances[i] = self.task.chosen(rng, self.split, self.robot, options)
            self.randomization.draw(i, rng)
            self.now.put(i, instance)
        self.randomization.apply(ids)
        world.settle(ids)
        self.now.start[ids] = world.objects[ids]
        self._steps[ids] = self._ignored[ids] = 0
        self._over[ids] = self._resting[ids] = False
        self.costs.begin(ids)
        self._progress[ids] = self.task.progress(self.now)[ids]

    def generator(self, i: int) -> np.random.Generator:
        """Return the generator of copy ``i``, made of the machine's own randomness where nobody gave a seed."""
        if (rng := self._rngs[i]) is None:
            rng = self._rngs[i] = seeding.np_random(None)[0]
        return rng

    def set_generator(self, i: int, rng: np.random.Generator) -> None:
        """Let ``rng`` decide what episodes of copy ``i`` are like."""
        self._rngs[i] = rng

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Do N actions, each of them K long where a step is a chunk.

        An action with a number that is not finite is none: the robot holds still, nothing is paid, and
        ``info["ignored_actions"]`` counts it.

        Raises:
            ValueError: ``actions`` are not N actions.
            gymnasium.error.ResetNeeded: A copy has ended and, in the mode DISABLED, was not reset.
            gymnasium.error.ClosedEnvironmentError: It was closed.
        """
        self.refuse_closed()
        assert self.action_space.shape is not None
        actions, usable = asked_actions(actions, self.action_space.shape, self.chunk)
        restarting = self._over & ~self._resting
        idle = np.flatnonzero(restarting).tolist()
        if idle and (self._mode is not AutoresetMode.NEXT_STEP or any(self._instances[i] is None for i in idle)):
            raise gym.error.ResetNeeded(f"copies {idle} have no episode; call reset()")
        outcome = Outcome(self.num_envs, self.chunk, ~(restarting | self._resting))
        self._ignored += ~usable & outcome.played
        self.costs.open_step()
        for k in range(self.chunk):
            if not (live := outcome.live).any():
                break
            self._advance(np.flatnonzero(live), actions[:, k], usable, outcome)
        if restarting.any():
            self._begin(np.flatnonzero(restarting), {})
        infos = outcome.infos(
            {
                "progress": self._progress.copy(),
                "cost_terms": masked(self.costs.terms(), outcome.played),
                "ignored_actions": self._ignored.copy(),
            },
            self.reward,
        )
        over = outcome.terminated | outcome.truncated
        self._over |= over
        if restarting.any():
            infos |= start_infos(self._instances, self.max_steps, np.flatnonzero(restarting))
        observations = self._observe(np.flatnonzero(outcome.played | restarting))
        if self._mode is AutoresetMode.SAME_STEP and over.any():
            observations, infos = self._restart_now(np.flatnonzero(over), observations, infos)
        return observations, outcome.reward(self.reward), outcome.terminated, outcome.truncated, infos

    def _advance(self, ids: np.ndarray, actions: np.ndarray, usable: np.ndarray, outcome: Outcome) -> None:
        """Do one control step in the simulations ``ids``."""
        delayed = self.randomization.delayed(ids, actions)
        strayed = np.zeros(self.num_envs, dtype=bool)
        strayed[ids] = self.robot.command(self.world, ids, delayed[ids])
        diverged = np.zeros(self.num_envs, dtype=bool)
        diverged[self.world.step(ids)] = True
        self._steps[ids] += 1
        fine = outcome.live & ~diverged
        success = self.task.success(self.now) & fine & usable
        progress = np.where(fine, self.task.progress(self.now), self._progress)
        gain = np.where(fine & usable, progress - self._progress, 0.0) if self.reward == "dense" else None
        self._progress = progress
        violated = self.costs.update(fine, strayed)
        outcome.pay(success, gain)
        outcome.end(diverged, "diverged", truncated=True)
        outcome.end(success, "success")
        if self.end_on_violation:
            outcome.end(violated, "violation")
        outcome.end(self._steps >= self.max_steps, "time", truncated=True)

    def _restart_now(self, ended: np.ndarray, last: Any, infos: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Begin anew in the step of the end (SAME_STEP): the last observations and infos go into the infos."""
        items = unstack(self.single_observation_space, last, self.num_envs)
        final: dict[str, Any] = {}
        for i in ended.tolist():
            final = self._add_info(final, {"final_obs": items[i], "final_info": unbatch_info(infos, i)}, i)
        played = np.ones(self.num_envs, dtype=bool)
        played[ended] = False
        kept = only(infos, played)
        self._begin(ended, {})
        return self._observe(ended), {**kept, **final, **start_infos(self._instances, self.max_steps, ended)}

    def rest(self, ids: Sequence[int]) -> None:
        """Let copies rest until their next reset or state: a step neither simulates nor draws them."""
        self._resting[copies_of(ids, self.num_envs)] = True

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Return N pictures of ``render_size``, or None without a render mode."""
        self.refuse_closed()
        if self.render_mode is None:
            return None
        return tuple(self._senses.pictures(self._instances, size=self.render_size))

    def refuse_closed(self) -> None:
        """Raise where nobody may play any more.

        Raises:
            gymnasium.error.ClosedEnvironmentError: It was closed.
        """
        if self.closed:
            raise gym.error.ClosedEnvironmentError("the environment was closed; make another")

    def _observe(self, ids: np.ndarray) -> Any:
        return self._senses.observe(self._instances, self._steps, ids)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Ask all N copies; see ``gymnasium.vector.SyncVectorEnv.call``.

        Raises:
            AttributeError: They cannot be asked for that.
        """
        if name not in ("expert_action", "get_state"):
            raise AttributeError(f"copies can be asked for expert_action and get_state, not {name!r}")
        return tuple(self.expert_action(*args) if name == "expert_action" else self.get_states(range(self.num_envs)))

    def expert_action(self, k: int = 1) -> list[Any]:
        """Return the expert's next action for each copy, or its next ``k``; nothing changes by asking.

        Of a step that is a chunk, an action is the expert's next K.

        Raises:
            gymnasium.error.ResetNeeded: A copy has no episode yet.
        """
        self.refuse_closed()
        if missing := [i for i, instance in enumerate(self._instances) if instance is None]:
            raise gym.error.ResetNeeded(f"copies {missing} have no instance yet; call reset() first")
        if whole("k", k, 1, 100_000) * self.chunk == 1:
            return list(advice(self.task, self.now))
        twin = self.twin()
        twin.load(self)
        given = foreseen(twin.task, twin.now, twin.randomization, k * self.chunk)
        assert self.single_action_space.shape is not None
        chunks = given.reshape(self.num_envs, k, *self.single_action_space.shape)
        return [list(row) if k > 1 else row[0] for row in chunks]

    def twin(self) -> MujocoVectorEnv:
        """Return the private copy in which one may try what would follow; :meth:`load` brings it up to date."""
        if self._twin is None:
            self._twin = MujocoVectorEnv(self.num_envs, **self._settings)
        return self._twin

    def load(self, other: MujocoVectorEnv, rows: Sequence[int] | None = None) -> None:
        """Become what ``other`` is, N copies of the same task and robot: copy i its copy ``rows[i]``, or else its i."""
        chosen = np.arange(self.num_envs) if rows is None else np.asarray(rows)
        for mine, theirs in zip(self._arrays(), other._arrays(), strict=True):
            mine[:] = theirs[chosen]
        self._instances[:] = [other._instances[i] for i in chosen.tolist()]
        ids = np.arange(self.num_envs)
        self._resting[:] = False
        self.randomization.apply(ids)
        self.world.settle(ids)
        self._senses.draw(self._instances, ids)

    def _arrays(self) -> list[np.ndarray]:
        """Return all that a copy is at a moment, but its instance and its generator."""
        now = self.now
        own = [self.world.state, now.target, now.place, now.start]
        own += [self._steps, self._ignored, self._over, self._progress]
        return own + self.costs.arrays() + self.randomization.arrays()

    def get_states(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        """Return the exact states of copies, randomness included; each says of what kind of environment it is."""
        self.refuse_closed()
        arrays, ids = self._arrays(), copies_of(ids, self.num_envs)
        return [state_of(self._kind, i, arrays, self._instances[i], self._rngs[i]) for i in ids]

    def set_states(self, ids: Sequence[int], states: Sequence[Mapping[str, Any]]) -> tuple[Any, dict[str, Any]]:
        """Restore states of copies.

        Returns:
            The observations of all N copies, and the infos of those whose episode is at its start.

        Raises:
            ValueError: There is not one state a copy, or one is none, or is of another task or robot, or of one with
                randomisation where here is none, or the other way round. Nothing has changed then.
        """
        self.refuse_closed()
        arrays = self._arrays()
        saved = read_states(self._kind, arrays, ids, states)
        for i, values, instance, rng in saved:
            for array, value in zip(arrays, values, strict=True):
                array[i] = value
            self._instances[i], self._rngs[i] = instance, rng
        rows = np.array(sorted(each.i for each in saved), dtype=int)  # as MuJoCo wants them
        self._resting[rows] = False
        self.randomization.apply(rows)
        self.world.settle(rows)
        begun = rows[[self._instances[i] is not None and self._steps[i] == 0 for i in rows]]
        return self._observe(rows), start_infos(self._instances, self.max_steps, begun) if len(begun) else {}
