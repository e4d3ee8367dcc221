"""Reads ``result.json`` and ``results.json``, or says which file is none and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_NUMBER = int | float
_RATE = {"mean": _NUMBER | None, "low": _NUMBER | None, "high": _NUMBER | None, "n": int}
_RESULT: Mapping[str, Any] = {
    "env": str,
    "kwargs": dict,
    "split": str | None,
    "policy": str,
    "seed": int,
    "greedy": bool,
    "episodes": int,
    "samples": int,
    "success": {**_RATE, "interval": str | None},
    "reward": {"mean": _NUMBER | None, "low": _NUMBER | None, "high": _NUMBER | None},
    "reward_terms": dict,
    "costs": dict,
    "pass_at": dict,
    "pass_all": dict,
    "majority_at": dict | None,
    "steps": _NUMBER | None,
    "tokens": ({"mean": _NUMBER, "total": _NUMBER},),
    "lengths": {"unit": str, "success": _NUMBER | None, "failure": _NUMBER | None},
    "stop_reasons": dict,
    "grader_errors": int,
    "grader_messages": list,
    "crashes": {"count": int, "messages": list},
    "seconds": _NUMBER,
    "cpu_seconds": _NUMBER,
}
_ROW: Mapping[str, Any] = {
    "name": str,
    "env": str,
    "kwargs": dict,
    "policy": str,
    "success": {**_RATE, "distinct": int},
    "lengths": {"unit": str, "success": _NUMBER | None, "failure": _NUMBER | None},
    "tokens": _NUMBER | None,
    "costs": dict,
    "samples": int,
    "pass_at": dict,
    "dependence": dict | None,
    "stop_reasons": dict,
    "grader_errors": int,
    "crashes": int,
    "episodes": int,
    "seconds": _NUMBER,
    "cells": list,
}
_RESULTS: Mapping[str, Any] = {
    "suite": str,
    "version": int,
    "entries": [_ROW],
    "unavailable": [{"name": str, "reason": str}],
    "policies": [{"name": str, "source": str | None, "available": bool, "reason": str | None}],
    "aggregate": dict,
    "repeat": dict,
}
_TOKENS: Mapping[str, Any] = {
    "temperature": _NUMBER,
    "episodes": [{"success": bool | None, "reward": _NUMBER | None, "seed": int | None, "parts": [dict]}],
}
_TOKEN: Mapping[str, Any] = {
    "text": str,
    "id": int,
    "logp": _NUMBER | None,
    "start_logp": _NUMBER | None,
    "entropy": _NUMBER | None,
}
_SCORE = ({"iqm": {"mean": _NUMBER, "low": _NUMBER, "high": _NUMBER}},)
_TOTAL: Mapping[str, Any] = {
    "success": {"overall": _RATE, "domains": dict},
    "normalised": {"overall": _SCORE, "domains": dict},
}


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        ValueError: It holds no JSON; the message names it.
    """
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:  # no UTF-8 either
        raise ValueError(f"{path} is not JSON: {error}") from error


def load_result(path: Path) -> dict[str, Any]:
    """Read the ``result.json`` of an evaluation.

    Raises:
        ValueError: It is none; the message names the file and what is missing.
    """
    data = read_json(path)
    if isinstance(data, dict):
        data.setdefault("pass_all", {})  # results of older versions have none
    if fault := _fault(data, _RESULT):
        raise ValueError(f"{path} is not a result: {fault}")
    return data


def load_results(path: Path) -> dict[str, Any]:
    """Read the ``results.json`` of a run of a suite.

    Raises:
        ValueError: It is none; the message names the file and what is missing.
    """
    data = read_json(path)
    fault = _fault(data, _RESULTS)
    for policy, total in data["aggregate"].items() if fault is None else ():
        fault = fault or _fault(total, _TOTAL, f"aggregate.{policy}")
    if fault:
        raise ValueError(f"{path} is not the results of a suite: {fault}")
    return data


def load_tokens(path: Path) -> dict[str, Any]:
    """Read the ``tokens.json`` of a training run; see :func:`tetrathlon.agents.token_view.token_view`.

    Raises:
        ValueError: It is none; the message names the file and what is missing.
    """
    data = read_json(path)
    fault = _fault(data, _TOKENS)
    parts = [part for episode in data["episodes"] for part in episode["parts"]] if fault is None else []
    for part in parts:
        if not isinstance(part.get("given"), str):
            tokens = part.get("tokens")
            fault = fault or _fault(tokens, {name: [kind] for name, kind in _TOKEN.items()}, "tokens")
            if fault is None and len({len(tokens[name]) for name in _TOKEN}) != 1:
                fault = "'tokens' holds columns of different lengths"
    if fault:
        raise ValueError(f"{path} is not a token view: {fault}")
    return data


def _fault(data: Any, shape: Any, place: str = "") -> str | None:
    """Return in words the first thing that ``data`` lacks of ``shape``, or None.

    A shape is a type, a dict of shapes by name, a list of the shape of each item, or a tuple of a shape: that or None.
    """
    if isinstance(shape, tuple):
        return None if data is None else _fault(data, shape[0], place)
    if isinstance(shape, Mapping):
        if not isinstance(data, dict):
            return f"{place or 'it'} is no object"
        for key, part in shape.items():
            where = f"{place}.{key}" if place else key
            if key not in data:
                return f"no {where!r}"
            if fault := _fault(data[key], part, where):
                return fault
        return None
    if isinstance(shape, list):
        if not isinstance(data, list):
            return f"{place!r} is no list"
        return next((fault for i, one in enumerate(data) if (fault := _fault(one, shape[0], f"{place}.{i}"))), None)
    return None if isinstance(data, shape) else f"{place!r} cannot be {data!r:.40}"
