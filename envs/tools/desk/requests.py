"""Requests of customers: what they want, drawn so that the policy grants or refuses it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tetrathlon.envs.tools.desk.policy import Policy
from tetrathlon.envs.tools.desk.rules import RULES, Verdict, judge
from tetrathlon.envs.tools.desk.stock import Stock

_STATES: dict[str, tuple[str, ...]] = {
    "cancel_order": ("processing", "processing", "shipped", "delivered"),
    "cancel_item": ("processing", "processing", "processing", "shipped"),
    "change_address": ("processing", "processing", "shipped", "shipped", "delivered"),
    "change_payment": ("processing", "processing", "processing", "shipped"),
    "change_variant": ("processing", "processing", "processing", "shipped"),
    "exchange_item": ("delivered",),
    "return_items": ("delivered",) * 9 + ("shipped",),
    "lost_order": ("shipped", "shipped", "shipped", "shipped", "delivered"),
    "damaged_item": ("delivered",),
}
"""Kind -> states of the order, each as likely as the next; kinds without an order have none."""
_MOST_TRIES = 40
_WHO = 0.12
"""Share of the refused requests that come from somebody who cannot be verified; likewise about others' orders."""


@dataclass(slots=True)
class Request:
    """What a customer wants, and what is right to do."""

    wish: dict[str, Any]
    """See :data:`~tetrathlon.envs.tools.desk.rules.Wish`."""
    verdict: Verdict
    """What the policy says of it."""
    first: dict[str, Any] = field(default_factory=dict)
    """What of the wish was another before the customer changed their mind."""


def draw_request(stock: Stock, policy: Policy, kind: str, *, grant: bool, before: Request | None = None) -> Request:
    """Draw a request, and the order that it is about.

    Args:
        stock: The database; the order is added.
        policy: The policy.
        kind: One of the rules' kinds.
        grant: Whether the policy shall grant it.
        before: A request that was granted before this one.

    Raises:
        LookupError: None was found.
    """
    draw = stock.draw
    products = stock.take_products(draw.between(2, 3))
    refused_by = draw.below(100) / 100
    stranger = not grant and before is None and refused_by < _WHO
    foreign = (
        not grant and _WHO <= refused_by < 2 * _WHO and kind in _STATES and policy.identity in ("postal", "either")
    )
    shop = stock.shop
    if before is not None:
        shop = shop.copy()
        for name, arguments in before.verdict.calls:
            shop.do(name, arguments)
    for _ in range(_MOST_TRIES):
        wish: dict[str, Any] = {"kind": kind, "customer": stock.caller, "is_known": not stranger}
        if kind in _STATES:
            _draw_order(stock, policy, wish, products, stock.other() if foreign else stock.caller)
        elif draw.chance(0.4):
            wish["other_order"] = stock.add_order(stock.caller, "shipped", products[:1])
        if kind in ("change_address", "change_profile"):
            wish["address"] = draw.address()
        added = wish.get("order") or wish.get("other_order")
        if added:
            shop.data["orders"][added] = stock.data["orders"][added]
        verdict = judge(shop, policy, wish, stock.today)
        if (verdict.kind == "grant") is grant:
            return Request(wish, verdict)
        for data in (shop.data, stock.data):
            data["orders"].pop(added, None)
    raise LookupError(kind)


def draw_second_thoughts(stock: Stock, request: Request) -> None:
    """Let the customer want something else at first, where the kind has something to choose."""
    wish, draw = request.wish, stock.draw
    if "address" in wish:
        request.first["address"] = draw.address()
    elif "variant" in wish:
        item = stock.data["orders"][wish["order"]]["items"][wish["items"][0]]
        variants = stock.data["products"][item["product"]]["variants"]
        others = [key for key in variants if key not in (item["variant"], wish["variant"]) and variants[key]["stock"]]
        if others:
            request.first["variant"] = draw.pick(others)
    elif wish["kind"] == "change_payment":
        paid_with = stock.data["orders"][wish["order"]]["payment"]
        payments = stock.data["customers"][wish["customer"]]["payments"]
        request.first["payment"] = draw.pick([key for key in payments if key not in (paid_with, wish["payment"])])


def _draw_order(stock: Stock, policy: Policy, wish: dict[str, Any], products: list[str], owner: str) -> None:
    draw, kind = stock.draw, wish["kind"]
    state = draw.pick(_STATES[kind])
    days = _draw_days(stock, policy, kind, state)
    wish["order"] = stock.add_order(owner, state, products, days)
    order = stock.data["orders"][wish["order"]]
    items = list(order["items"])
    if kind == "return_items":
        wish["items"] = draw.some(items, draw.between(1, 2))
        if draw.chance(0.35):
            wish["payment"] = draw.pick(tuple(stock.data["customers"][owner]["payments"]))
    elif kind in ("cancel_item", "change_variant", "exchange_item", "damaged_item"):
        wish["items"] = [draw.pick(items)]
    if kind in ("change_variant", "exchange_item"):
        item = order["items"][wish["items"][0]]
        variants = stock.data["products"][item["product"]]["variants"]
        wish["variant"] = draw.pick([key for key in variants if key != item["variant"]])
    if kind == "change_payment":
        payments = stock.data["customers"][owner]["payments"]
        wish["payment"] = draw.pick([key for key in payments if key != order["payment"]])


def _draw_days(stock: Stock, policy: Policy, kind: str, state: str) -> int | None:
    """Draw how long the order has been in its state: near to where the rules change."""
    draw = stock.draw
    if kind == "lost_order" and state == "shipped":
        return draw.between(max(1, policy.lost_days - 4), policy.lost_days + 5)
    if kind == "damaged_item":
        return draw.between(1, policy.damage_days + 4)
    if kind in ("exchange_item", "return_items") and state == "delivered":
        return draw.between(max(1, policy.window - 12), policy.window + draw.pick((8, policy.gold_days + 4)))
    return None


KINDS: tuple[str, ...] = tuple(RULES)
"""All that is asked for."""
