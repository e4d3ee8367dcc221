"""Serve a shop's customers: find out what they want, keep the policy, change the database or decline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar

import numpy as np

from tetrathlon.envs.arguments import some_of, whole
from tetrathlon.envs.grading.thinking import visible
from tetrathlon.envs.language.formats import AnswerFormat, PlainFormat
from tetrathlon.envs.language.task import Task
from tetrathlon.envs.tools.desk.draw import Draw
from tetrathlon.envs.tools.desk.expert import next_turn
from tetrathlon.envs.tools.desk.policy import Policy, draw_policy
from tetrathlon.envs.tools.desk.requests import KINDS, Request, draw_request, draw_second_thoughts
from tetrathlon.envs.tools.desk.rules import judge
from tetrathlon.envs.tools.desk.script import write_script
from tetrathlon.envs.tools.desk.shop import Shop
from tetrathlon.envs.tools.desk.stock import Stock
from tetrathlon.envs.tools.desk.world import DeskWorld
from tetrathlon.envs.tools.environment import ToolEnv
from tetrathlon.envs.tools.play import Play
from tetrathlon.envs.tools.results import Result, cut
from tetrathlon.envs.tools.task import ToolTask
from tetrathlon.envs.tools.tool import ToolDown
from tetrathlon.envs.tools.world import World

User = Callable[[list[dict[str, str]]], str]
"""Takes the conversation as a chat policy takes it that plays the customer, returns what the customer says next."""
END = "[end]"
"""By which a customer who is no script ends the conversation."""
_LONGEST_SAID = 4_000
_MOST_TRIES = 25
_SECOND_THOUGHTS = 0.4
"""Share of the granted requests of level 3 about which the customer changes their mind, where there is a choice."""
_MANNERS = (
    "You work at the service desk of a shop and speak with one customer. Today is {today}. The policy below binds you, "
    "whatever the customer says; where the customer and the records differ, the records count. Keep it to the letter: "
    "what breaks it once cannot be made good.\n\n"
    "{policy}\n\n"
    "A turn without a call is said to the customer, who answers; text beside a call is not. To grant a request, do "
    "all that the rules ask for; to refuse it, call decline with the order and the reason in brackets behind the rule, "
    "once you have looked at what decides it: never on a guess. Of several reasons that hold, give any. Where a rule "
    "says that a request is for a human and no reason to decline holds, call transfer_to_human; it ends the case. "
    "Customers may want more than one thing: ask. When nothing is left, close_case. Amounts are whole numbers.\n"
    "You have {turns} turns and {calls} calls."
)


def _no_answer(reply: str) -> None:
    return None


def _is_no_answer(reply: str) -> bool:
    return False


class ServiceDesk(ToolEnv):
    """Serve a customer of a shop, who wants something that the policy allows or forbids.

    ## Description
    A shop is drawn for each instance (customers, products, orders, payment methods), with a policy of its own, and a
    customer who wants one thing or two: cancel an order or an item, change an address, a payment method or a variant,
    exchange or return something, or have a refund for what is lost or damaged (``KINDS`` names them all). Half of the
    requests must be granted, the others declined or given to a human. The customer says only what is asked for, two
    facts a turn, insists on what was declined, and sometimes claims what is false, gives a wrong postal code, is
    somebody else than they say, or changes their mind. They agree to an announcement that says, in whatever words, what
    is changed and what decides it: the order or the items, the new variant, address or payment method, the amount of a
    refund; to any other they ask what exactly will be done.

    ## Observation Space
    `UnicodeText`: what the customer says (``info["role"]`` is ``"user"``) or results of calls (``"tool"``). The policy
    is the system message, as an operator would give it: it is there from the first turn on, and apart from what the
    customer says.

    ## Action Space
    `UnicodeText`: calls of the tools, or, without any, a text for the customer. Thinking is not heard.

    ## Rewards
    1 if the database at the end is exactly the one that it shall be, each request that must be refused was refused, and
    the policy was kept all the time, else 0. What the agent says counts only as what the customer agrees to:

    - A request is refused by the call ``decline`` with a reason that holds, or ``transfer_to_human``, and not before
      what decides it was looked at; a wrong one breaks the policy.
    - The policy is broken by each change that does not lead to the goal, even if it is undone; by a change for, or a
      look into an order of, a customer who was not verified; and by a change that no announcement named to which the
      customer had agreed.

    ## Starting State
    The policy, the shop and the requests are drawn.

    ## Episode End
    See ``ToolEnv``; ``stop_reason`` is ``closed``, ``transferred`` or ``user_left`` as well. However the episode ends,
    the same is graded.

    ## Arguments
    ``level``: 1 (by default), one request in a small shop; 2, a larger shop, with false claims, wrong postal codes and
    customers who do not know the number of their order; 3, two requests, one after the other, with second thoughts.
    ``kinds``: names of the requests to draw from, by default all. ``user``: ``"scripted"``, or a function given in
    Python that plays the customer: it takes messages (the system message says who it is and what it wants; what the
    agent says has the role ``user``) and returns a text, with ``[end]`` in it to end the conversation. Such episodes
    cannot be reproduced, nor can their settings be written as JSON; what such a customer agrees to is not graded, since
    nobody knows it; and one that raises or says nothing leaves the episode without a score. And those of ``ToolEnv``.

    ## Version History
    * v0: first version.

    Raises:
        ValueError: An argument is out of its range.
    """

    default_max_tokens: ClassVar[int] = 512
    default_max_turns: ClassVar[int] = 44
    default_max_calls: ClassVar[int] = 60
    formats: Mapping[str, AnswerFormat] = {"plain": PlainFormat(_no_answer, _is_no_answer, "")}
    world_decides: ClassVar[bool] = True
    answer_in = None  # type: ignore[assignment]  # nothing that several episodes could vote on

    def __init__(
        self, *, level: int = 1, kinds: Sequence[str] | None = None, user: str | User = "scripted", **kwargs: Any
    ) -> None:
        self.level = whole("level", level, 1, 3)
        self.kinds = some_of("kinds", kinds, KINDS)
        if user != "scripted" and not callable(user):
            raise ValueError(f'user must be "scripted" or a function, got {user!r}')
        self.user = user
        super().__init__(**kwargs)

    def generate(self, rng: np.random.Generator) -> Task:
        """Draw a policy, a shop, and what a customer wants of it."""
        draw = Draw(rng)
        for tries in count():
            # Kept for some tries, so that what few shops have is asked for as often; some pairs no shop has.
            if tries % _MOST_TRIES == 0:
                kinds = draw.some(self.kinds, 2) if len(self.kinds) > 1 else self.kinds * 2
                wanted = [(kind, draw.chance()) for kind in kinds]
            policy, stock = draw_policy(draw), Stock(draw, self.level)
            try:
                requests = self._draw_requests(draw, stock, policy, wanted)
            except LookupError:  # this shop and this policy have no such request
                continue
            # A later request must not change what is right for an earlier one.
            if judge(stock.shop, policy, requests[0].wish, stock.today) == requests[0].verdict:
                break
        script = write_script(draw, stock, policy, requests, self.level)
        shop = stock.shop.copy()
        plan = [_planned(request, shop) for request in requests]
        greeting = draw.pick(("Hello.", "Hi!", "Good day.", "Hello there."))
        question = f"{greeting} {script['requests'][0]['opening']}"
        world = {
            "today": stock.today.isoformat(),
            "store": stock.shop.dump(),
            "policy": policy.to_json(),
            "user": script,
        }
        return ToolTask(question, "", {"plan": plan}, world)

    def open(self, task: ToolTask) -> DeskWorld:
        """See :meth:`ToolEnv.open`."""
        policy = Policy.from_json(task.world["policy"])
        is_scripted = self.user == "scripted"
        return DeskWorld(task.world["store"], policy, task.world["user"], task.data["plan"], is_scripted)

    def start_info(self, task: Task) -> dict[str, Any]:
        """See :meth:`LanguageEnv.start_info`; the policy is the system message."""
        assert isinstance(task, ToolTask)
        return {**super().start_info(task), "system": self._write_system(task)}

    def demonstrate(self, task: Task) -> list[dict[str, str]]:
        """See :meth:`LanguageEnv.demonstrate`; each example has a policy of its own before it."""
        assert isinstance(task, ToolTask)
        first, *rest = super().demonstrate(task)
        rules = Policy.from_json(task.world["policy"]).write()
        head = f"(An example. Today is {task.world['today']}, and its policy is:\n{rules})\n\n"
        return [{**first, "content": head + first["content"]}, *rest]

    def is_right(self, task: ToolTask, answer: str | None, world: World) -> bool:
        """Tell whether all was done or refused that should be, and the policy was kept."""
        assert isinstance(world, DeskWorld)
        return world.is_right()

    def reply(self, play: Play, text: str) -> str | None:
        """Return what the customer says."""
        assert isinstance(play.world, DeskWorld)
        said = (visible(text) or "").strip()
        if not said:
            return "There is neither a tool call nor a text for the customer in this turn."
        said = cut(said, _LONGEST_SAID)
        return play.world.hear(said) if self.user == "scripted" else self._ask_user(play.task, play.world, said)

    def expert(self, play: Play) -> str:
        """Verify, ask, look, announce, do or decline, tell, close: whatever is next."""
        assert isinstance(play.world, DeskWorld)
        return next_turn(play.world)

    def _run_calls(self, play: Play, text: str) -> list[Result]:
        results = super()._run_calls(play, text)
        assert isinstance(play.world, DeskWorld)
        play.stop = play.world.over or play.stop
        return results

    def _write_question(self, task: Task) -> str:
        return task.question  # a customer knows nothing of formats and budgets

    def _write_system(self, task: ToolTask) -> str:
        policy = Policy.from_json(task.world["policy"])
        return _MANNERS.format(
            today=task.world["today"], policy=policy.write(), turns=self.max_turns, calls=self.max_calls
        )

    def _draw_requests(
        self, draw: Draw, stock: Stock, policy: Policy, wanted: Sequence[tuple[str, bool]]
    ) -> list[Request]:
        (kind, grant), (later, grants_later) = wanted
        first = draw_request(stock, policy, kind, grant=grant)
        requests = [first]
        # Nothing comes after a human took over, and somebody unknown gets nothing anyway.
        if self.level == 3 and first.wish["is_known"] and first.verdict.kind != "transfer":
            requests.append(draw_request(stock, policy, later, grant=grants_later, before=first))
        for request in requests:
            if self.level == 3 and request.verdict.kind == "grant" and draw.chance(_SECOND_THOUGHTS):
                draw_second_thoughts(stock, request)
        return requests

    def _ask_user(self, task: ToolTask, world: DeskWorld, said: str) -> str:
        assert callable(self.user)
        flipped = {"user": "assistant", "assistant": "user"}
        world.conversation.append(["assistant", said])
        messages = [
            {"role": "system", "content": _write_scene(task.world["user"])},
            {"role": "assistant", "content": task.question},
            *({"role": flipped[role], "content": content} for role, content in world.conversation),
        ]
        try:
            answer = self.user(messages)
        except Exception as error:  # foreign code
            raise ToolDown(f"the simulated customer raised {type(error).__name__}: {error}") from error
        if not isinstance(answer, str) or not (answer := (visible(answer) or "").strip()):
            raise ToolDown("the simulated customer said nothing")
        answer = cut(answer, _LONGEST_SAID)
        if END in answer:
            world.over = "user_left"
            answer = answer.replace(END, "").strip() or "Goodbye."
        world.conversation.append(["user", answer])
        return answer


def _planned(request: Request, shop: Shop) -> dict[str, Any]:
    """Return what is right to do for a request, and do it in ``shop``."""
    steps = []
    for name, arguments in request.verdict.calls:
        before = shop.copy()
        shop.do(name, arguments)
        steps.append({"call": [name, arguments], "leaves": shop.changes(before)})
    verdict = request.verdict
    order = request.wish.get("order", "")
    return {"verdict": verdict.kind, "reasons": list(verdict.reasons), "order": order, "steps": steps}


def _write_scene(script: Mapping[str, Any]) -> str:
    """Return what a customer who is no script is told of their part."""
    wishes = []
    for request in script["requests"]:
        facts = " ".join(fact["text"] for fact in request["facts"].values())
        first = " ".join(fact["text"] for fact in request["first"].values())
        thoughts = (
            f" At first you say: {first} When you are to agree, you change your mind to the above." if first else ""
        )
        claims = (
            f" If it is declined, insist once or twice: {' '.join(request['insists'])}" if request["insists"] else ""
        )
        wishes.append(f"- {request['opening']} {facts}{thoughts}{claims}")
    postal = ", then ".join(script["postal"])
    return (
        "You play a customer who talks with the service desk of a shop. Stay in your part. Answer in one or two "
        "sentences, say only what you are asked for, and invent nothing.\n"
        f"Your name is {script['name']}, your postal code {postal}, an order of yours {script['order']}.\n"
        "You want, one after the other:\n" + "\n".join(wishes) + "\n"
        f"When all was done or finally declined, say goodbye and write {END}."
    )
