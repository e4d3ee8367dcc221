"""Episodes as Minari datasets, and Minari datasets as episodes."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from tetrathlon.envs.codec import decode, encode
from tetrathlon.envs.episode import Episode, Step
from tetrathlon.envs.registry import make

if TYPE_CHECKING:
    from minari import MinariDataset

_INSTALL = 'pip install "tetrathlon[data]"'
_KEY = "tetrathlon"
"""Among a dataset's infos: one text of JSON an observation, with all of an episode that Minari has no place for."""
_ID = re.compile(r"(?:[-\w]{2,}/)*[-\w]+-v\d+")
_ARRAYS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def save_minari(
    episodes: Sequence[Episode],
    dataset_id: str,
    *,
    observation_space: spaces.Space[Any] | None = None,
    action_space: spaces.Space[Any] | None = None,
    algorithm: str | None = None,
    **more: Any,
) -> Path:
    """Write episodes as a Minari dataset, from which :func:`load_minari` restores them exactly.

    An episode of T steps has T + 1 observations, the last of them the true last one. Pictures are kept as they are,
    where Minari's default is JPEG. A ``UnicodeText`` becomes a ``Text`` of the characters that occur. Infos, labels and
    records are kept as JSON in ``infos["tetrathlon"]``.

    Args:
        episodes: Of one environment and its arguments, each of a step or more.
        dataset_id: Name and version, such as ``push/expert-v0``; the folder is below the environment variable
            MINARI_DATASETS_PATH, or ``~/.minari/datasets``.
        observation_space: Of a single observation; None: the environment is made and asked.
        action_space: Of a single action; likewise.
        algorithm: Who acted.
        **more: What else ``minari.create_dataset_from_buffers`` takes, such as ``author`` and ``description``.

    Returns:
        The folder of the dataset.

    Raises:
        FileExistsError: There is such a dataset.
        ValueError: There is no episode, one without steps or of another environment; or a text that Minari cannot
            store; or the id is none.
        TypeError: Minari cannot store such a space.
        ImportError: Minari or h5py is missing.
    """
    check_dataset(dataset_id)
    if not episodes:
        raise ValueError("there are no episodes to save")
    first = episodes[0]
    for number, episode in enumerate(episodes):
        if not episode.steps:
            raise ValueError(f"episode {number} has no steps; Minari cannot store it")
        if (episode.env, episode.kwargs) != (first.env, first.kwargs):
            raise ValueError(
                f"a dataset is of one environment, episode {number} is of {episode.env!r} {episode.kwargs}, "
                f"the first of {first.env!r} {first.kwargs}"
            )
    env = make(first.env, **first.kwargs) if first.env else None
    if env is None and (observation_space is None or action_space is None):
        raise ValueError("the episodes name no environment; give observation_space and action_space")
    seen: Any = observation_space if env is None or observation_space is not None else env.observation_space
    done: Any = action_space if env is None or action_space is not None else env.action_space
    storable(seen)
    storable(done)

    from minari import create_dataset_from_buffers
    from minari.data_collector import EpisodeBuffer
    from minari.storage import get_dataset_path

    buffers = []
    for number, episode in enumerate(episodes):
        observations = [*(step.observation for step in episode.steps), episode.final_observation]
        buffers.append(
            EpisodeBuffer(
                seed=episode.seed,
                observations=_columns(seen, observations, f"episode {number}, observation"),
                actions=_columns(done, [step.action for step in episode.steps], f"episode {number}, action"),
                rewards=[float(step.reward) for step in episode.steps],
                terminations=[bool(step.terminated) for step in episode.steps],
                truncations=[bool(step.truncated) for step in episode.steps],
                infos={_KEY: list(_notes(episode))},
            )
        )
    folder = Path(get_dataset_path(dataset_id))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about each piece of metadata that nobody gave
            create_dataset_from_buffers(
                dataset_id,
                buffers,
                **{
                    "env": env,
                    "observation_space": _lettered(seen, [buffer.observations for buffer in buffers]),
                    "action_space": _lettered(done, [buffer.actions for buffer in buffers]),
                    "algorithm_name": algorithm,
                    "jpeg_encoding": False,
                    **more,
                },
            )
    except BaseException:  # a stop by ctrl-C, too, leaves no half a dataset, which would count as one
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        if env is not None:
            env.close()
    return folder


def load_minari(dataset: str | MinariDataset) -> list[Episode]:
    """Return the episodes of a Minari dataset, for behaviour cloning, offline learning or a look.

    Args:
        dataset: A dataset, of :func:`save_minari` or of anybody else, or the id of one that is on this machine.

    Raises:
        FileNotFoundError: There is no such dataset here.
        ValueError: An episode has not one observation more than actions: its last one was lost.
        ImportError: Minari or h5py is missing.
    """
    _check_installed()
    import minari
    from minari.storage import get_dataset_path

    if isinstance(dataset, str):
        if not (Path(get_dataset_path(dataset)) / "data").is_dir():
            raise FileNotFoundError(f"there is no Minari dataset {dataset!r} below {get_dataset_path()}")
        dataset = minari.load_dataset(dataset)
    spec = dataset.spec.env_spec
    metadata = dataset.storage.get_episode_metadata(dataset.episode_indices)
    episodes = []
    for data, about in zip(dataset.iterate_episodes(), metadata, strict=True):
        n = len(data.rewards)
        observations = _items(dataset.observation_space, data.observations)
        actions = _items(dataset.action_space, data.actions)
        if len(observations) != n + 1 or len(actions) != n:
            raise ValueError(
                f"episode {data.id} of {dataset.spec.dataset_id!r} has {len(observations)} observations and "
                f"{len(actions)} actions for {n} rewards; it must have {n + 1} and {n}"
            )
        notes = (data.infos or {}).get(_KEY)
        head, infos = _read_notes(notes) if notes is not None else ({}, _foreign_infos(data.infos or {}, n))
        episode = Episode(
            final_observation=observations[-1],
            env=head.get("env", spec.id if spec is not None else ""),
            kwargs=head.get("kwargs", dict(spec.kwargs) if spec is not None else {}),
            seed=head.get("seed", about.get("seed")),
            options=head.get("options", about.get("options")),
            group=head.get("group"),
            info=infos[0]["info"],
        )
        for t in range(n):
            end = bool(data.terminations[t]), bool(data.truncations[t])
            episode.steps.append(Step(observations[t], actions[t], float(data.rewards[t]), *end, **infos[t + 1]))
        episodes.append(episode)
    return episodes


