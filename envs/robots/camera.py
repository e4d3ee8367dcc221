"""Pictures of a world: one thread of a process holds all of OpenGL, and draws when it is asked."""

from __future__ import annotations

import ctypes.util
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar

import gymnasium as gym
import mujoco
import numpy as np

from tetrathlon.envs.robots.scene import Scene
from tetrathlon.envs.robots.world import World

Quality = Literal["fast", "high"]
_BACKENDS = {"egl": "mujoco.egl", "osmesa": "mujoco.osmesa", "glfw": "mujoco.glfw"}
_OFF = ("disable", "disabled", "off", "false", "0")
_INSTALL = "on Debian: apt-get install libegl1 libegl-mesa0 libgl1-mesa-dri, or libosmesa6"
T = TypeVar("T")


def backend() -> str:
    """Return the name of the OpenGL that is used: ``MUJOCO_GL``, or what this machine has.

    Raises:
        gymnasium.error.DependencyNotInstalled: There is none; the message says what to do.
    """
    asked = os.environ.get("MUJOCO_GL", "").lower().strip()
    if asked in _BACKENDS:
        return asked
    if asked in _OFF:
        raise _no_picture(f"MUJOCO_GL={asked!r} switches pictures off")
    if asked not in ("", "enable", "enabled", "on", "true", "1", "glx"):
        raise _no_picture(f"MUJOCO_GL={asked!r} is unknown")
    if sys.platform != "linux" or os.environ.get("DISPLAY"):
        return "glfw"
    return "egl" if ctypes.util.find_library("EGL") or not ctypes.util.find_library("OSMesa") else "osmesa"


def _no_picture(why: str) -> gym.error.DependencyNotInstalled:
    return gym.error.DependencyNotInstalled(
        f"no picture can be drawn: {why}. Set the environment variable MUJOCO_GL to one of {', '.join(_BACKENDS)} "
        f"and install what it needs ({_INSTALL}); environments without pictures (observation='state') need none of it"
    )


class _Painter:
    """Draws scenes of one model; lives in the thread that holds OpenGL."""

    def __init__(self, model: mujoco.MjModel, size: int, quality: Quality) -> None:
        name = backend()
        try:
            context_class = importlib.import_module(_BACKENDS[name]).GLContext
            self._gl = context_class(size, size)
            self._gl.make_current()
        except Exception as error:  # whatever a missing or broken driver makes PyOpenGL raise
            raise _no_picture(f"OpenGL by {name} failed ({type(error).__name__}: {error})") from error
        # How often a pixel is drawn and how fine shadows are is fixed with the context.
        samples, shadows = model.vis.quality.offsamples, model.vis.quality.shadowsize
        model.vis.quality.offsamples, model.vis.quality.shadowsize = (0, 0) if quality == "fast" else (4, 2048)
        self._context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
        model.vis.quality.offsamples, model.vis.quality.shadowsize = samples, shadows
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._context)
        self._scene = mujoco.MjvScene(model, maxgeom=200)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SKYBOX] = 0
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = quality == "high"
        self._option = mujoco.MjvOption()
        self._option.geomgroup[3:] = 0
        self._option.sitegroup[:] = 0
        self._rect = mujoco.MjrRect(0, 0, size, size)
        self._camera = mujoco.MjvCamera()
        self._camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._data = mujoco.MjData(model)
        self._model = model
        self._size = size

    def paint(
        self, world: World, ids: Sequence[int], cameras: Sequence[int], looks: Sequence[Mapping[str, np.ndarray]]
    ) -> np.ndarray:
        """Return pictures, uint8 [C, n, S, S, 3]."""
        self._gl.make_current()
        pictures = np.empty((len(cameras), len(ids), self._size, self._size, 3), dtype=np.uint8)
        model, data = self._model, self._data
        plain = {name: getattr(model, name).copy() for name in {name for look in looks for name in look}}
        for row, (i, look) in enumerate(zip(ids, looks, strict=True)):
            for name, value in look.items():
                getattr(model, name)[:] = value
            world.batch.get_data(i, data)
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)  # lights and cameras that follow something need it
            mujoco.mj_camlight(model, data)
            for column, camera in enumerate(cameras):
                self._camera.fixedcamid = camera
                mujoco.mjv_updateScene(
                    model, data, self._option, None, self._camera, mujoco.mjtCatBit.mjCAT_ALL.value, self._scene
                )
                mujoco.mjr_render(self._rect, self._scene, self._context)
                picture = np.empty((self._size, self._size, 3), dtype=np.uint8)
                mujoco.mjr_readPixels(picture, None, self._rect, self._context)
                pictures[column, row] = picture[::-1]  # OpenGL begins at the lower edge
        for name, value in plain.items():
            getattr(model, name)[:] = value
        return pictures


class _Studio:
    """The one thread of a process that draws, and its painters."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="camera")
        self._painters: dict[tuple[int, int, str], tuple[mujoco.MjModel, _Painter]] = {}

    def run(self, work: Callable[[], T]) -> T:
        return self._pool.submit(work).result()

    def painter(self, model: mujoco.MjModel, size: int, quality: Quality) -> _Painter:
        key = (id(model), size, quality)  # the model is kept, so that its id is not given to another
        if key not in self._painters:
            self._painters[key] = (model, _Painter(model, size, quality))
        return self._painters[key][1]


_studios: dict[int, _Studio] = {}


def _studio() -> _Studio:
    """Return the studio of this process: a context of OpenGL does not survive a fork."""
    return _studios.setdefault(os.getpid(), _Studio())


class Camera:
    """Draws what cameras of a scene see.

    It can be copied and pickled: OpenGL begins with the first picture, in the process that asks for it.

    Args:
        scene: The scene.
        size: Width and height of a picture, in pixels.
        quality: ``"fast"``: no shadows and one sample a pixel; ``"high"``: both, at a twentieth of the speed.
    """

    def __init__(self, scene: Scene, size: int, quality: Quality) -> None:
        self.scene, self.size, self.quality = scene, size, quality

    def pictures(
        self, world: World, ids: Sequence[int], names: Sequence[str], looks: Sequence[Mapping[str, np.ndarray]]
    ) -> np.ndarray:
        """Return what cameras see, uint8 [C, n, S, S, 3]: the first row is the upper edge.

        Args:
            world: The world.
            ids: Which simulations, [n].
            names: Names of cameras, [C].
            looks: For each of ``ids`` the fields of the model that look otherwise in it: colours, lamps, cameras.

        Raises:
            gymnasium.error.DependencyNotInstalled: This machine has no OpenGL.
        """
        numbers = [self.scene.model.camera(name).id for name in names]
        studio = _studio()

        def draw() -> np.ndarray:
            painter = studio.painter(self.scene.model, self.size, self.quality)
            return painter.paint(world, ids, numbers, looks)

        return studio.run(draw)
