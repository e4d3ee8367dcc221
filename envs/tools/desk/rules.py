"""What the policy says of a request: the rules of :mod:`~tetrathlon.envs.tools.desk.policy` as code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from tetrathlon.envs.tools.desk.policy import Policy
from tetrathlon.envs.tools.desk.shop import Shop

Call = tuple[str, dict[str, Any]]
Wish = Mapping[str, Any]
"""What a customer wants: ``kind``, ``customer`` (who it is), ``is_known`` (whether they can be verified), ``order``,
``items``, ``variant``, ``address`` and ``payment``, as far as the kind needs them."""
Refusal = Literal[
    "not_verified",
    "not_your_order",
    "already_shipped",
    "already_delivered",
    "not_delivered",
    "window_passed",
    "final_sale",
    "out_of_stock",
    "dearer_variant",
    "not_enough_balance",
    "whole_order_only",
    "order_under_way",
    "other_payment",
    "too_early",
]
"""Why a request is declined."""
Handover = Literal["above_limit", "marked_delivered", "other"]
"""Why a case is given to a human; no policy knows another reason."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the policy says of a request."""

    kind: str
    """``grant``, ``decline`` or ``transfer``."""
    reasons: tuple[str, ...] = ()
    """All that hold; each is a good one."""
    calls: tuple[Call, ...] = ()
    """What is to be done, in an order that works."""


class Case:
    """A request, with what the rules look at.

    Args:
        shop: As it is when the request is made.
        policy: The policy.
        wish: The request.
        today: The day of the call.
    """

    def __init__(self, shop: Shop, policy: Policy, wish: Wish, today: date) -> None:
        self.shop, self.policy, self.wish, self.today = shop, policy, wish, today
        self.order_id: str = wish.get("order", "")
        self.order: dict[str, Any] = shop.order(self.order_id) if self.order_id else {}
        self.customer = shop.customer(wish["customer"])
        self.items = {key: self.order["items"][key] for key in wish.get("items", ())}
        self.state: str = self.order.get("state", "")
        self.reasons: list[str] = []
        self.handovers: list[str] = []
        self.calls: list[Call] = []

    def decline(self, reason: str, holds: bool) -> None:
        """Note a reason to decline, where it holds."""
        if holds:
            self.reasons.append(reason)

    def days_since(self, event: str) -> int:
        """Return the days since the order was ``shipped`` or ``delivered``."""
        return (self.today - date.fromisoformat(self.order[event])).days

    def do(self, name: str, **arguments: Any) -> None:
        """Note a call that grants the request."""
        self.calls.append((name, arguments))

    def pay_back(self, amount: int, payment: str = "") -> None:
        """Note the refund that grants the request."""
        self.do("refund", order_id=self.order_id, payment_id=payment or self.order["payment"], amount=amount)

    def check_return(self) -> None:
        """Apply the rules of returns and exchanges."""
        self.decline("not_delivered", self.state != "delivered")
        days = self.policy.window + (self.policy.gold_days if self.customer["tier"] == "gold" else 0)
        self.decline("window_passed", self.state == "delivered" and self.days_since("delivered") > days)
        self.decline("final_sale", any(item["category"] in self.policy.final for item in self.items.values()))

    def check_limit(self, amount: int) -> None:
        """Apply the limit of what the desk refunds."""
        if amount > self.policy.limit:
            self.handovers.append("above_limit")


def judge(shop: Shop, policy: Policy, wish: Wish, today: date) -> Verdict:
    """Return what the policy says of a request.

    Args:
        shop: As it is when the request is made.
        policy: The policy.
        wish: The request.
        today: The day of the call.
    """
    if not wish["is_known"]:
        return Verdict("decline", ("not_verified",))
    case = Case(shop, policy, wish, today)
    if case.order_id and case.order["customer"] != wish["customer"]:
        return Verdict("decline", ("not_your_order",))
    RULES[wish["kind"]](case)
    if case.reasons:
        return Verdict("decline", tuple(case.reasons))
    if case.handovers:
        return Verdict("transfer", tuple(case.handovers))
    return Verdict("grant", calls=tuple(case.calls))