def check_dataset(dataset_id: str) -> None:
    """Refuse an id under which no dataset can be written; see :func:`save_minari`."""
    _check_installed()
    if not _ID.fullmatch(dataset_id):
        raise ValueError(
            f"a dataset's id must be such as 'push/expert-v0', its folders of two letters or more, got {dataset_id!r}"
        )
    from minari.storage import get_dataset_path

    if (folder := Path(get_dataset_path(dataset_id))).exists():
        raise FileExistsError(f"there is a dataset {dataset_id!r} in {folder}; take another name or version")


def storable(space: spaces.Space[Any], where: str = "") -> None:
    """Refuse a space that Minari cannot store.

    Raises:
        TypeError: It, or a part of it, is no Box, Discrete, MultiDiscrete, MultiBinary, Text, Dict or Tuple; or a key
            of a Dict holds a slash, which would be a folder.
    """
    if isinstance(space, spaces.Dict | spaces.Tuple):
        for key, part in space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces):
            if isinstance(key, str) and "/" in key:
                raise TypeError(f"Minari cannot store the part {where}{key!r}: its name holds a slash")
            storable(part, f"{where}{key!r}: ")
    elif not isinstance(space, (*_ARRAYS, spaces.Text)):
        raise TypeError(f"Minari cannot store {where}{space}; it takes Box, Discrete, Multi*, Text, Dict and Tuple")


def _check_installed() -> None:
    for package in ("minari", "h5py"):
        if find_spec(package) is None:
            raise ImportError(f"Minari datasets need {package}: {_INSTALL}", name=package)


def _columns(space: spaces.Space[Any], items: Sequence[Any], where: str) -> Any:
    """Return samples of a space as Minari stores them: part by part, each with leading T."""
    if isinstance(space, spaces.Dict):
        return {key: _columns(part, [i[key] for i in items], f"{where} {key!r}") for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_columns(part, [i[k] for i in items], f"{where} {k}") for k, part in enumerate(space.spaces))
    if isinstance(space, spaces.Text):
        for position, text in enumerate(items):
            if found := _UNSTORABLE.search(text):
                raise ValueError(f"{where} {position}: Minari cannot store the character {found[0]!r}")
        return list(items)
    return np.stack([np.asarray(item) for item in items])


def _items(space: spaces.Space[Any], columns: Any) -> list[Any]:
    """Undo :func:`_columns`."""
    if isinstance(space, spaces.Dict):
        parts = {key: _items(part, columns[key]) for key, part in space.spaces.items()}
        return [dict(zip(parts, values, strict=True)) for values in zip(*parts.values(), strict=True)]
    if isinstance(space, spaces.Tuple):
        return list(zip(*(_items(part, columns[k]) for k, part in enumerate(space.spaces)), strict=True))
    return list(columns) if isinstance(space, spaces.Text | spaces.Discrete) else [np.array(item) for item in columns]


def _lettered(space: spaces.Space[Any], columns: Sequence[Any]) -> spaces.Space[Any]:
    """Return the space that Minari writes down: it lists the characters of a text, and cannot list all of Unicode."""
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: _lettered(part, [c[key] for c in columns]) for key, part in space.spaces.items()})
    if isinstance(space, spaces.Tuple):
        return spaces.Tuple([_lettered(part, [c[k] for c in columns]) for k, part in enumerate(space.spaces)])
    if isinstance(space, spaces.Text):
        letters = sorted({letter for texts in columns for text in texts for letter in text}) or [" "]
        return spaces.Text(space.max_length, min_length=space.min_length, charset="".join(letters))
    return space


def _notes(episode: Episode) -> Iterator[str]:
    """Yield what Minari has no place for: of the episode and its reset, then of each step."""
    about = {name: getattr(episode, name) for name in ("env", "kwargs", "seed", "options", "group")}
    yield json.dumps(encode({**about, "info": episode.info}))
    for step in episode.steps:
        yield json.dumps(encode({"info": step.info, "label": step.label, "record": step.record}))


def _read_notes(notes: Sequence[bytes]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what is said of the episode, and for its reset and each step the fields of a ``Step``."""
    about, *steps = (decode(json.loads(note)) for note in notes)
    return about, [{"info": about["info"]}, *steps]


def _foreign_infos(infos: Mapping[str, Any], n: int) -> list[dict[str, Any]]:
    """Return the infos of the reset and of each step out of those that another program wrote.

    Minari's collector keeps one of the reset as well; a column without it belongs to the steps.
    """
    own: list[dict[str, Any]] = [{} for _ in range(n + 1)]
    for key, column in infos.items():
        if isinstance(column, Mapping):
            values: Sequence[Any] = [part["info"] for part in _foreign_infos(column, n)]
        else:
            values = [item.decode() if isinstance(item, bytes) else item for item in column]
        if len(values) in (n, n + 1):
            for info, value in zip(own[n + 1 - len(values) :], values, strict=True):
                info[key] = value
    return [{"info": info} for info in own]
