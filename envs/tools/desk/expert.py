"""What a good agent does next at a service desk, who knows what is right from the start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tetrathlon.envs.tools.calls import write_call
from tetrathlon.envs.tools.desk.policy import PROOFS
from tetrathlon.envs.tools.desk.script import NEW_ADDRESS
from tetrathlon.envs.tools.desk.user import MOST_FACTS, ScriptedUser
from tetrathlon.envs.tools.desk.world import LEAST_FAILURES, DeskWorld

_QUESTIONS: Mapping[str, str] = {
    "name": "your full name",
    "postal": "your postal code",
    "order": "the order number",
    "item": "which item it is about",
    "variant": "which colour and size you want",
    "address": "the new address",
    "payment": "which payment method you want",
}
_ACTS: Mapping[str, str] = {
    "cancel_order": "cancel order {order_id}",
    "cancel_item": "cancel item {item_id} of order {order_id}",
    "return_items": "take back {item_ids} of order {order_id}",
    "exchange_item": "change item {item_id} of order {order_id} for variant {variant_id}",
    "change_address": "send order {order_id} to {street}, {city}, {postal_code}",
    "change_profile": "change the address in your profile to {street}, {city}, {postal_code}",
    "change_payment": "move the payment of order {order_id} to {payment_id}",
    "report_problem": "report {item_id}order {order_id} as {problem}",
    "refund": "refund {amount} to {payment_id}",
}


def next_turn(world: DeskWorld) -> str:
    """Return a good next turn in any state: a call, or a text for the customer.

    A customer who is no script is not asked: what they would say, nobody here understands.
    """
    if not world.is_scripted:
        return _serve_silently(world)
    user, number = world.user, world.user.current
    request = world.plan[number]
    if world.faults or user.is_content:
        return write_call("close_case", {})
    if world.is_settled(number):
        if number in world.declined:
            return "I am sorry, but the policy does not allow that. Is there anything else that I can do for you?"
        return "That is done. Is there anything else that I can do for you?"
    if not world.knows_caller:
        return _verify(world, "not_verified" in request["reasons"])
    if asked := [fact for fact in user.wanted if fact in _QUESTIONS]:
        return _ask(asked[:MOST_FACTS])
    step = world.next_step(number)
    if step is not None and not world.is_agreed(step) and request["order"] in ("", *world.opened):
        return _announce(world, request["steps"])
    return _act(world, number)


def _act(world: DeskWorld, number: int) -> str:
    """Return the next call for a request that was not dealt with, of a customer who is verified."""
    request = world.plan[number]
    if request["order"] and request["order"] not in world.opened and "not_your_order" not in request["reasons"]:
        return write_call("get_order", {"order_id": request["order"]})
    if request["reasons"]:
        name = "transfer_to_human" if request["verdict"] == "transfer" else "decline"
        return write_call(name, {"reason": request["reasons"][0], "order_id": request["order"]})
    step = world.next_step(number)
    return write_call("close_case", {}) if step is None else write_call(*step["call"])


def _serve_silently(world: DeskWorld) -> str:
    left = [number for number in range(len(world.plan)) if not world.is_settled(number)]
    if world.faults or not left:
        return write_call("close_case", {})
    if world.knows_caller:
        return _act(world, left[0])
    script, is_stranger = world.user.script, "not_verified" in world.plan[0]["reasons"]
    if is_stranger and world.failures >= LEAST_FAILURES:
        return write_call("decline", {"reason": "not_verified"})
    known = {"postal": ("postal_code", script["postal"][-1]), "order": ("order_id", script["order"])}
    proofs = dict(known[proof] for proof in PROOFS[world.policy.identity])
    return write_call("find_customer", {"name": script["name"], **proofs})


def _verify(world: DeskWorld, is_stranger: bool) -> str:
    user = world.user
    proofs = PROOFS[world.policy.identity]
    if unsaid := [fact for fact in ("name", *proofs) if fact not in user.told]:
        return _ask(unsaid[:MOST_FACTS])
    if world.failures >= LEAST_FAILURES and is_stranger:
        return write_call("decline", {"reason": "not_verified"})
    # A postal code that fitted nobody is asked for once more.
    is_stale = "postal" in proofs and user.postal_code != user.script["postal"][-1] and world.failures > 0
    if is_stale:
        return "I am sorry, but that fits nobody. Could you please check your postal code?"
    arguments = {"name": user.script["name"]}
    if "postal" in proofs:
        arguments["postal_code"] = user.postal_code
    if "order" in proofs:
        facts = user.request["facts"]
        arguments["order_id"] = facts["order"]["values"][0] if "order" in facts else user.script["order"]
    return write_call("find_customer", arguments)


def _ask(facts: list[str]) -> str:
    return f"Could you please tell me {' and '.join(_QUESTIONS[fact] for fact in facts)}?"


def _announce(world: DeskWorld, steps: list[dict[str, Any]]) -> str:
    acts = []
    for step in steps:
        name, arguments = step["call"]
        shown = {key: ", ".join(value) if isinstance(value, list) else value for key, value in arguments.items()}
        if name == "report_problem":
            shown["item_id"] = f"item {shown['item_id']} of " if shown.get("item_id") else ""
        acts.append(_ACTS[name].format(**{**shown, **_first_thoughts(world.user)}))
    return f"I am going to {' and '.join(acts)}. Shall I go ahead?"


def _first_thoughts(user: ScriptedUser) -> dict[str, str]:
    """Return the arguments that were to be others before the customer changed their mind, while they have not yet."""
    if user.is_sure:
        return {}
    first, last = user.request["first"], user.request["facts"]
    changed = {fact: said for fact, said in first.items() if said != last[fact]}
    if "address" in changed:
        said = changed["address"]["text"].removeprefix(NEW_ADDRESS).removesuffix(".")
        return dict(zip(("street", "city", "postal_code"), said.split(", "), strict=True))
    return {f"{fact}_id": said["values"][0] for fact, said in changed.items()}
