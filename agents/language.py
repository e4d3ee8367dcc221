"""A transformers causal language model as a policy: token ids in, token ids out, text at the border."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from tetrathlon.agents.action_values import Appraisal
from tetrathlon.agents.blindness import Blindness
from tetrathlon.agents.chat import Chat
from tetrathlon.agents.contexts import contexts
from tetrathlon.agents.critic import OwnCritic, TokenCritic, ValueHead, width
from tetrathlon.agents.decisions import Decisions, Evaluation, Last, Learn, layout, placed
from tetrathlon.agents.dialogue import Dialogue, with_message
from tetrathlon.agents.engine import Completion, TorchEngine, eos_ids
from tetrathlon.agents.intake import inside_of
from tetrathlon.agents.lora import WithoutAdapter
from tetrathlon.agents.messages import slot_of
from tetrathlon.agents.observed import observed
from tetrathlon.agents.picture import Picture, Pictures, numbered, spelled
from tetrathlon.agents.policy import Acted, slots_of
from tetrathlon.agents.pretrained import loaded, without_dropout
from tetrathlon.agents.sampling import Sampling
from tetrathlon.agents.scoring import Scorer
from tetrathlon.agents.sight import Sight, looked_at, sight_of
from tetrathlon.agents.told import given, least, token_limit
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.agents.transcripts import Transcriber, record_of
from tetrathlon.envs.episode import Episode


class LanguagePolicy(TrainablePolicy):
    """A causal language model that acts in text environments, and learns there; one with sight sees pictures.

    It is token-in, token-out: an episode's memory is the ids that the model saw and sampled, later messages are
    appended to them, and nothing sampled is ever decoded and encoded again. What it reads of an info is
    ``system``, ``tools`` and ``examples`` (messages before the first observation) and ``limits["episode_tokens"]``
    (most tokens that it samples in the episode) at an episode's start, ``limits["tokens"]`` (most tokens of a turn,
    kept until another info names another), and ``role`` of a later observation (``"user"``, the default, or
    ``"tool"``); None means that it says nothing. A turn that the limit of the episode cuts has the stop
    ``"episode_length"``.

    A record holds ``prompt`` (int32 [P], the ids given since the last record: a first prompt, a later message, a
    forced turn), ``ids`` (int32 [T], sampled), ``logps`` (float32 [T], at the temperature of the sample) and
    ``cut`` (bool [T], true at the last id of a completion that a limit stopped). The ``prompt`` and ``ids`` of an
    episode's records, one after another, are what the model had read at its last decision. A slot in which no
    token was sampled has no record. Where the chat template writes the past anew (it takes out the thinking of earlier
    turns, say), the record of that turn holds ``fresh`` too, and its ``prompt`` is all that the model read then.

    Samples depend on ``seed`` and the sequence of calls; two policies do not disturb each other.

    It learns at the temperature that it samples at, and without dropout, so that an unchanged model has a ratio of 1.
    A row of :meth:`collate` is one episode (one turn, for labels); several in a row become as many.

    Observations are strings, or dicts of ``text`` and ``image`` (uint8 [H, W, 3]); where an info says
    ``has_image=False`` the picture is blank and the model gets none. A picture stands before the text of its message,
    as the ids that the model's own processor writes for it. The record then holds ``pictures`` (int32 [K, 2]: where in
    ``prompt`` a picture begins, and which of those it is that the episode showed so far); the pictures themselves are
    in the observations. At the first update with pictures it is made sure that they reach the log-probabilities.

    Args:
        model: A transformers causal language model.
        tokenizer: Its tokenizer.
        temperature: Divides the logits of samples.
        max_tokens: Most tokens of a turn.
        seed: Seed of the stream of samples.
        batch_size: Most rows generated at once.
        critic: ``"head"``: a value head that leaves the model below alone; ``"shared"``: one whose loss trains the
            model too; ``"own"``: a copy of the model with a value head, all of it with the critic's learning rate;
            None: no values.
        autocast: What the model computes in while its weights stay as they are; None: in their own type.
        sight: The processor of a vision-language model, or how it takes pictures; None: it takes none.
        check_sight: Whether the first update with pictures looks if they change anything; see
            :class:`~tetrathlon.agents.blindness.Blindness`.

    Raises:
        ValueError: A value is out of range, or the model takes pictures in a way that is not known here.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        temperature: float = 1.0,
        max_tokens: int = 256,
        seed: int = 0,
        batch_size: int = 128,
        critic: Literal["head", "shared", "own"] | None = None,
        autocast: torch.dtype | None = None,
        sight: Any = None,
        check_sight: bool = True,
    ) -> None:
        super().__init__()
        Sampling(max_tokens=max_tokens, temperature=temperature)
        without_dropout(model)
        self.model = model
        self.tokenizer = tokenizer
        self.temperature = temperature
        self.max_tokens = max_tokens
        eos = eos_ids(tokenizer, model)
        self.sight: Sight | None = sight if sight is None or isinstance(sight, Sight) else sight_of(model, sight)
        self.engine = TorchEngine(model, eos, seed=seed, batch_size=batch_size, sight=self.sight)
        self.chat = Chat(tokenizer, eos, None if self.sight is None else (self.sight.token, self.sight.token_id))
        self.autocast = autocast
        self.critic: nn.Module | None = None
        if critic is not None:
            self.add_critic(critic)
        # A model cannot go on from nothing: an empty text begins, as every text, after an end of text.
        self._start = [tokenizer.eos_token_id or 0]
        self._transcriber = Transcriber(self.chat, self._start, self.sight)
        self._scorer = Scorer(model, self.sight)
        self._blindness = Blindness() if check_sight and self.sight is not None else None

    default_lr = 1e-5
    """Learning rate of full fine-tuning where nobody names one; LoRA takes ten times as much."""
    default_rl_lr: float

    @classmethod
    def from_pretrained(
        cls,
        source: Any,
        *,
        device: str = "auto",
        dtype: str = "auto",
        temperature: float = 1.0,
        max_tokens: int = 256,
        seed: int = 0,
        batch_size: int = 128,
        critic: Literal["head", "shared", "own"] | None = None,
        lora: int = 0,
        checkpointing: bool = False,
        compiled: bool = False,
        check_sight: bool = True,
    ) -> LanguagePolicy:
        """Load a model and its tokenizer, and its processor where it is a vision-language model.

        Args:
            source: A folder (``smollm2()`` gives one) or a hub id.
            device: ``"cpu"``, ``"cuda"``, ...; ``"auto"``: CUDA where there is one.
            dtype: ``"float32"``; ``"bfloat16"``: half the memory, and nothing can be trained in it; ``"mixed"``:
                weights in float32 that are computed with in bfloat16; ``"auto"``: mixed on a CUDA device that has
                bfloat16, else float32 (on a CPU without bfloat16 instructions it is five times as fast).
            temperature: See the class.
            max_tokens: See the class.
            seed: See the class.
            batch_size: See the class.
            critic: See the class.
            lora: Rank of the LoRA adapters of all linear layers, which then learn alone (Hu et al., 2022); 0: none, all
                weights learn.
            checkpointing: Whether activations are computed again in the backward pass instead of kept: less memory, a
                third more time.
            compiled: Whether the layers are compiled by ``torch.compile``, which takes minutes and pays in long runs.
            check_sight: See the class.

        Raises:
            ValueError: ``dtype`` is none of those, or ``lora`` is below 0, or the model takes pictures in a way that is
                not known here.
            OSError: There is no such model.
            ImportError: Its processor needs a package that is missing.
        """
        found = loaded(source, device=device, dtype=dtype, lora=lora, seed=seed, checkpointing=checkpointing)
        policy = cls(
            found.model,
            found.tokenizer,
            temperature=temperature,
            max_tokens=max_tokens,
            seed=seed,
            batch_size=batch_size,
            critic=critic,
            autocast=found.autocast,
            sight=found.processor,
            check_sight=check_sight,
        )
        if lora:
            policy.default_lr = 10 * cls.default_lr
        if compiled:
            inside_of(found.model).base_model.compile(dynamic=True)
        return policy

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        """See :meth:`tetrathlon.agents.policy.Policy.act`.

        Observations are N strings, or a dict of N texts and N images; memory is N of :class:`Dialogue`. A forced turn
        enters the memory with its end-of-turn token.

        Returns:
            Actions are a tuple of N strings: a completion without special tokens, and with the ``<think>`` that
            the template opened for it.

        Raises:
            TypeError: An observation is not a string and no dict of text and image, or shows a picture that the model
                does not take.
            ValueError: The chat template cannot be appended to, or does not take these messages, or an info holds
                something else than it should.
        """
        n = slots_of(observations, None, None)
        memory = memory if memory is not None else [None] * n
        infos = infos if infos is not None else [{}] * n
        forced = forced if forced is not None else [None] * n
        dialogues, openings = [], []
        for i, old, info in zip(range(n), memory, infos, strict=True):
            dialogue, opened = self._read(slot_of(observations, i), old, info)
            dialogues.append(dialogue)
            openings.append(opened)
        own = [i for i in range(n) if forced[i] is None]
        shown = [picture for i in own for picture in dialogues[i].pictures]
        with self._precision():
            completions = self.engine.generate(
                [dialogues[i].ids for i in own],
                Sampling(max_tokens=self.max_tokens, temperature=self.temperature, greedy=greedy),
                [least(dialogues[i].limit, dialogues[i].left) for i in own],
                **({"pictures": shown} if shown else {}),  # an engine for text alone knows of none
            )
        sampled: dict[int, Completion] = dict(zip(own, completions, strict=True))
        acted = Acted([], [], [], [])
        for i, (dialogue, opened) in enumerate(zip(dialogues, openings, strict=True)):
            if i in sampled:
                action = opened + self.chat.decode(sampled[i].ids)
                new, record = sampled[i].ids, record_of(dialogue, sampled[i])
            else:
                action, new, record = forced[i], self.chat.forced(forced[i], opened), None
            ids = (*dialogue.ids, *new)
            recorded = dialogue.recorded if record is None else len(ids)
            left = dialogue.left if dialogue.left is None or i not in sampled else dialogue.left - len(new)
            acted.actions.append(action)
            acted.memory.append(
                replace(
                    with_message(dialogue, "assistant", action),
                    ids=ids,
                    recorded=recorded,
                    is_fresh=dialogue.is_fresh and record is None,
                    left=left,
                )
            )
            acted.records.append(record)
            acted.stops.append(self._stop(dialogue, sampled[i]) if i in sampled else None)
        acted.actions = tuple(acted.actions)
        return acted

    def collate(self, rows: Sequence[Sequence[Episode]], *, learn: Learn = "own", last: Last = "open") -> Decisions:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.collate`; a token is a decision.

        Raises:
            ValueError: An episode was not this policy's, or the chat template cannot be appended to.
        """
        written = [
            (b, transcript)
            for b, row in enumerate(rows)
            for episode in row
            for transcript in self._transcriber.transcripts(episode, learn, last)
        ]
        decisions = layout(
            [[transcript.episode] for _, transcript in written],
            [[transcript.widths] for _, transcript in written],
            last="never" if learn == "label" else last,
            source=[b for b, _ in written],
        )[0]
        ids, fresh = (torch.zeros(decisions.mask.shape, dtype=kind) for kind in (torch.long, torch.bool))
        shown = [picture for _, transcript in written for picture in transcript.pictures]
        said, distinct = numbered([transcript.ids for _, transcript in written], shown)
        for b, (_, transcript) in enumerate(written):
            decisions.logp[b, decisions.mask[b]] = torch.tensor(transcript.logps, dtype=torch.float32)
            decisions.cut[b, decisions.mask[b]] = torch.tensor(transcript.cuts, dtype=torch.bool)
            kept = said[b][: ids.shape[1]]
            ids[b, : len(kept)] = torch.tensor(kept)
            fresh[b, [at for at in transcript.fresh if at < len(kept)]] = True
        decisions.inputs = {"ids": spelled(ids, distinct), **({"fresh": fresh} if fresh.any() else {})}
        if distinct:
            decisions.inputs["pictures"] = Pictures(ids.clamp(max=0), distinct)
        return decisions

    def evaluate(self, decisions: Decisions) -> Evaluation:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.evaluate`."""
        mask = decisions.mask
        read = mask | decisions.final
        if not read.any():  # rows in which the context was full from the start
            nothing = torch.zeros(mask.shape, device=mask.device)
            return Evaluation(nothing, nothing, None if self.critic is None else nothing)
        if "pictures" in decisions.inputs and self._blindness is not None and torch.is_grad_enabled():
            self._blindness.check(self, decisions)
        ids, chosen, wanted, pictures = self._spelled(decisions)
        with self._precision():
            has_head = isinstance(self.critic, ValueHead)
            final = wanted & ~chosen if has_head else None
            logp, entropy, hidden = self._scorer(ids, chosen, final, temperature=self.temperature, pictures=pictures)
            value = None
            if self.critic is not None:
                values = self.critic(hidden) if has_head else self.critic(ids, wanted, self.sight, pictures)
                value = placed(values, read)
        return Evaluation(placed(logp, mask), placed(entropy, mask), value)

    def appraise(
        self,
        decisions: Decisions,
        *,
        value: bool = True,
        q: bool = True,
        numbers: Tensor | None = None,
        critic: nn.Module | None = None,
    ) -> Appraisal:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.appraise`; of other tokens nothing is said."""
        critic = self.critic if critic is None else critic
        if not isinstance(critic, TokenCritic) or numbers is not None:
            raise TypeError("a language model appraises the tokens that were decided, after add_action_critic")
        read = decisions.mask | decisions.final
        ids, chosen, wanted, pictures = self._spelled(decisions)
        with self._precision():
            values, qs = critic.appraise(ids, wanted if value else None, chosen if q else None, self.sight, pictures)
        return Appraisal(
            None if values is None else placed(values, read),
            None if qs is None else torch.stack([placed(each, decisions.mask) for each in qs]),
        )

    def _spelled(self, decisions: Decisions) -> tuple[Tensor, Tensor, Tensor, Sequence[Picture]]:
        """Return what is read: ids, where something was decided, where a value is asked, and the pictures by number."""
        ids, pictures = decisions.inputs["ids"], ()
        if "pictures" in decisions.inputs:
            ids, pictures = decisions.inputs["pictures"].within(ids)
        columns = ids, decisions.mask, decisions.mask | decisions.final
        ids, chosen, read = contexts(decisions.inputs["fresh"], *columns) if "fresh" in decisions.inputs else columns
        return ids, chosen, read, pictures

    def snapshot(self) -> TrainablePolicy:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.snapshot`.

        A model with LoRA is its own reference, with the adapter switched off, and takes no memory.
        """
        if hasattr(self.model, "disable_adapter"):
            return WithoutAdapter(self)
        return copy.deepcopy(self, {id(self.tokenizer): self.tokenizer}).requires_grad_(False)

    def add_critic(self, kind: Literal["head", "shared", "own"] = "head") -> None:
        """Add a critic; see the class.

        Raises:
            ValueError: There is no such kind.
        """
        if kind not in ("head", "shared", "own"):
            raise ValueError(f"critic must be 'head', 'shared', 'own' or None, got {kind!r}")
        made = OwnCritic(self.model) if kind == "own" else ValueHead(width(self.model), detach=kind == "head")
        self.critic = made.to(self.engine.device)

    def add_action_critic(
        self, ensemble: int = 2, *, hidden: Sequence[int] = (256, 256), normalize: bool = False, seed: int = 0
    ) -> None:
        """See :meth:`~tetrathlon.agents.trainable.TrainablePolicy.add_action_critic`; it is a copy of the model."""
        critic = TokenCritic(self.model, ensemble, hidden=hidden, normalize=normalize, seed=seed)
        self.critic = critic.to(self.engine.device)

    def get_extra_state(self) -> dict[str, Any]:
        """Return the stream of samples, so that a loaded policy goes on with it."""
        return {"engine": self.engine.get_state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`get_extra_state` returned."""
        self.engine.set_state(state["engine"])

    def _precision(self) -> Any:
        return nullcontext() if self.autocast is None else torch.autocast(self.engine.device.type, self.autocast)

    def _read(self, observation: Any, old: Dialogue | None, info: dict[str, Any]) -> tuple[Dialogue, str]:
        """Return the dialogue with the new message in it, and how the prompt opens the answer."""
        text, array = observed(observation, info)
        # A copy: an environment may write its next picture into the same array.
        picture = looked_at(self.sight, None if array is None else array.copy())
        limit = token_limit(info, old.limit if old is not None else None)
        if old is None:
            system: str = given(info, "system", str, "a string", "")
            tools, examples = (tuple(given(info, name, list | tuple, "a list", ())) for name in ("tools", "examples"))
            new, opened = self.chat.first(system, tools, examples, text, picture=picture)
            left = token_limit(info, None, "episode_tokens")
            begun = Dialogue(ids=tuple(new or self._start), messages=examples, system=system, tools=tools, left=left)
            dialogue = with_message(begun, "user", text, picture)
        else:
            role = given(info, "role", str, "'user' or 'tool'", "user")
            if role not in ("user", "tool"):
                raise ValueError(f"info['role'] must be 'user' or 'tool', got {role!r}")
            dialogue, opened = self.chat.heard(old, role, text, picture)
        return replace(dialogue, limit=limit), opened

    def _stop(self, dialogue: Dialogue, completion: Completion) -> str:
        """Return why a completion stopped, the limit of the episode told from that of the turn."""
        is_short = dialogue.left is not None and dialogue.left < (least(dialogue.limit, self.max_tokens) or 0)
        return "episode_length" if completion.stop == "length" and is_short else completion.stop