def _cancel_order(case: Case) -> None:
    case.decline("already_shipped", case.state != "processing")
    case.do("cancel_order", order_id=case.order_id)
    case.pay_back(case.order["paid"])


def _cancel_item(case: Case) -> None:
    (item_id,) = case.items
    case.decline("whole_order_only", not case.policy.single)
    case.decline("already_shipped", case.state != "processing")
    case.do("cancel_item", order_id=case.order_id, item_id=item_id)
    case.pay_back(case.items[item_id]["price"])


def _change_address(case: Case) -> None:
    if case.policy.redirect:
        case.decline("already_delivered", case.state == "delivered")
    else:
        case.decline("already_shipped", case.state != "processing")
    case.do("change_address", order_id=case.order_id, **case.wish["address"])


def _change_profile(case: Case) -> None:
    orders = case.shop.orders_of(case.wish["customer"]).values()
    case.decline("order_under_way", any(order["state"] == "shipped" for order in orders))
    case.do("change_profile", customer_id=case.wish["customer"], **case.wish["address"])


def _change_payment(case: Case) -> None:
    payment = case.wish["payment"]
    balance = case.customer["payments"][payment].get("balance")
    case.decline("already_shipped", case.state != "processing")
    case.decline("not_enough_balance", balance is not None and balance < case.order["paid"])
    case.do("change_payment", order_id=case.order_id, payment_id=payment)


def _change_variant(case: Case) -> None:
    (item_id,) = case.items
    item, wanted = case.items[item_id], case.wish["variant"]
    variant = case.shop.data["products"][item["product"]]["variants"][wanted]
    if case.state == "shipped":
        case.reasons += ["already_shipped", "not_delivered"]
    elif case.state != "processing":
        case.check_return()
    case.decline("out_of_stock", variant["stock"] < 1)
    case.decline("dearer_variant", variant["price"] > item["price"] and not case.policy.dearer)
    case.do("exchange_item", order_id=case.order_id, item_id=item_id, variant_id=wanted)


def _return_items(case: Case) -> None:
    case.check_return()
    payment = case.wish.get("payment", "")
    if payment and payment != case.order["payment"]:
        is_gift_card = "balance" in case.customer["payments"][payment]
        case.decline("other_payment", not (is_gift_card and case.policy.gift_refund))
    case.do("return_items", order_id=case.order_id, item_ids=list(case.items))
    case.pay_back(sum(item["price"] - case.policy.fee for item in case.items.values()), payment)


def _lost_order(case: Case) -> None:
    if case.state == "delivered":
        case.handovers.append("marked_delivered")
    else:
        case.decline("too_early", case.state != "shipped" or case.days_since("shipped") < case.policy.lost_days)
    case.check_limit(case.order["paid"])
    case.do("report_problem", order_id=case.order_id, problem="lost")
    case.pay_back(case.order["paid"])


def _damaged_item(case: Case) -> None:
    (item_id,) = case.items
    case.decline("not_delivered", case.state != "delivered")
    case.decline("window_passed", case.state == "delivered" and case.days_since("delivered") > case.policy.damage_days)
    case.check_limit(case.items[item_id]["price"])
    case.do("report_problem", order_id=case.order_id, problem="damaged", item_id=item_id)
    case.pay_back(case.items[item_id]["price"])


RULES: dict[str, Callable[[Case], None]] = {
    "cancel_order": _cancel_order,
    "cancel_item": _cancel_item,
    "change_address": _change_address,
    "change_profile": _change_profile,
    "change_payment": _change_payment,
    "change_variant": _change_variant,
    "exchange_item": _change_variant,
    "return_items": _return_items,
    "lost_order": _lost_order,
    "damaged_item": _damaged_item,
}
"""Kind of a request -> its rule."""
