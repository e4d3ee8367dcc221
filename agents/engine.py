"""Generation: prompts of token ids in, sampled ids and their log-probabilities out."""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import DynamicCache, cache_utils
from transformers.cache_utils import DynamicLayer

from tetrathlon.agents.head import output_layer
from tetrathlon.agents.intake import Intake, inside_of
from tetrathlon.agents.picture import Picture, numbered, told
from tetrathlon.agents.sampling import Sampling, draw, stream
from tetrathlon.agents.sight import Sight

_WORTH_SHARING = 8
"""Fewest tokens of a common beginning that are read apart."""
# Not every version of transformers has these kinds of cache layers: a state alone, and nothing at all.
_STATE, _NOTHING = (getattr(cache_utils, name, None) for name in ("LinearAttentionLayer", "DummyLayer"))


@dataclass(frozen=True, slots=True)
class Completion:
    """What was generated after one prompt."""

    ids: list[int]
    """Sampled ids, [T]; a sampled EOS is the last of them, and none is ever added."""
    logps: list[float]
    """Log-probability of each id in float32 at the temperature that it was drawn at, [T]."""
    stop: str
    """``"eos"``; ``"length"``: the token limit; ``"context"``: the model's context is full."""


def eos_ids(tokenizer: Any, model: Any = None) -> frozenset[int]:
    """Return every id that ends a turn.

    Those of the tokenizer and of the model's generation config, and ``<|im_end|>`` where it is a token: many
    ChatML models name only ``<|endoftext|>`` as their EOS.

    Args:
        tokenizer: A transformers tokenizer.
        model: A transformers model, or None.
    """
    found = [tokenizer.eos_token_id, tokenizer.get_added_vocab().get("<|im_end|>")]
    named = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    found += named if isinstance(named, list | tuple) else [named]
    return frozenset(int(i) for i in found if i is not None)


