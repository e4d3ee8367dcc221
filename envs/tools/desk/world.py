"""A service desk: the tools of who works there, and a record of whether they kept the policy."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Literal

from tetrathlon.envs.tools.desk.announcement import Announcement, Clarity
from tetrathlon.envs.tools.desk.policy import Policy
from tetrathlon.envs.tools.desk.rules import Handover, Refusal
from tetrathlon.envs.tools.desk.shop import Leaf, Shop, id_of
from tetrathlon.envs.tools.desk.user import ScriptedUser
from tetrathlon.envs.tools.tool import ToolError, tool
from tetrathlon.envs.tools.world import World

LEAST_FAILURES = 2
"""How often a customer must have fitted nobody before that is a reason to decline."""
_FIXED = ("policy", "plan", "start", "shop", "user", "is_scripted")


class DeskWorld(World):
    """A service desk: the tools of who works there, and a record of whether they kept the policy.

    The tools keep no policy: what it forbids is done, and noted as a fault.

    Args:
        store: The database as it is at the start, from :meth:`~tetrathlon.envs.tools.desk.shop.Shop.dump`.
        policy: The policy.
        script: What the customer knows and wants.
        plan: For each request what is right: ``verdict``, ``reasons``, ``order``, and ``steps``, each with its ``call``
            and the ``leaves`` of the database that it changes.
        is_scripted: Whether the customer is the scripted one, whose consent is known.
    """

    def __init__(
        self,
        store: str,
        policy: Policy,
        script: Mapping[str, Any],
        plan: list[dict[str, Any]],
        is_scripted: bool = True,
    ) -> None:
        self.shop = Shop.load(store)
        self.start = store
        """The database as it was at the start, as text."""
        self.policy, self.plan, self.is_scripted = policy, plan, is_scripted
        self.user = ScriptedUser(script)
        self.conversation: list[list[str]] = []
        """Who said what so far: ``user`` or ``assistant``, and the text."""
        self.proofs: dict[str, list[str]] = {}
        """Customer -> by what they were found."""
        self.opened: list[str] = []
        """Orders that were looked at."""
        self.failures = 0
        """How often what was said fitted nobody."""
        self.declined: list[int] = []
        """Requests that were rightly declined."""
        self.handed_over = False
        """Whether the case was rightly given to a human."""
        self.faults: list[str] = []
        """How the policy was broken."""
        self.over = ""
        """Why the case is over; empty while it is not."""

    @tool
    def find_customer(self, name: str, postal_code: str = "", order_id: str = "") -> dict[str, Any]:
        """Find a customer by their full name and by a postal code, the number of an order of theirs, or both.

        Args:
            name: The full name.
            postal_code: The postal code of their profile.
            order_id: The number of an order of theirs, such as W12345.
        """
        self._check_open()
        if not name.strip() or not (postal_code.strip() or order_id.strip()):
            raise ToolError("give a name and a postal_code, an order_id or both")
        found = self.shop.find_customer(name, postal_code.strip(), order_id.strip())
        if found is None:
            self.failures += 1
            raise ToolError("no customer fits all that you gave")
        proofs = {"postal": postal_code, "order": order_id}
        known = self.proofs.setdefault(found, [])
        known += [proof for proof, text in proofs.items() if text.strip() and proof not in known]
        orders = {key: order["state"] for key, order in self.shop.orders_of(found).items()}
        return {"customer_id": found, **self.shop.customer(found), "orders": orders}

    @tool
    def get_order(self, order_id: str) -> dict[str, Any]:
        """Open an order: its state and days, where it goes, its items, how it was paid and what was refunded.

        Args:
            order_id: Such as W12345.
        """
        self._check_open()
        order, name = self.shop.order(order_id), id_of(order_id)
        if not self.is_verified(order["customer"]):
            self.faults.append(f"order {name} was opened before its customer was verified")
        elif name not in self.opened:
            self.opened.append(name)
        return {"order_id": name, **order}

    @tool
    def get_product(self, product: str) -> dict[str, Any]:
        """Look up a product: its category and its variants with prices and stock. Anybody may know it.

        Args:
            product: Its id, such as B1234, or its name.
        """
        self._check_open()
        key, found = self.shop.product(product)
        return {"product_id": key, **found}

    @tool
    def cancel_order(self, order_id: str) -> str:
        """Cancel a whole order. Nothing is refunded by that.

        Args:
            order_id: Such as W12345.
        """
        return self._change("cancel_order", order_id=order_id)

    @tool
    def cancel_item(self, order_id: str, item_id: str) -> str:
        """Take one item out of an order. Nothing is refunded by that.

        Args:
            order_id: Such as W12345.
            item_id: Such as I12345.
        """
        return self._change("cancel_item", order_id=order_id, item_id=item_id)

    @tool
    def return_items(self, order_id: str, item_ids: list[str]) -> str:
        """Take items back. Nothing is refunded by that.

        Args:
            order_id: Such as W12345.
            item_ids: All items of the order that are returned.
        """
        return self._change("return_items", order_id=order_id, item_ids=item_ids)

    @tool
    def exchange_item(self, order_id: str, item_id: str, variant_id: str) -> str:
        """Change an item for another variant; a difference in price goes over the payment method of the order.

        Args:
            order_id: Such as W12345.
            item_id: Such as I12345.
            variant_id: Such as V12345, of the same product.
        """
        return self._change("exchange_item", order_id=order_id, item_id=item_id, variant_id=variant_id)

    @tool
    def change_address(self, order_id: str, street: str, city: str, postal_code: str) -> str:
        """Change where an order goes.

        Args:
            order_id: Such as W12345.
            street: With the number, as the customer says it.
            city: The city.
            postal_code: The postal code.
        """
        return self._change("change_address", order_id=order_id, street=street, city=city, postal_code=postal_code)

    @tool
    def change_profile(self, customer_id: str, street: str, city: str, postal_code: str) -> str:
        """Change the address in the profile of a customer; their orders keep theirs.

        Args:
            customer_id: Such as C1234.
            street: With the number, as the customer says it.
            city: The city.
            postal_code: The postal code.
        """
        arguments = {"street": street, "city": city, "postal_code": postal_code}
        return self._change("change_profile", customer_id=customer_id, **arguments)

    @tool
    def change_payment(self, order_id: str, payment_id: str) -> str:
        """Change how an order is paid; what was paid goes back to the old method by itself.

        Args:
            order_id: Such as W12345.
            payment_id: Such as P1234, of the same customer.
        """
        return self._change("change_payment", order_id=order_id, payment_id=payment_id)

    @tool
    def report_problem(self, order_id: str, problem: Literal["lost", "damaged"], item_id: str = "") -> str:
        """Note that an order was lost, or that an item of it arrived damaged. Nothing is refunded by that.

        Args:
            order_id: Such as W12345.
            problem: What is wrong.
            item_id: The damaged item, such as I12345; empty for a lost order.
        """
        return self._change("report_problem", order_id=order_id, problem=problem, item_id=item_id)

    @tool
    def refund(self, order_id: str, payment_id: str, amount: int) -> str:
        """Pay back a part of what an order cost, or all of it.

        Args:
            order_id: Such as W12345.
            payment_id: Where the money goes, such as P1234.
            amount: How much.
        """
        return self._change("refund", order_id=order_id, payment_id=payment_id, amount=amount)

    @tool
    def decline(self, reason: Refusal, order_id: str = "") -> str:
        """Decline a request, as the policy says; the customer gets it in writing, with the reason.

        Args:
            reason: What stands in brackets behind the rule of the policy.
            order_id: The order that the request is about; empty where it is about none.
        """
        self._check_open()
        number = self._find_request("decline", reason, order_id)
        if number is None:
            self.faults.append(f"{reason} is not why a request may be declined, or nobody looked")
        elif number not in self.declined:
            self.declined.append(number)
        return f"Declined: {reason}. The customer has it in writing; they may have something to say to it."

    @tool
    def transfer_to_human(self, reason: Handover, order_id: str = "") -> str:
        """Give the case to a human and end it, only where the policy says that the request is for a human.

        Args:
            reason: What stands in brackets behind the rule of the policy.
            order_id: The order that the request is about.
        """
        self._check_open()
        number = self._find_request("transfer", reason, order_id)
        self.handed_over, self.over = number is not None, "transferred"
        if number is None:
            self.faults.append(f"{reason} is not why a request is for a human, or nobody looked")
        return "The case is with a human now."

    @tool
    def close_case(self) -> str:
        """Close the case, once everything that the customer wants was done or declined. It ends the conversation."""
        self._check_open()
        self.over = "closed"
        return "The case is closed."

    @property
    def knows_caller(self) -> bool:
        """Whether a customer was verified."""
        return any(map(self.is_verified, self.proofs))

    def hear(self, text: str) -> str:
        """Return what the scripted customer says to a text."""
        number = self.user.current
        said = self.user.hear(
            text,
            is_settled=self.is_settled(number),
            is_declined=number in self.declined,
            named=self._named(Announcement(text, self.shop)),
        )
        self.conversation += [["assistant", text], ["user", said]]
        if self.user.is_gone:
            self.over = "user_left"
        return said

    def is_settled(self, number: int) -> bool:
        """Tell whether a request was declined, or granted and done."""
        request = self.plan[number]
        if not request["steps"]:
            return number in self.declined
        return self.next_step(number) is None

    def next_step(self, number: int) -> dict[str, Any] | None:
        """Return what is still to be done for a request that is granted; None: nothing."""
        steps: list[dict[str, Any]] = self.plan[number]["steps"]
        return next((step for step in steps if not self._is_done(step)), None)

    def is_agreed(self, step: Mapping[str, Any]) -> bool:
        """Tell whether the scripted customer agreed to a step of the request that is spoken of."""
        return any(Announcement(text, self.shop).names(*step["call"]) for text in self.user.agreed)

    def is_right(self) -> bool:
        """Tell whether the database is as it shall be, every refusal was made, and the policy was kept."""
        verdicts = [request["verdict"] for request in self.plan]
        start = Shop.load(self.start)
        goal = {path: to for request in self.plan for step in request["steps"] for path, to in step["leaves"].items()}
        goal = {path: to for path, to in goal.items() if to != start.at(path)}
        if self.faults or self.shop.changes(start) != goal:
            return False
        if any(kind == "decline" and number not in self.declined for number, kind in enumerate(verdicts)):
            return False
        return self.handed_over == ("transfer" in verdicts)

    def get_state(self) -> Any:
        """See :meth:`World.get_state`."""
        kept = {name: value for name, value in vars(self).items() if name not in _FIXED}
        memory = {name: value for name, value in vars(self.user).items() if name != "script"}
        return {**copy.deepcopy({"kept": kept, "memory": memory}), "store": self.shop.dump()}

    def set_state(self, state: Any) -> None:
        """See :meth:`World.set_state`."""
        vars(self).update(copy.deepcopy(state["kept"]))
        vars(self.user).update(copy.deepcopy(state["memory"]))
        self.shop = Shop.load(state["store"])

    def _check_open(self) -> None:
        if self.over:
            raise ToolError("the case is closed")

    def is_verified(self, customer_id: str) -> bool:
        """Tell whether a customer was found by what the policy asks for."""
        return self.policy.verifies(frozenset(self.proofs.get(customer_id, ())))

    def _change(self, name: str, **arguments: Any) -> str:
        """Do it, and note what of it the policy forbids."""
        self._check_open()
        before = self.shop.copy()
        said = self.shop.do(name, arguments)
        whose = arguments.get("customer_id") or self.shop.order(arguments["order_id"])["customer"]
        if not self.is_verified(id_of(whose)):
            self.faults.append(f"{name} before the customer was verified")
        wanted, changes = self._wanted(), self.shop.changes(before)
        if self.is_scripted and not self._was_agreed(changes):
            self.faults.append(f"{name} before the customer agreed to it")
        for path, value in changes.items():
            if not _leads_to(before.at(path), value, wanted.get(path)):
                self.faults.append(f"{name} changed {path}, which was not to be changed so")
                break
        return said

    def _named(self, announcement: Announcement) -> Clarity:
        """Return what a text names of what is to be done for the request that is spoken of."""
        user, steps = self.user, self.plan[self.user.current]["steps"]
        if steps and (user.is_sure or not user.request["first"]):
            return announcement.clarity([step["call"] for step in steps if not self._is_done(step)])
        facts = user.request["facts"]
        values = [value for fact in ("order", "item") if fact in facts for value in facts[fact]["values"]]
        return announcement.clarity_of_wish(user.request["kind"], values)

    def _was_agreed(self, changes: Mapping[str, Leaf | None]) -> bool:
        """Tell whether all that changed belongs to what the scripted customer agreed to, as far as it is wanted."""
        steps = self.plan[self.user.current]["steps"]
        agreed = {path for step in steps if self.is_agreed(step) for path in step["leaves"]}
        return bool(self.user.agreed) and all(path in agreed for path in changes if path in self._wanted())

    def _is_done(self, step: Mapping[str, Any]) -> bool:
        return all(self.shop.at(path) == value for path, value in step["leaves"].items())

    def _wanted(self) -> dict[str, Leaf]:
        """Return what is to be changed: for the request that is spoken of, or for all, where that is not known."""
        requests = [self.plan[self.user.current]] if self.is_scripted else self.plan
        return {path: to for request in requests for step in request["steps"] for path, to in step["leaves"].items()}

    def _find_request(self, verdict: str, reason: str, order_id: str) -> int | None:
        """Return the request that is rightly ended so, if somebody has looked at what decides it."""
        last = self.user.current if self.is_scripted else len(self.plan) - 1
        fitting = [
            number
            for number, request in enumerate(self.plan[: last + 1])
            if request["verdict"] == verdict
            and reason in request["reasons"]
            and self._is_known(request, reason, order_id)
        ]
        left = [number for number in fitting if number not in self.declined]
        return next(iter(left or fitting), None)

    def _is_known(self, request: Mapping[str, Any], reason: str, order_id: str) -> bool:
        """Tell whether somebody has looked at what decides that a request ends for ``reason``."""
        order = request["order"]
        if reason == "not_verified":
            return self.failures >= LEAST_FAILURES and not self.knows_caller
        if not self.knows_caller or order not in ("", id_of(order_id)):
            return False
        return reason == "not_your_order" or not order or order in self.opened


def _leads_to(before: Leaf | None, after: Leaf | None, goal: Leaf | None) -> bool:
    """Tell whether a change is the one that is wanted, or a part of the way."""
    if isinstance(after, int) and isinstance(goal, int):
        old = before if isinstance(before, int) else 0
        return min(old, goal) <= after <= max(old, goal)
    return goal is not None and after == goal
