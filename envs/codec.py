"""Observations, actions and infos as JSON and back, exactly: arrays, tuples and non-finite numbers included."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

ImageSink = Callable[[np.ndarray], str]
ImageSource = Callable[[str], np.ndarray]

_KINDS = frozenset("biufcSUMm")
# JSON has numbers of these kinds; whatever else an array holds is written as its bytes.
_NUMBERS = frozenset("biuf")
_TAGS = frozenset({"$array", "$image", "$tuple", "$float", "$bytes", "$dict", "$text", "$scalar"})
# JSON takes two such escapes for one character: a text with both is written in parts.
_BETWEEN_SURROGATES = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")


def is_image(value: Any) -> bool:
    """Tell whether ``value`` is a uint8 picture of shape (H, W, 1|3|4)."""
    return (
        isinstance(value, np.ndarray)
        and value.dtype == np.uint8
        and value.ndim == 3
        and value.shape[-1] in (1, 3, 4)
        and value.size > 0
    )


def encode(value: Any, image: ImageSink | None = None) -> Any:
    """Turn ``value`` into plain JSON data from which :func:`decode` restores it exactly.

    Args:
        value: Strings, numbers, None, bytes, NumPy arrays and scalars, and lists, tuples and dicts of them.
        image: Called with each picture; returns the name to note in its place. Without it pictures are
            written as any other array.

    Raises:
        TypeError: A part of ``value`` is of another type.
    """
    kind = type(value)
    if kind is dict and not _TAGS & value.keys() and all(type(key) is str and key.isascii() for key in value):
        return {key: encode(item, image) for key, item in value.items()}  # what most of all values are, first
    if kind is list:
        return [encode(item, image) for item in value]
    if kind is int or (kind is str and value.isascii()) or (kind is float and math.isfinite(value)):
        return value
    if isinstance(value, str):
        parts = [] if value.isascii() else _BETWEEN_SURROGATES.split(value)
        return str(value) if len(parts) < 2 else {"$text": parts}
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.ndarray | np.generic):
        if image is not None and is_image(value):
            return {"$image": image(np.asarray(value))}
        array = np.asarray(value)
        if array.dtype == object:
            raise TypeError(f"an array of Python objects cannot be written as JSON: {value!r}")
        if not _portable(array.dtype):
            raise TypeError(f"an array of dtype {array.dtype} cannot be written as JSON: {value!r}")
        if isinstance(value, np.generic):
            return {"$scalar": [array.dtype.str, _array_data(array)]}
        return {"$array": [array.dtype.str, list(array.shape), _array_data(array)]}
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, tuple):
        return {"$tuple": [encode(item, image) for item in value]}
    if isinstance(value, list):
        return [encode(item, image) for item in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) and isinstance(encode(key), str) for key in value) and not _TAGS & value.keys():
            return {str(key): encode(item, image) for key, item in value.items()}
        return {"$dict": [[encode(key, image), encode(item, image)] for key, item in value.items()]}
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON: {value!r}")


def _portable(dtype: np.dtype[Any]) -> bool:
    """Tell whether the name of ``dtype`` says all of it, the same on every machine (long doubles: none of it)."""
    return dtype.kind in _KINDS and not (dtype.kind in "fc" and dtype.itemsize > (8 if dtype.kind == "f" else 16))


def _array_data(array: np.ndarray) -> Any:
    if array.dtype.kind in "biu" or (array.dtype.kind == "f" and np.isfinite(array).all()):
        return array.ravel().tolist()
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def decode(data: Any, image: ImageSource | None = None) -> Any:
    """Undo :func:`encode`.

    Args:
        data: What :func:`encode` returned.
        image: Returns the picture of a noted name.

    Raises:
        ValueError: ``data`` is damaged; TypeError, KeyError and OverflowError where that shows in them first.
    """
    if isinstance(data, list):
        return [decode(item, image) for item in data]
    if not isinstance(data, dict):
        return data
    if len(data) == 1:
        ((tag, body),) = data.items()
        if tag == "$array":
            return _decode_array(*body)
        if tag == "$scalar":
            return _decode_array(body[0], [], body[1])[()]
        if tag == "$image":
            if image is None:
                raise ValueError(f"picture {body!r} is noted here, but there is no folder to read it from")
            return image(body)
        if tag == "$tuple":
            return tuple(decode(item, image) for item in body)
        if tag == "$float":
            return float(body)
        if tag == "$text":
            return "".join(body)
        if tag == "$bytes":
            return base64.b64decode(body, validate=True)
        if tag == "$dict":
            return {decode(key, image): decode(item, image) for key, item in body}
    return {key: decode(item, image) for key, item in data.items()}


def _decode_array(dtype: str, shape: list[int], data: Any) -> np.ndarray:
    if not isinstance(dtype, str) or not _portable(kind := np.dtype(dtype)):
        raise ValueError(f"there are no arrays of dtype {dtype!r} here")
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"{shape!r} is no shape")
    # Nothing is allocated that the data does not fill: a few letters of a dtype can ask for gigabytes.
    if isinstance(data, str):
        return np.frombuffer(base64.b64decode(data, validate=True), dtype=kind).reshape(shape).copy()
    if not isinstance(data, list) or kind.kind not in _NUMBERS:
        raise ValueError(f"{str(data)[:80]!r} is no data of dtype {dtype!r}")
    return np.array(data, dtype=kind).reshape(shape)


def fingerprint(value: Any) -> str:
    """Return a SHA-256 of ``value`` that is equal in every process, whatever PYTHONHASHSEED is."""
    text = json.dumps(encode(value, _digest), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _digest(picture: np.ndarray) -> str:
    """Return what stands for a picture in a fingerprint; its numbers as JSON would take a hundred times as long."""
    return f"{picture.shape} {hashlib.sha256(np.ascontiguousarray(picture).data).hexdigest()}"
