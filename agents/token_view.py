"""What learning did to a language model, token by token: of episodes that it played."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import torch

from tetrathlon.agents.decisions import Decisions, Evaluation
from tetrathlon.envs.episode import Episode

_HALF = "\ufffd"  # what half a character is decoded to


@runtime_checkable
class Tokenized(Protocol):
    """A policy whose decisions are tokens; ``collate`` gives ``inputs["ids"]``, int [B, T]."""

    tokenizer: Any
    """Its ``decode`` gives the text of ids."""
    temperature: float
    """What it samples at."""

    def collate(self, rows: Any, *, learn: Any = "own", last: Any = "open") -> Decisions:
        """See :meth:`tetrathlon.agents.trainable.TrainablePolicy.collate`."""
        ...

    def evaluate(self, decisions: Decisions) -> Evaluation:
        """See :meth:`tetrathlon.agents.trainable.TrainablePolicy.evaluate`."""
        ...


@torch.no_grad()
def token_view(policy: Any, start: Any, episodes: Sequence[Episode]) -> dict[str, Any] | None:
    """Compare what a policy and its start say of the tokens that were sampled.

    The ids are those of the records, and both are asked at the temperature of ``policy``. The texts of an episode,
    joined, are what its ids decode to; where several tokens are one character it is the text of the last of them, and
    that of the others is empty.

    Args:
        policy: What it is now.
        start: What it was: a snapshot, or a policy of the same tokenizer.
        episodes: Of ``policy`` or of its start, with their records.

    Returns:
        JSON data: ``temperature``; and ``episodes``, each with ``success`` (or None), ``reward``, ``seed`` and its
        ``parts`` in order. A part is ``{"given": text}`` or ``{"tokens": {...}}`` with as many entries of ``text``,
        ``id``, ``logp``, ``start_logp`` and ``entropy`` (in nats, of ``policy``) as there are tokens. Episodes in
        which nothing was decided are left out. None for a policy whose decisions are no tokens.

    Raises:
        ValueError: An episode was not this policy's.
    """
    if not isinstance(policy, Tokenized):
        return None
    shown = []
    for episode in episodes:
        if not any(step.record is not None for step in episode.steps):
            continue
        decisions = policy.collate([[episode]], last="never").to(_device(policy))
        now = policy.evaluate(decisions)
        with _at(start, policy.temperature):
            before = start.evaluate(decisions)
        told = episode.last_info.get("is_success") is not None
        shown.append(
            {
                "success": episode.is_success if told else None,
                "reward": _finite(episode.total_reward),
                "seed": episode.seed,
                "parts": list(_parts(policy.tokenizer, decisions, now, before)),
            }
        )
    return {"temperature": policy.temperature, "episodes": shown}


def pieces(tokenizer: Any, ids: Sequence[int], ends: Sequence[bool]) -> list[str]:
    """Return the text of each id, so that together they are the text of all.

    Args:
        tokenizer: Decodes.
        ids: Token ids, [T].
        ends: bool [T]: a part ends here, so that no character reaches beyond it.
    """
    texts = []
    context = begun = 0  # where the decoded window begins, and the character that is not whole yet
    for at, is_end in enumerate(ends):
        # A window of a few tokens: what a token's text is may depend on the one before (a space), not on all.
        known = _decode(tokenizer, ids[context:begun])
        text = _decode(tokenizer, ids[context : at + 1])[len(known) :]
        if text.endswith(_HALF) and not is_end:
            texts.append("")
            continue
        texts.append(text)
        context, begun = begun, at + 1
    return texts


def _parts(tokenizer: Any, decisions: Decisions, now: Evaluation, before: Evaluation) -> Iterator[dict[str, Any]]:
    """Yield what was given and what was decided, turn by turn."""
    used = int((decisions.episode[0] >= 0).sum())
    mask, turn = decisions.mask[0, :used].tolist(), decisions.turn[0, :used].tolist()
    ids = decisions.inputs["ids"][0, :used].tolist()
    kinds = list(zip(turn, mask, strict=True))
    ends = [kind != after for kind, after in zip(kinds, [*kinds[1:], None], strict=True)]
    texts = pieces(tokenizer, ids, ends)
    columns = {"logp": now.logp, "start_logp": before.logp, "entropy": now.entropy}
    begin = 0
    for end in (at + 1 for at, is_end in enumerate(ends) if is_end):
        if mask[begin]:
            numbers = {name: [_finite(x) for x in column[0, begin:end].tolist()] for name, column in columns.items()}
            yield {"tokens": {"text": texts[begin:end], "id": ids[begin:end], **numbers}}
        else:
            yield {"given": "".join(texts[begin:end])}
        begin = end


def _decode(tokenizer: Any, ids: Sequence[int]) -> str:
    return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False) if ids else ""


def _device(policy: Any) -> torch.device:
    return next((parameter.device for parameter in policy.parameters()), torch.device("cpu"))


@contextmanager
def _at(policy: Any, temperature: float) -> Iterator[None]:
    """Have ``policy`` evaluate at ``temperature``; one without a temperature of its own has that of another."""
    own = getattr(policy, "temperature", None)
    if own is None:
        yield
        return
    policy.temperature = temperature
    try:
        yield
    finally:
        policy.temperature = own


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
