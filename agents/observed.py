"""What a policy that writes is shown: a text, and perhaps a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from tetrathlon.agents.told import given
from tetrathlon.envs.codec import is_image

IMAGE, TEXT = "image", "text"
"""The parts of an observation that shows a picture."""


def shows(info: Mapping[str, Any]) -> bool:
    """Return whether an observation shows the picture that it holds: ``info["has_image"]``, unless told it does.

    Raises:
        ValueError: It is no bool.
    """
    return bool(given(info, "has_image", bool | np.bool_, "true or false", True))


def observed(observation: Any, info: Mapping[str, Any]) -> tuple[str, np.ndarray | None]:
    """Return the text of an observation, and the picture that it shows.

    Args:
        observation: A string, or a dict of ``text`` and ``image`` (uint8 [H, W, 3]).
        info: That of the observation.

    Raises:
        TypeError: It is neither.
    """
    if isinstance(observation, str):
        return observation, None
    if not isinstance(observation, Mapping):
        raise TypeError(
            "LanguagePolicy acts on text and on dicts of 'text' and 'image', got an observation of type "
            f"{type(observation).__name__}"
        )
    if not {TEXT} <= observation.keys() <= {TEXT, IMAGE} or not isinstance(observation[TEXT], str):
        raise TypeError(f"LanguagePolicy acts on dicts of 'text' and 'image', got one of {sorted(observation)}")
    image = observation.get(IMAGE)
    if image is None or not shows(info):
        return observation[TEXT], None
    if not is_image(image) or image.shape[-1] != 3:
        kind = f"{image.dtype} {image.shape}" if isinstance(image, np.ndarray) else type(image).__name__
        raise TypeError(f"the 'image' of an observation must be uint8 [H, W, 3], got {kind}")
    return observation[TEXT], image


def is_visual(observation_space: spaces.Space[Any], action_space: spaces.Space[Any]) -> bool:
    """Return whether an environment shows pictures beside text, and takes text."""
    if not isinstance(observation_space, spaces.Dict) or not isinstance(action_space, spaces.Text):
        return False
    image, text = observation_space.spaces.get(IMAGE), observation_space.spaces.get(TEXT)
    return isinstance(image, spaces.Box) and len(image.shape) == 3 and isinstance(text, spaces.Text)
