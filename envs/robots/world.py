"""N simulations of one scene, stepped together on MuJoCo's own threads."""

from __future__ import annotations

import mujoco
import numpy as np
from mujoco.batch import Batch, SimulationError

from tetrathlon.envs.robots.scene import Scene
from tetrathlon.envs.robots.steering import length

_STAGE = mujoco.mjtStage.mjSTAGE_VEL.value


class World:
    """N simulations of a scene.

    Attributes:
        scene: The scene.
        n: N.
        state: Rows that are all of a simulation but its model, float64 [N, S]; a row may be copied to another.
        qpos: Positions, a view of ``state``; like the next four.
        qvel: Velocities.
        ctrl: What actuators are told.
        mocap_pos: Positions of places.
        mocap_quat: Their turns.
        sensors: Contact forces as of the last step, [N, ...].

    Args:
        scene: The scene.
        n: N.
        threads: Threads that step it; 0: one a processor.
    """

    def __init__(self, scene: Scene, n: int, threads: int = 1) -> None:
        self.scene, self.n = scene, n
        self.batch = Batch(scene.model, n, nthread=threads)
        bind = self.batch.bind
        self.state = self.batch.state
        self.qpos, self.qvel, self.ctrl = bind("qpos"), bind("qvel"), bind("ctrl")
        self.mocap_pos, self.mocap_quat = bind("mocap_pos"), bind("mocap_quat")
        self.sensors = bind("sensordata")
        self._xpos, self._xquat = bind("xpos"), bind("xquat")
        self._site_xpos = bind("site_xpos")

    def step(self, ids: np.ndarray) -> np.ndarray:
        """Advance simulations by one step of the environment.

        Args:
            ids: Which, [n].

        Returns:
            Those of ``ids`` that diverged: MuJoCo resets such a simulation by itself, and says so only in its warnings.
        """
        before = self.batch.warning[ids, :, 1].copy()
        raised: np.ndarray = np.empty(0, dtype=int)
        try:
            self.batch.step(ids=ids, nstep=self.scene.substeps, stage=_STAGE)
        except SimulationError as error:
            raised = np.asarray(error.ids)
        warned = (self.batch.warning[ids, :, 1][:, _DIVERGED] > before[:, _DIVERGED]).any(axis=1)
        strange = ~np.isfinite(self.state[ids]).all(axis=1)
        return np.union1d(ids[warned | strange], raised)

    def settle(self, ids: np.ndarray) -> None:
        """Bring what is derived from the state up to date."""
        self.batch.forward(ids=ids, stage=_STAGE)

    def clear(self, ids: np.ndarray) -> None:
        """Put simulations back to the model's own start; :meth:`settle` has to follow."""
        self.batch.reset(ids=ids, stage=mujoco.mjtStage.mjSTAGE_NONE.value)

    @property
    def objects(self) -> np.ndarray:
        """Where the objects are, [N, K, 3]."""
        return self._xpos[:, self.scene.objects]

    @property
    def object_quats(self) -> np.ndarray:
        """How they are turned, [N, K, 4]."""
        return self._xquat[:, self.scene.objects]

    @property
    def places(self) -> np.ndarray:
        """Where the places are, [N, Z, 3]."""
        return self.mocap_pos[:, self.scene.place_mocap]

    def site(self, number: int) -> np.ndarray:
        """Return where a site is, [N, 3]."""
        return self._site_xpos[:, number]

    def body_quat(self, number: int) -> np.ndarray:
        """Return how a body is turned, [N, 4]."""
        return self._xquat[:, number]

    @property
    def touch(self) -> np.ndarray:
        """Forces between the robot and each object, and the table last, in newtons, [N, K + 1]."""
        return length(self.sensors[:, self.scene.touch])


_DIVERGED = [
    mujoco.mjtWarning.mjWARN_BADQPOS.value,
    mujoco.mjtWarning.mjWARN_BADQVEL.value,
    mujoco.mjtWarning.mjWARN_BADQACC.value,
    mujoco.mjtWarning.mjWARN_BADCTRL.value,
]