class TorchEngine:
    """Samples from a transformers causal language model with a KV cache.

    Prompts are padded on the left and masked, positions count real tokens only, and lengths decide everything,
    so a pad token that is also the EOS does no harm. A prompt that several rows share is read once, and so is what
    all prompts of a batch begin with; rows of one prompt are read once as long as they say the same. Rows that are done
    leave the batch. Prompts that show different pictures are different, and what is read once has its pictures read
    once. Randomness is one uniform number a token,
    drawn from a stream of the row's own, which the call's seed and the row's number choose: what a row samples depends
    neither on how the batch is cut nor on the other rows and their limits (but for the rounding of the model's own
    arithmetic), and the global generators are left alone. A call takes one number from the engine's generator.

    Recurrent models (Mamba and its like) and those with recurrent layers among others are read as well; one that wants
    a cache of its own kind (RWKV, xLSTM) is refused, and so is one that has its state in itself (RecurrentGemma).

    Args:
        model: A causal language model; it is used as it is at each call, so weights may change in between.
        eos: Ids that end a completion, as :func:`eos_ids` finds them.
        device: Where to move the model; None leaves it.
        dtype: What to convert the weights to; None leaves them. Softmax is in float32 whatever this is, and so
            is an output layer that is a plain linear one.
        seed: Seed of the stream of samples.
        context: Most tokens that prompt and completion may have together; None takes the model's own.
        batch_size: Most rows at once.
        batch_tokens: Most cached tokens at once (rows times the longest prompt and completion); what bounds the
            memory. One row is always run, however long.
        sight: How the model takes pictures; None: it takes none.

    Raises:
        ValueError: A limit is below 1, or the model cannot be read with a transformers ``DynamicCache``.
    """

    def __init__(
        self,
        model: Any,
        eos: Collection[int],
        device: str | torch.device | None = None,
        dtype: torch.dtype | None = None,
        *,
        seed: int = 0,
        context: int | None = None,
        batch_size: int = 128,
        batch_tokens: int = 65_536,
        sight: Sight | None = None,
    ) -> None:
        if device is not None or dtype is not None:
            model.to(device=device, dtype=dtype)
        if context is None:
            context = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
        for name, value in (("batch_size", batch_size), ("batch_tokens", batch_tokens), ("context", context)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        self.model = model
        self.eos = frozenset(eos)
        self.context = math.inf if context is None else context
        self.batch_size = batch_size
        self.batch_tokens = batch_tokens
        self.sight = sight
        self._generator = torch.Generator().manual_seed(seed)
        self._takes = Intake.of(model)
        inside = inside_of(model)
        # RWKV would swallow our cache among its other keywords and go on with no memory at all.
        if not getattr(inside, "_supports_default_dynamic_cache", lambda: True)():
            raise _own_cache(inside)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    def reseed(self, seed: int) -> None:
        """Begin the stream of samples anew."""
        self._generator.manual_seed(seed)

    def get_state(self) -> Tensor:
        """Return where the stream of samples is."""
        return self._generator.get_state()

    def set_state(self, state: Tensor) -> None:
        """Restore what :meth:`get_state` returned."""
        self._generator.set_state(state.cpu())

    @torch.no_grad()  # not inference_mode: buffers that a model grows in its forward pass must stay trainable with
    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        limits: Sequence[int | None] | None = None,
        pictures: Sequence[Picture] = (),
    ) -> list[Completion]:
        """Complete each of N prompts once; repeat a prompt for more samples of it.

        Args:
            prompts: N lists of ids, none of them empty; a picture stands in them by its codes.
            sampling: How to draw.
            limits: Most tokens of each row, below ``sampling.max_tokens``; None in it: no limit of its own. One below
                0 counts as 0.
            pictures: At least those of the prompts.

        Returns:
            N completions in the order of the prompts. A prompt that leaves no room in the context stops with
            ``"context"`` and no ids.

        Raises:
            ValueError: A prompt is empty, or there are not N limits, or the model keeps nothing in the cache.
            TypeError: A limit is not an integer.
            FloatingPointError: The model's logits are NaN.
        """
        rows, pictures = numbered(prompts, pictures)
        if not all(rows):
            raise ValueError(f"prompt {rows.index(())} is empty; a model needs at least one token")
        caps = [sampling.max_tokens] * len(rows)
        if limits is not None:
            caps = [
                cap if own is None else max(0, min(cap, operator.index(own)))
                for cap, own in zip(caps, limits, strict=True)
            ]
        stops = ["length"] * len(rows)
        for i, row in enumerate(rows):
            if (room := self.context - len(row)) < max(caps[i], 1):
                caps[i], stops[i] = max(int(room), 0), "context"
        seed = sampling.seed
        if seed is None and not sampling.greedy:
            # One number a call, so that what later calls draw does not depend on the lengths of this one.
            seed = int(torch.randint(2**63 - 1, (), generator=self._generator))
        done = [Completion([], [], stop) for stop in stops]
        training = self.model.training
        self.model.eval()
        try:
            with output_layer(self.model):
                for chunk in self._chunks(rows, caps):
                    self._complete(chunk, rows, caps, sampling, seed, done, pictures)
        finally:
            self.model.train(training)
        return done

    def _chunks(self, rows: list[tuple[int, ...]], caps: list[int]) -> Iterator[list[int]]:
        """Cut the rows that have room into batches of like length, the longest first; equal prompts adjoin."""
        chunk: list[int] = []
        longest = cap = 0
        for i in sorted((i for i, c in enumerate(caps) if c), key=lambda i: (-len(rows[i]), rows[i], i)):
            wider, higher = max(longest, len(rows[i])), max(cap, caps[i])
            if chunk and (len(chunk) == self.batch_size or (len(chunk) + 1) * (wider + higher) > self.batch_tokens):
                yield chunk
                chunk, wider, higher = [], len(rows[i]), caps[i]
            chunk.append(i)
            longest, cap = wider, higher
        if chunk:
            yield chunk

    def _complete(
        self,
        chunk: list[int],
        rows: list[tuple[int, ...]],
        caps: list[int],
        sampling: Sampling,
        seed: int | None,
        done: list[Completion],
        pictures: Sequence[Picture],
    ) -> None:
        """Generate for the B rows of ``chunk`` into ``done``."""
        device = self.device
        states = {row: number for number, row in enumerate(dict.fromkeys(rows[i] for i in chunk))}
        cache: Any = DynamicCache(config=self.model.config)
        logits, mask, position = self._read(list(states), cache, pictures)
        live = list(chunk)
        # Rows that have said the same so far are in one state, which is read once; they part where they draw apart.
        state = [states[rows[i]] for i in live]
        streams = {} if seed is None or sampling.greedy else {i: stream(seed, i) for i in chunk}
        precision = torch.float32 if device.type == "mps" else torch.float64
        step = 0
        while True:
            uniform = torch.tensor([streams[i].random() for i in live if streams], dtype=precision, device=device)
            at = torch.tensor(state, device=device)
            tokens, logps = draw(logits, at, sampling, uniform if streams else None)
            new: dict[tuple[int, int], int] = {}  # (state before, token) -> state
            keep: list[tuple[int, int]] = []  # (row, its state)
            for i, old, token, logp in zip(live, state, tokens.tolist(), logps.tolist(), strict=True):
                if math.isnan(logp):
                    raise FloatingPointError(f"the model's logits are NaN after {len(rows[i]) + step} tokens")
                done[i].ids.append(token)
                done[i].logps.append(logp)
                if token in self.eos:
                    done[i] = Completion(done[i].ids, done[i].logps, "eos")
                elif len(done[i].ids) < caps[i]:
                    keep.append((i, new.setdefault((old, token), len(new))))
            if not keep:
                return
            live, state = [i for i, _ in keep], [number for _, number in keep]
            before = [old for old, _ in new]
            if before != list(range(len(logits))):
                pick = torch.tensor(before, device=device)
                cache.reorder_cache(pick)
                mask, position = mask[pick], position[pick]
            mask = F.pad(mask, (0, 1), value=1)
            logits = self._forward(torch.tensor([[token] for _, token in new], device=device), mask, position, cache)
            position = position + 1
            step += 1

    def _read(
        self, prompts: list[tuple[int, ...]], cache: Any, pictures: Sequence[Picture]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Read U different prompts into ``cache``; what they all begin with is read once.

        Returns:
            The float32 logits [U, V] after each prompt, the mask [U, L] of real tokens, and the next position [U, 1].
        """
        device = self.device
        # Padding then lies between the beginning and the rest. Full attention does not mind; a sliding window, which
        # counts places, and a recurrent layer do.
        full = all(type(layer) is DynamicLayer for layer in cache.layers)
        shared = _shared_prefix(prompts) if full and len(prompts) > 1 else 0
        if shared < _WORTH_SHARING:
            shared = 0
        axes = None if self.sight is None else self.sight.positions(prompts, pictures)
        if shared:
            prefix = torch.tensor([prompts[0][:shared]], device=device)
            begun = torch.arange(shared, device=device)[None] if axes is None else axes[0][:, None, :shared].to(device)
            self._forward(prefix, torch.ones_like(prefix), begun, cache, pictures)
            # The one selection of rows that every kind of cache layer has.
            cache.reorder_cache(torch.zeros(len(prompts), dtype=torch.long, device=device))
        rests = [prompt[shared:] for prompt in prompts]
        width = max(map(len, rests))
        ids = torch.tensor([(0,) * (width - len(rest)) + rest for rest in rests], device=device)
        mask = torch.tensor(
            [[1] * shared + [0] * (width - len(rest)) + [1] * len(rest) for rest in rests], device=device
        )
        position = mask.sum(1, keepdim=True)
        positions = (mask.cumsum(1) - 1).clamp(min=0)[:, shared:]
        if axes is not None:
            places = [F.pad(own[:, shared:], (width - own.shape[1] + shared, 0)) for own in axes]
            positions = torch.stack(places, dim=1).to(device)
            position = torch.stack([own.max() + 1 for own in axes])[:, None].to(device)
        logits = self._forward(ids, mask, positions, cache, pictures)
        # A state in the model itself would stay as it is when rows are selected, and lead into the next call.
        if not all(_holds_state(layer) for layer in cache.layers if type(layer) is _STATE):
            raise _own_cache(self.model)
        return logits, mask, position

    def _forward(
        self, ids: Tensor, mask: Tensor | None, positions: Tensor, cache: Any, pictures: Sequence[Picture] = ()
    ) -> Tensor:
        """Return the float32 logits [B, V] after the last of ``ids`` [B, L]; ``cache`` grows by L.

        Positions are [B, L], or [A, B, L] where they have A parts.
        """
        options: dict[str, Any] = {self._takes.cache: cache}
        if self.sight is not None:
            ids, seen = self.sight.read(ids, pictures)
            options |= seen
        if ids.shape[1] == 1 and cache.layers and all(type(layer) in (_STATE, _NOTHING) for layer in cache.layers):
            # Nothing but states: a mask of the whole past says nothing to them, and Mamba, whose mask is as long as
            # the ids that it is given, would stretch the one new token over all places of it. Models that have
            # attention as well need the mask, and cut it for their recurrent layers themselves.
            mask = None
        if self._takes.positions:
            options["position_ids"] = positions
        if self._takes.keep:
            options["logits_to_keep"] = 1
        out = self.model(input_ids=ids, attention_mask=mask, use_cache=True, **options)
        return out.logits[:, -1].float()


def _own_cache(model: Any) -> ValueError:
    return ValueError(
        f"{type(model).__name__} keeps its past in a cache of its own; TorchEngine needs a causal language model that "
        "transformers runs with its DynamicCache"
    )


def _holds_state(layer: Any) -> bool:
    """Whether a recurrent cache layer was written to; its states are tensors, by number in newer versions."""
    kinds = (layer.conv_states, layer.recurrent_states)
    return any(state is not None for kind in kinds for state in (kind.values() if isinstance(kind, dict) else (kind,)))


def _shared_prefix(prompts: list[tuple[int, ...]]) -> int:
    """Return how many tokens all prompts begin with, leaving at least one to each."""
    first, last = min(prompts), max(prompts)  # what these two share, all share
    most = min(map(len, prompts)) - 1
    shared = next((k for k in range(most) if first[k] != last[k]), most)
    inside = first[shared]
    return shared if inside >= 0 else max(shared - int(told(torch.tensor(inside))[1]), 0)  # no picture is cut
