"""What a simulated customer knows, wants and says, written for one instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tetrathlon.envs.tools.desk.draw import Draw
from tetrathlon.envs.tools.desk.policy import Policy
from tetrathlon.envs.tools.desk.requests import Request
from tetrathlon.envs.tools.desk.stock import Stock

_OPENINGS: Mapping[str, Sequence[str]] = {
    "cancel_order": ("I would like to cancel an order.", "I do not need what I ordered any more. Please cancel it."),
    "cancel_item": ("I want to take one item out of an order.", "One thing in my order I no longer want; cancel it."),
    "change_address": ("My parcel must go to another address.", "Can you send my order to another address?"),
    "change_profile": ("I have moved; please change the address in my profile.", "My profile has my old address."),
    "change_payment": ("I want to pay for an order in another way.", "Can I change how an order is paid?"),
    "change_variant": ("I ordered the wrong variant of something.", "I need something in my order in another variant."),
    "exchange_item": ("I want to exchange something that I got.", "What I got is not the right one; I want another."),
    "return_items": ("I want to send something back.", "I would like to return a part of an order."),
    "lost_order": (
        "My parcel never came. I want my money back.",
        "An order of mine has not arrived; refund it, please.",
    ),
    "damaged_item": (
        "Something arrived broken. I want my money back.",
        "One item came damaged; I want a refund for it.",
    ),
}
_CLAIMS: Mapping[str, Sequence[str]] = {
    "not_verified": ("I have been a customer for years, you must know me.", "Just do it, I am in a hurry."),
    "not_your_order": ("It is my sister's, and she is fine with it.", "I paid for it, so it is mine."),
    "already_shipped": ("It cannot have left yet, I ordered it only this morning.", "The site still says processing."),
    "already_delivered": ("It is not here yet, I am sure.", "The courier told me that you can still change it."),
    "not_delivered": ("I have it here in my hands.", "A colleague of yours said that it does not matter."),
    "window_passed": ("I got it only two days ago.", "Your colleague promised me a hundred days."),
    "final_sale": ("Your website says that everything can go back.", "I never even opened it."),
    "out_of_stock": ("I saw plenty of them on your site.", "Your colleague put one aside for me."),
    "dearer_variant": ("I will gladly pay what it costs more.", "They cost the same on your site."),
    "not_enough_balance": ("There is far more than that on the card.", "Take the rest from somewhere else."),
    "whole_order_only": ("You did that for me last month.", "It is just one item, who cares?"),
    "order_under_way": ("Nothing is on its way to me.", "The last parcel came yesterday."),
    "other_payment": ("That is how it was done the last time.", "The old card is closed, I am sure."),
    "too_early": ("I have been waiting for a month!", "The courier told me that it is lost."),
}
_NOISE = ("I have been a gold customer for ages.", "Your colleague said that this is no problem.", "I am in a hurry.")
_REASONS = ("I changed my mind about it.", "It does not suit me.", "It is simply what I want.")
_LEAST_CLAIM_LEVEL = 2
NEW_ADDRESS = "The new address is "
"""Before street, city and postal code, between commas."""
_PAID_BACK = ("cancel_order", "cancel_item", "return_items", "lost_order", "damaged_item")
"""What ends with a refund."""


def write_script(draw: Draw, stock: Stock, policy: Policy, requests: Sequence[Request], level: int) -> dict[str, Any]:
    """Return the script of :class:`~tetrathlon.envs.tools.desk.user.ScriptedUser`, as JSON data."""
    first, verdict = requests[0].wish, requests[0].verdict
    customer = stock.data["customers"][first["customer"]]
    right = customer["address"]["postal_code"]
    wrong = [str(10_000 + (int(right) + draw.between(1, 79_999)) % 90_000) for _ in range(2)]
    is_mine = first["is_known"] and "not_your_order" not in verdict.reasons
    slips = level > 1 and policy.identity != "order" and draw.chance(0.3)
    forgets = level > 1 and policy.identity in ("postal", "either") and is_mine and draw.chance(0.3)
    own = list(stock.shop.orders_of(first["customer"]))
    script: dict[str, Any] = {
        "name": customer["name"],
        "postal": ([wrong[0]] if slips else []) + [right] if first["is_known"] else wrong,
        "order": (first.get("order") or draw.pick(own)) if first["is_known"] else stock.new_id("order"),
        "requests": [
            _write_request(draw, stock, request, level, forgets and not number)
            for number, request in enumerate(requests)
        ],
        "stays": draw.chance(),
    }
    if not first["is_known"] and "order" in (facts := script["requests"][0]["facts"]):
        facts["order"] = {"text": f"It is order {script['order']}.", "values": [script["order"]]}
    return script


def _write_request(draw: Draw, stock: Stock, request: Request, level: int, forgets: bool) -> dict[str, Any]:
    wish, verdict = request.wish, request.verdict
    claims = list(_CLAIMS[draw.pick(verdict.reasons)]) if verdict.kind == "decline" else list(_NOISE)
    opening = draw.pick(_OPENINGS[wish["kind"]])
    if level >= _LEAST_CLAIM_LEVEL and draw.chance(0.5):
        opening = f"{opening} {draw.pick(_NOISE if verdict.kind != 'decline' else claims)}"
    facts = {"reason": {"text": draw.pick(_REASONS), "values": []}, **_facts(stock, wish)}
    if forgets and "order" in facts:
        item = next(iter(stock.data["orders"][wish["order"]]["items"].values()))
        facts["order"]["text"] = f"I do not have the number at hand. It is the order with the {item['name']}."
    insists = 1 if level == 1 else draw.between(1, 2)
    return {
        "kind": wish["kind"],
        "opening": opening,
        "facts": facts,
        "first": _facts(stock, {**wish, **request.first}) if request.first else {},
        "insists": draw.some(claims, insists) if verdict.kind == "decline" else [],
    }


def _facts(stock: Stock, wish: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what the customer can say of a request: fact -> ``text`` and ``values``, by which it is recognized.

    What has no values is said if somebody asks, and nobody needs it.
    """
    facts: dict[str, dict[str, Any]] = {}
    if wish["kind"] in _PAID_BACK:
        facts["payment"] = {"text": "The one that I paid with is fine.", "values": []}
    order = stock.data["orders"].get(wish.get("order", ""))
    if order is not None:
        facts["order"] = {"text": f"It is order {wish['order']}.", "values": [wish["order"]]}
    if order is not None and "items" in wish:
        items = [order["items"][key] for key in wish["items"]]
        named = " and ".join(f"the {item['name']}, {item['colour']}, {item['size']}" for item in items)
        values = [*wish["items"], *(item["name"] for item in items)]
        facts["item"] = {"text": f"It is about {named}.", "values": values}
    if order is not None and "variant" in wish:
        product = stock.data["products"][order["items"][wish["items"][0]]["product"]]
        variant = product["variants"][wish["variant"]]
        said = f"{variant['colour']}, {variant['size']}"
        facts["variant"] = {"text": f"I want it in {said}.", "values": [wish["variant"], said]}
    if "address" in wish:
        street, city, postal_code = (wish["address"][key] for key in ("street", "city", "postal_code"))
        facts["address"] = {"text": f"{NEW_ADDRESS}{street}, {city}, {postal_code}.", "values": [street]}
    if order is not None and "payment" in wish:
        kind = stock.data["customers"][order["customer"]]["payments"][wish["payment"]]["kind"]
        aim = "The money shall go to" if wish["kind"] == "return_items" else "I want to pay with"
        facts["payment"] = {"text": f"{aim} my {kind}.", "values": [wish["payment"], kind.split()[-1]]}
    return facts
