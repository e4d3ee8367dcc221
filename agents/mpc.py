"""Model-predictive control: a policy that plans in copies of the simulator itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from tetrathlon.agents.policy import STATE_KEY, Acted
from tetrathlon.envs.arguments import whole


@dataclass(slots=True)
class Plan:
    """What is remembered of an episode: the plan of its last step, moved on."""

    step: int
    """Decisions that were made."""
    actions: np.ndarray
    """What is to be done next, [H, A]."""


class MPC:
    """Plans by the cross-entropy method in copies of a robot task, and does the first action of the plan.

    At each decision P sequences of H actions are drawn around the last plan and played in P private copies of the exact
    state; mean and deviation are fitted to the best of them, a few times over (de Boer et al. 2005; as a controller in
    Chua et al. 2018, section 5). A sequence is worth its discounted progress and success, less what its costs weigh,
    less the distance that is left between hand and object in the end, for far from it nothing else tells one sequence
    from another. Noise is held for a few steps: a hand that trembles gets nowhere (Pinneri et al. 2020, section 3.1).

    It knows what no other policy does, the simulator's state, its randomisation included, and it trains on nothing: a
    baseline between the scripted expert and what is learnt. The environment does not change by being planned in. A
    decision depends on the state, the memory and the seed alone, not on other slots.

    Args:
        env: The environment that it will act in: a robot task of this package, or N copies of one.
        population: P, sequences an iteration.
        horizon: H, control steps of a sequence.
        iterations: Fits a decision.
        elites: Best sequences that a fit is made to.
        hold: Control steps for which noise stays the same.
        deviation: Standard deviation of the first sequences of a decision, of actions from -1 to 1.
        gamma: Discount a control step.
        success: What success is worth; the whole progress of an episode is worth 1.
        cost: What one of ``info["cost_terms"]`` is worth, negatively.
        approach: What a metre between hand and object is worth at the end of a sequence, negatively.
        threads: Threads that simulate; 0: one a processor.
        seed: Seed of what is drawn.

    Raises:
        TypeError: The environment is no robot task.
        ValueError: A number is out of its range.
    """

    needs_state = True

    def __init__(
        self,
        env: gym.Env[Any, Any] | VectorEnv[Any, Any, Any],
        *,
        population: int = 24,
        horizon: int = 12,
        iterations: int = 2,
        elites: int = 4,
        hold: int = 4,
        deviation: float = 0.8,
        gamma: float = 0.97,
        success: float = 1.0,
        cost: float = 0.1,
        approach: float = 1.0,
        threads: int = 1,
        seed: int = 0,
    ) -> None:
        from tetrathlon.envs.robots.vector import MujocoVectorEnv

        batch = getattr(env.unwrapped, "batch", env.unwrapped)
        if not isinstance(batch, MujocoVectorEnv):
            raise TypeError(f"MPC plans in copies of a robot task of tetrathlon, of a MujocoVectorEnv; {env} is none")
        self.population = whole("population", population, 2, 1_000_000)
        self.elites = whole("elites", elites, 1, self.population)
        space = env.single_action_space if isinstance(env, VectorEnv) else env.action_space
        assert space.shape is not None
        self._shape = space.shape
        self._chunk = 1 if len(space.shape) == 1 else space.shape[0]
        self.horizon = whole("horizon", horizon, self._chunk, 100_000)
        self.iterations = whole("iterations", iterations, 1, 1_000)
        self.hold = whole("hold", hold, 1, self.horizon)
        self.deviation, self.gamma, self.seed = deviation, gamma, seed
        self.success, self.cost, self.approach = success, cost, approach
        self._copies = MujocoVectorEnv(
            self.population,
            task=type(batch.task),
            robot=batch.robot.name,
            observation="state",
            randomization=batch.randomization.level,
            threads=threads,
            autoreset_mode=AutoresetMode.DISABLED,
        )

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        """See :meth:`tetrathlon.agents.policy.Policy.act`; it is the same whether greedy or not.

        Raises:
            TypeError: An info holds no state.
        """
        if infos is None or any(STATE_KEY not in info for info in infos):
            raise TypeError(f"MPC needs infos with {STATE_KEY!r}, the environment's state; a Rollout puts it there")
        actions, plans = [], []
        for i, info in enumerate(infos):
            plan = None if memory is None else memory[i]
            if plan is None:
                plan = Plan(0, np.zeros((self.horizon, len(self._copies.robot.actions))))
            action = None if forced is None else forced[i]
            if action is None:
                plan = Plan(plan.step, self._improved(plan, info[STATE_KEY]))
                action = plan.actions[: self._chunk].reshape(self._shape)
            actions.append(np.asarray(action, dtype=np.float32))
            # Of its end nothing is known yet: there it holds still.
            rest = np.concatenate([plan.actions[self._chunk :], np.zeros_like(plan.actions[: self._chunk])])
            plans.append(Plan(plan.step + 1, rest))
        return Acted(np.stack(actions), plans, [None] * len(plans))

    def _improved(self, plan: Plan, state: Any) -> np.ndarray:
        """Return the best actions that were found from ``state``, [H, A]."""
        rng = np.random.default_rng([self.seed, plan.step])
        best = mean = plan.actions
        deviation = np.full_like(mean, self.deviation)
        knots = -(-self.horizon // self.hold)
        for _ in range(self.iterations):
            noise = rng.standard_normal((self.population, knots, mean.shape[1]))
            noise = np.repeat(noise, self.hold, axis=1)[:, : self.horizon]
            sequences = np.clip(mean + deviation * noise, -1.0, 1.0)
            sequences[0] = best  # which is given up for a better one alone
            order = np.argsort(-self.worth(sequences, state), kind="stable")
            best, elite = sequences[order[0]], sequences[order[: self.elites]]
            mean, deviation = elite.mean(axis=0), elite.std(axis=0)
        return best

    def worth(self, sequences: np.ndarray, state: Any) -> np.ndarray:
        """Play sequences in copies of a state, and return what they are worth.

        Args:
            sequences: Actions from -1 to 1, [P, H, A].
            state: What ``get_state`` of the environment returned.

        Returns:
            [P].
        """
        copies = self._copies
        world, now, costs = copies.world, copies.now, copies.costs
        every = np.arange(self.population)
        copies.set_states([0], [state])
        copies.load(copies, [0] * self.population)
        worth, live = np.zeros(self.population), np.ones(self.population, dtype=bool)
        progress = copies.task.progress(now)
        for step, actions in enumerate(sequences.swapaxes(0, 1)):
            strayed = copies.robot.command(world, every, copies.randomization.delayed(every, actions))
            live[world.step(every)] = False  # what has diverged is worth no more than it was
            costs.open_step()
            costs.update(live, strayed)
            before, progress = progress, copies.task.progress(now)
            success = copies.task.success(now)
            cost = np.sum(list(costs.terms().values()), axis=0)
            gain = progress - before + self.success * success - self.cost * cost
            worth += self.gamma**step * np.where(live, gain, 0.0)
            live &= ~success
        far = np.linalg.norm(now.hand - now.thing, axis=-1)
        return worth - self.approach * np.where(live, far, 0.0)
