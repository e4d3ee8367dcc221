"""Small policies that keep the trainable protocol; each is as short as a user's own could be."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tetrathlon.agents.action_values import Appraisal
from tetrathlon.agents.decisions import Decisions, Evaluation, Last, Learn, layout
from tetrathlon.agents.policy import Acted
from tetrathlon.agents.steps import collate_steps
from tetrathlon.agents.trainable import TrainablePolicy
from tetrathlon.envs.episode import Episode

Rows = Sequence[Sequence[Episode]]


class TableCritic(nn.Module):
    """V and Q of each state, as parameters."""

    def __init__(self, states: int, actions: int) -> None:
        super().__init__()
        self.v = nn.Parameter(torch.zeros(states))
        self.action_values = nn.Parameter(torch.zeros(states, actions))

    def forward(self, state: Tensor) -> Tensor:
        return self.v[state]


class TablePolicy(TrainablePolicy):
    """A policy that is one table of parameters: logits [states, actions]."""

    def __init__(self, states: int, actions: int, seed: int = 0) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(states, actions))
        self.critic = TableCritic(states, actions)
        self.generator = torch.Generator().manual_seed(seed)

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        with torch.no_grad():
            logp = self.logits[torch.as_tensor(np.asarray(observations))].log_softmax(-1)
        drawn = logp.argmax(-1) if greedy else torch.multinomial(logp.exp(), 1, generator=self.generator)[:, 0]
        actions = drawn.numpy().copy()
        records: list[dict[str, Any] | None] = [{"logp": logp[i, a].numpy()} for i, a in enumerate(actions)]
        for i, other in enumerate(forced or []):
            if other is not None:
                actions[i], records[i] = other, None
        return Acted(actions, [()] * len(actions), records)

    def collate(self, rows: Rows, *, learn: Learn = "own", last: Last = "open") -> Decisions:
        return collate_steps(
            rows,
            lambda observations: {"state": [int(state) for state in observations]},
            lambda actions, records: {"action": [int(action) for action in actions]},
            learn=learn,
            last=last,
        )

    def evaluate(self, decisions: Decisions) -> Evaluation:
        logp = self.logits[decisions.inputs["state"]].log_softmax(-1)
        entropy = -(logp.exp() * logp).sum(-1)
        chosen = logp.gather(-1, decisions.inputs["action"][..., None])[..., 0]
        return Evaluation(chosen, entropy, self.critic(decisions.inputs["state"]))

    def add_action_critic(self, ensemble: int = 2, **options: Any) -> None:
        """Do nothing: the table has Q, of K = 1."""

    def appraise(
        self,
        decisions: Decisions,
        *,
        value: bool = True,
        q: bool = True,
        numbers: Tensor | None = None,
        critic: nn.Module | None = None,
    ) -> Appraisal:
        table: Any = self.critic if critic is None else critic
        state = decisions.inputs["state"]
        worth = table.action_values[state, decisions.inputs["action"]] if q else None
        return Appraisal(table(state) if value else None, None if worth is None else worth[None])

    def snapshot(self) -> TablePolicy:
        return copy.deepcopy(self).requires_grad_(False)


class MLPPolicy(TrainablePolicy):
    """Two tanh layers for the policy and two for the critic."""

    def __init__(self, size: int, actions: int, seed: int = 0, hidden: int = 64) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.actor = _mlp(size, actions, hidden, 0.01)
            self.critic = _mlp(size, 1, hidden, 1.0)

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        with torch.no_grad():
            logp = self.actor(torch.as_tensor(np.asarray(observations))).log_softmax(-1)
        drawn = logp.argmax(-1) if greedy else torch.multinomial(logp.exp(), 1, generator=self.generator)[:, 0]
        chosen = logp.gather(-1, drawn[:, None])[:, 0].numpy()
        return Acted(drawn.numpy(), [()] * len(drawn), [{"logp": value} for value in chosen])

    def collate(self, rows: Rows, *, learn: Learn = "own", last: Last = "open") -> Decisions:
        return collate_steps(
            rows,
            lambda observations: {"observation": np.stack(observations)},
            lambda actions, records: {"action": [int(action) for action in actions]},
            learn=learn,
            last=last,
        )

    def evaluate(self, decisions: Decisions) -> Evaluation:
        logp = self.actor(decisions.inputs["observation"]).log_softmax(-1)
        entropy = -(logp.exp() * logp).sum(-1)
        chosen = logp.gather(-1, decisions.inputs["action"][..., None])[..., 0]
        return Evaluation(chosen, entropy, self.critic(decisions.inputs["observation"])[..., 0])

    def snapshot(self) -> MLPPolicy:
        return copy.deepcopy(self).requires_grad_(False)


class ChunkPolicy(TablePolicy):
    """A table policy that decides once in ``chunk`` environment steps and plays on open loop in between."""

    def __init__(self, states: int, actions: int, chunk: int, seed: int = 0) -> None:
        super().__init__(states, actions, seed)
        self.length = chunk

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        acted = super().act(observations, memory, greedy=greedy)
        queues = [list(queue) if queue else [] for queue in memory or [None] * len(acted.actions)]
        for i, queue in enumerate(queues):
            if queue:
                acted.actions[i], acted.records[i] = queue.pop(0), None
            else:
                queue += [acted.actions[i]] * (self.length - 1)
        return Acted(acted.actions, queues, acted.records)


class CharTablePolicy(TrainablePolicy):
    """A language model of one table: the logits of a character given the one before it.

    Its record holds the given and the sampled ids; a turn is at most ``longest`` characters, ended by ``end``.
    """

    def __init__(self, alphabet: str, end: str, longest: int = 4, seed: int = 0) -> None:
        super().__init__()
        self.alphabet, self.end, self.longest = alphabet, alphabet.index(end), longest
        size = len(alphabet)
        generator = torch.Generator().manual_seed(seed)
        self.table = nn.Parameter(torch.randn(size, size, generator=generator))
        self.critic = nn.Embedding(size, 1)
        self.generator = generator

    def encode(self, text: str) -> list[int]:
        return [self.alphabet.index(character) for character in text]

    def act(
        self,
        observations: Any,
        memory: Sequence[Any] | None = None,
        *,
        infos: Sequence[dict[str, Any]] | None = None,
        greedy: bool = False,
        forced: Sequence[Any] | None = None,
    ) -> Acted:
        actions: list[str] = []
        memories: list[list[int]] = []
        records: list[dict[str, Any] | None] = []
        stops: list[str | None] = []
        for i, observation in enumerate(observations):
            before = list((memory[i] if memory else None) or [])
            given, ids, logps = self.encode(observation), [], []
            if forced is not None and forced[i] is not None:
                ids = [*self.encode(forced[i]), self.end]
                records.append(None)
            else:
                last = given[-1]
                while len(ids) < self.longest and self.end not in ids:
                    with torch.no_grad():
                        logp = self.table[last].log_softmax(-1)
                    last = int(logp.argmax() if greedy else torch.multinomial(logp.exp(), 1, generator=self.generator))
                    ids.append(last)
                    logps.append(float(logp[last]))
                records.append({"given": np.array(given), "ids": np.array(ids), "logp": np.array(logps)})
            memories.append([*before, *given, *ids])
            actions.append("".join(self.alphabet[t] for t in ids if t != self.end))
            stops.append("eos" if self.end in ids else "length")
        return Acted(tuple(actions), memories, records, stops)

    def collate(self, rows: Rows, *, learn: Learn = "own", last: Last = "open") -> Decisions:
        widths: list[list[list[Any]]] = []
        tokens: list[list[int]] = []
        logps: list[float] = []
        parts: list[list[Episode]] = []
        source: list[int] = []
        for b, episode in enumerate(chain.from_iterable(rows)):
            # A label is learnt in a row of its own, after the learner's history, as masked prefix.
            asked = [i for i, step in enumerate(episode.steps) if step.label is not None]
            for end in asked if learn == "label" else [len(episode) - 1]:
                row: list[int] = []
                sizes: list[Any] = []
                for position, step in enumerate(episode.steps[: end + 1]):
                    given = self.encode(step.observation)
                    own = step.record["ids"].tolist() if step.record else [*self.encode(step.action), self.end]
                    if learn == "label" and position == end:
                        own = [*self.encode(step.label), self.end]
                    decides = {"own": step.record is not None, "label": position == end, "action": True}[learn]
                    row += given + own
                    sizes.append((len(given), len(own)) if decides else (len(given) + len(own), 0))
                    if decides:
                        known = step.record is not None and learn != "label"
                        logps += (step.record or {})["logp"].tolist() if known else [np.nan] * len(own)
                tail = self.encode(episode.final_observation or "")
                tokens.append([*row, *tail, self.end])  # past the row's last position it is not read
                parts.append([replace(episode, steps=episode.steps[: end + 1])])
                widths.append([[*sizes, len(tail)]])
                source.append(b)
        decisions, _ = layout(parts, widths, last="never" if learn == "label" else last, source=source)
        decisions.logp[decisions.mask] = torch.tensor(logps, dtype=torch.float32)
        padded = torch.zeros(decisions.mask.shape, dtype=torch.long)
        for b, ids in enumerate(tokens):
            kept = ids[: padded.shape[1]]
            padded[b, : len(kept)] = torch.tensor(kept)
        decisions.inputs = {"tokens": padded}
        return decisions

    def scores(self, decisions: Decisions) -> Tensor:
        """Return the logits of each position, [B, T, V]; those of the first are not read."""
        before = decisions.inputs["tokens"].roll(1, dims=1)
        return self.table[before]

    def evaluate(self, decisions: Decisions) -> Evaluation:
        return self.evaluate_scores(decisions, self.scores(decisions))

    def evaluate_scores(self, decisions: Decisions, scores: Tensor) -> Evaluation:
        logp = scores.log_softmax(-1)
        chosen = logp.gather(-1, decisions.inputs["tokens"][..., None])[..., 0]
        value = self.critic(decisions.inputs["tokens"].roll(1, dims=1))[..., 0]
        return Evaluation(chosen, -(logp.exp() * logp).sum(-1), value)

    def snapshot(self) -> CharTablePolicy:
        twin = CharTablePolicy(self.alphabet, self.alphabet[self.end], self.longest)
        twin.load_state_dict(self.state_dict())
        return twin.requires_grad_(False)


def _mlp(inputs: int, outputs: int, hidden: int, gain: float) -> nn.Sequential:
    sizes = [(inputs, hidden, 2**0.5), (hidden, hidden, 2**0.5), (hidden, outputs, gain)]
    layers: list[nn.Module] = []
    for fan_in, fan_out, scale in sizes:
        layer = nn.Linear(fan_in, fan_out)
        nn.init.orthogonal_(layer.weight, scale)
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.Tanh()]
    return nn.Sequential(*layers[:-1])
