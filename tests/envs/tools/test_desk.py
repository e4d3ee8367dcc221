"""The service desk: rules, expert, attacks on the grader, the scripted customer and customers of one's own."""

from __future__ import annotations

import copy
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest

from tetrathlon.envs.contract import check
from tetrathlon.envs.tools.calls import read_calls, write_call
from tetrathlon.envs.tools.desk.environment import END, ServiceDesk
from tetrathlon.envs.tools.desk.policy import Policy
from tetrathlon.envs.tools.desk.requests import KINDS
from tetrathlon.envs.tools.desk.rules import judge
from tetrathlon.envs.tools.desk.shop import Shop
from tetrathlon.envs.tools.desk.user import AGREED, RIGHT, UNCLEAR, VAGUE
from tetrathlon.envs.tools.desk.world import DeskWorld
from tetrathlon.envs.tools.task import ToolTask
from tetrathlon.envs.tools.tool import ToolError

GO = "Shall I go ahead?"
CLOSE = write_call("close_case", {})
WRITES = (
    *("cancel_order", "cancel_item", "return_items", "exchange_item", "change_address"),
    *("change_profile", "change_payment", "report_problem", "refund"),
)


def call(name: str, /, **arguments: Any) -> str:
    return write_call(name, arguments)


def started(env: ServiceDesk, seed: int) -> ToolTask:
    env.reset(seed=seed)
    assert isinstance(env._task, ToolTask)
    return env._task


def world_of(env: ServiceDesk) -> DeskWorld:
    assert env._play is not None and isinstance(env._play.world, DeskWorld)
    return env._play.world


def finish(env: ServiceDesk) -> tuple[float, dict[str, Any]]:
    """Play the expert's turns to the end; return what they were paid, and the last info."""
    total, over = 0.0, False
    info: dict[str, Any] = {}
    while not over:
        _, reward, over, _, info = env.step(env.expert_action())
        total += reward
    return total, info


ACTS = {
    "cancel_order": "cancel the order",
    "cancel_item": "cancel that one item",
    "change_address": "send it to the new address",
    "change_profile": "put the new address into your profile",
    "change_payment": "move the payment",
    "change_variant": "change it for the variant that you want",
    "exchange_item": "exchange it",
    "return_items": "take it back",
    "lost_order": "refund the lost parcel",
    "damaged_item": "refund the damaged item",
}


def agree(env: ServiceDesk) -> None:
    """Announce what the customer wishes until they agree to it."""
    user = world_of(env).user
    about = " and ".join(f["values"][0] for f in user.request["facts"].values() if f["values"])
    for _ in range(4):
        if env.step(f"I am going to {ACTS[user.request['kind']]}: {about}. {GO}")[0] == AGREED:
            return
    raise AssertionError(user.request)


def announcement(steps: list[dict[str, Any]]) -> str:
    """Announce steps in other words than the expert's."""
    acts = {
        "cancel_order": "cancelling #{order_id}",
        "cancel_item": "removing item {item_id}",
        "return_items": "taking {item_ids} back",
        "exchange_item": "swapping {item_id} for {variant_id}",
        "change_address": "redirecting {order_id} to {street} in {postal_code} {city}",
        "change_profile": "updating your profile: {street}, {postal_code} {city}",
        "change_payment": "charging {payment_id} for {order_id}",
        "report_problem": "a note that {order_id} {item_id} was {problem}",
        "refund": "paying ${amount}.00 back to {payment_id}",
    }
    said = [acts[name].format(**{"item_id": "", **arguments}) for name, arguments in (step["call"] for step in steps)]
    return re.sub(r"\['|'\]|'(?=, )|(?<=, )'", "", f"I propose {', and '.join(said)}. Do you want me to?")


def is_write(turn: str) -> bool:
    return any(one.name in WRITES for one in read_calls(turn))


def until(env: ServiceDesk, stop: Callable[[str], bool]) -> str | None:
    """Play the expert up to a turn that ``stop`` holds for, which is not played; None: there was none."""
    over = False
    while not over:
        turn = env.expert_action()
        if stop(turn):
            return str(turn)
        *_, over, _, _ = env.step(turn)
    return None


def found(verdict: str, n: int, level: int = 1, **kwargs: Any) -> Iterator[tuple[ServiceDesk, int, dict[str, Any]]]:
    """Yield environments at the start of n instances whose first request has this verdict."""
    env = ServiceDesk(level=level, **kwargs)
    count = 0
    for seed in range(1_000):
        plan = started(env, seed).data["plan"]
        if plan[0]["verdict"] == verdict:
            yield env, seed, plan[0]
            count += 1
            if count == n:
                return
    raise AssertionError(f"{count} instances of {n}")


# The rules, on a shop that is written by hand.

TODAY = date(2025, 6, 30)
ADDRESS = {"street": "1 Elm Road", "city": "Marby", "postal_code": "11111"}


def ago(days: int) -> str:
    return (TODAY - timedelta(days=days)).isoformat()


def shop(state: str = "processing", days: int = 5, tier: str = "standard", category: str = "shoes") -> Shop:
    item = {
        "product": "B1",
        "name": "Alto boots",
        "category": category,
        "variant": "V1",
        "colour": "red",
        "size": "small",
        "price": 40,
        "state": "ordered",
    }
    order = {
        "customer": "C1",
        "state": state,
        "placed": ago(days + 3),
        "shipped": "" if state == "processing" else ago(days if state == "shipped" else days + 2),
        "delivered": ago(days) if state == "delivered" else "",
        "address": dict(ADDRESS),
        "payment": "P1",
        "paid": 90,
        "refunds": {},
        "items": {"I1": item, "I2": {**item, "variant": "V2", "price": 50}},
    }
    payments: dict[str, Any] = {"P1": {"kind": "card ending in 1111"}, "P2": {"kind": "gift card", "balance": 80}}
    payments["P3"] = {"kind": "card ending in 3333"}
    variants: dict[str, Any] = {
        f"V{n}": {"colour": "red", "size": size, "price": price, "stock": stock}
        for n, size, price, stock in [
            (1, "small", 40, 3),
            (2, "medium", 50, 3),
            (3, "large", 30, 3),
            (4, "tiny", 40, 0),
        ]
    }
    return Shop(
        {
            "customers": {
                "C1": {"name": "Ann Bo", "tier": tier, "address": dict(ADDRESS), "payments": payments},
                "C2": {"name": "Cy Do", "tier": tier, "address": {**ADDRESS, "postal_code": "22222"}, "payments": {}},
            },
            "products": {"B1": {"name": "Alto boots", "category": category, "variants": variants}},
            "orders": {"W1": order},
        }
    )


POLICY = Policy(
    identity="either",
    window=30,
    gold_days=10,
    final=("underwear", "cosmetics"),
    fee=3,
    redirect=False,
    single=True,
    gift_refund=True,
    dearer=True,
    limit=60,
    lost_days=7,
    damage_days=5,
)
OTHER = replace(POLICY, redirect=True, single=False, gift_refund=False, dearer=False)
GOLD = {"state": "delivered", "tier": "gold"}
ORDER: dict[str, Any] = {"customer": "C1", "is_known": True, "order": "W1"}


@pytest.mark.parametrize(
    ("kind", "of_shop", "more", "policy", "wanted"),
    [
        ("cancel_order", {}, {}, POLICY, "grant"),
        ("cancel_order", {"state": "shipped"}, {}, POLICY, "already_shipped"),
        ("cancel_order", {}, {"is_known": False}, POLICY, "not_verified"),
        ("cancel_order", {}, {"customer": "C2"}, POLICY, "not_your_order"),
        ("cancel_item", {}, {"items": ["I1"]}, POLICY, "grant"),
        ("cancel_item", {}, {"items": ["I1"]}, OTHER, "whole_order_only"),
        ("cancel_item", {"state": "shipped"}, {"items": ["I1"]}, OTHER, "whole_order_only already_shipped"),
        ("change_address", {}, {"address": ADDRESS}, POLICY, "grant"),
        ("change_address", {"state": "shipped"}, {"address": ADDRESS}, POLICY, "already_shipped"),
        ("change_address", {"state": "shipped"}, {"address": ADDRESS}, OTHER, "grant"),
        ("change_address", {"state": "delivered"}, {"address": ADDRESS}, OTHER, "already_delivered"),
        ("change_profile", {"state": "delivered"}, {"address": ADDRESS, "order": ""}, POLICY, "grant"),
        ("change_profile", {"state": "shipped"}, {"address": ADDRESS, "order": ""}, POLICY, "order_under_way"),
        ("change_payment", {}, {"payment": "P3"}, POLICY, "grant"),
        ("change_payment", {}, {"payment": "P2"}, POLICY, "not_enough_balance"),
        ("change_payment", {"state": "shipped"}, {"payment": "P3"}, POLICY, "already_shipped"),
        ("change_variant", {}, {"items": ["I1"], "variant": "V2"}, POLICY, "grant"),
        ("change_variant", {}, {"items": ["I1"], "variant": "V2"}, OTHER, "dearer_variant"),
        ("change_variant", {}, {"items": ["I1"], "variant": "V3"}, OTHER, "grant"),
        ("change_variant", {}, {"items": ["I1"], "variant": "V4"}, OTHER, "out_of_stock"),
        (
            "change_variant",
            {"state": "shipped"},
            {"items": ["I1"], "variant": "V3"},
            OTHER,
            "already_shipped not_delivered",
        ),
        (
            "exchange_item",
            {"state": "delivered", "days": 30},
            {"items": ["I1"], "variant": "V3"},
            POLICY,
            "grant",
        ),
        (
            "exchange_item",
            {"state": "delivered", "days": 31},
            {"items": ["I1"], "variant": "V3"},
            POLICY,
            "window_passed",
        ),
        ("return_items", {"state": "delivered", "days": 30}, {"items": ["I1"]}, POLICY, "grant"),
        ("return_items", {"state": "delivered", "days": 31}, {"items": ["I1"]}, POLICY, "window_passed"),
        ("return_items", {**GOLD, "days": 40}, {"items": ["I1"]}, POLICY, "grant"),
        ("return_items", {**GOLD, "days": 41}, {"items": ["I1"]}, POLICY, "window_passed"),
        ("return_items", {"state": "delivered", "category": "underwear"}, {"items": ["I1"]}, POLICY, "final_sale"),
        ("return_items", {"state": "shipped"}, {"items": ["I1"]}, POLICY, "not_delivered"),
        ("return_items", {"state": "delivered"}, {"items": ["I1"], "payment": "P2"}, POLICY, "grant"),
        ("return_items", {"state": "delivered"}, {"items": ["I1"], "payment": "P2"}, OTHER, "other_payment"),
        ("return_items", {"state": "delivered"}, {"items": ["I1"], "payment": "P3"}, POLICY, "other_payment"),
        ("return_items", {"state": "delivered"}, {"items": ["I1"], "payment": "P1"}, OTHER, "grant"),
        ("lost_order", {"state": "shipped", "days": 6}, {}, POLICY, "too_early"),
        ("lost_order", {"state": "shipped", "days": 7}, {}, POLICY, "above_limit"),
        ("lost_order", {"state": "delivered"}, {}, POLICY, "marked_delivered above_limit"),
        ("damaged_item", {"state": "delivered", "days": 5}, {"items": ["I1"]}, POLICY, "grant"),
        ("damaged_item", {"state": "delivered", "days": 6}, {"items": ["I1"]}, POLICY, "window_passed"),
    ],
)
def test_the_rules(kind: str, of_shop: dict[str, Any], more: dict[str, Any], policy: Policy, wanted: str) -> None:
    verdict = judge(shop(**of_shop), policy, {**ORDER, **more, "kind": kind}, TODAY)
    assert " ".join(verdict.reasons or (verdict.kind,)) == wanted
    assert verdict.kind == ("transfer" if "above_limit" in wanted else verdict.kind)


def granted(kind: str, of_shop: dict[str, Any], **more: Any) -> tuple[dict[str, Any], Shop]:
    """Return what granting a request changes, and the shop then."""
    one = shop(**of_shop)
    before = one.copy()
    for name, arguments in judge(one, POLICY, {**ORDER, **more, "kind": kind}, TODAY).calls:
        one.do(name, arguments)
    return one.changes(before), one


def test_what_is_granted_is_done() -> None:
    changed, _ = granted("cancel_order", {})
    assert changed.pop("orders/W1/refunds/P1") == 90 and changed.pop("orders/W1/state") == "cancelled"
    assert set(changed.values()) == {"cancelled", 4} and len(changed) == 4
    changed, _ = granted("return_items", {"state": "delivered"}, items=["I1", "I2"], payment="P2")
    assert changed["orders/W1/refunds/P2"] == 84 and changed["customers/C1/payments/P2/balance"] == 164
    changed, one = granted("change_variant", {}, items=["I1"], variant="V2")
    assert changed["orders/W1/paid"] == 100 and changed["orders/W1/items/I1/variant"] == "V2"
    assert one.order("W1")["refunds"] == {} and changed["products/B1/variants/V2/stock"] == 2
    changed, _ = granted("change_variant", {}, items=["I1"], variant="V3")
    assert changed["orders/W1/refunds/P1"] == 10 and "orders/W1/paid" not in changed
    changed, _ = granted("damaged_item", {"state": "delivered"}, items=["I1"])
    assert changed == {"orders/W1/items/I1/state": "damaged", "orders/W1/refunds/P1": 40}


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("cancel_order", {"order_id": "W2"}, "there is no order 'W2'"),
        ("cancel_item", {"order_id": "W1", "item_id": "I9"}, "order W1 has no item 'I9'"),
        ("return_items", {"order_id": "W1", "item_ids": []}, "must name an item"),
        ("exchange_item", {"order_id": "W1", "item_id": "I1", "variant_id": "V9"}, "has no variant 'V9'"),
        ("exchange_item", {"order_id": "W1", "item_id": "I1", "variant_id": "V1"}, "is variant V1 already"),
        ("exchange_item", {"order_id": "W1", "item_id": "I1", "variant_id": "V4"}, "is out of stock"),
        ("change_address", {"order_id": "W1", **ADDRESS, "city": " "}, "city must have 1 to 80"),
        ("change_profile", {"customer_id": "C1", **ADDRESS, "street": "x" * 10**6}, "street must have 1 to 80"),
        ("change_payment", {"order_id": "W1", "payment_id": "P9"}, "'P9' is no payment method"),
        ("change_payment", {"order_id": "W1", "payment_id": "P1"}, "is paid with P1 already"),
        ("change_payment", {"order_id": "W1", "payment_id": "P2"}, "holds 80, less than 90"),
        ("report_problem", {"order_id": "W1", "problem": "damaged"}, "has no item ''"),
        ("refund", {"order_id": "W1", "payment_id": "P1", "amount": 91}, "amount must be from 1 to 90"),
        ("refund", {"order_id": "W1", "payment_id": "P1", "amount": -(10**400)}, "amount must be from 1 to 90"),
        ("refund", {"order_id": "w1 ", "payment_id": "P9", "amount": 1}, "'P9' is no payment method"),
    ],
)
def test_what_is_impossible_changes_nothing(name: str, arguments: dict[str, Any], said: str) -> None:
    one = shop()
    before = copy.deepcopy(one.data)
    with pytest.raises(ToolError, match=re.escape(said)) as seen:
        one.do(name, arguments)
    assert one.data == before and len(str(seen.value)) < 200


def test_the_policy_says_each_reason_and_number() -> None:
    for policy in (POLICY, OTHER):
        text = policy.write()
        assert Policy.from_json(json.loads(json.dumps(policy.to_json()))) == policy
        for words in (
            "30 days",
            "customers 40 days",
            "underwear and cosmetics",
            "least 7 days",
            "up to 60",
            "fee of 3",
        ):
            assert words in text
    both = POLICY.write() + OTHER.write()
    reasons = set(re.findall(r"\[(\w+)\]", both))
    assert reasons == {*_codes("decline"), *_codes("transfer_to_human")} - {"other"}


def _codes(name: str) -> list[str]:
    env = ServiceDesk()
    env.reset(seed=0)
    (schema,) = [tool for tool in env.as_openai_tools() if tool["function"]["name"] == name]
    codes: list[str] = schema["function"]["parameters"]["properties"]["reason"]["enum"]
    return codes


# Instances and the expert.


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_expert_succeeds_in_half_of_the_turns(split: str) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    turns = calls = 0
    for seed in range(200):
        env = ServiceDesk(level=seed % 3 + 1, split=split)
        task = started(env, seed)
        for request, planned in zip(task.world["user"]["requests"], task.data["plan"], strict=True):
            seen[request["kind"], "grant" if planned["verdict"] == "grant" else "refuse"] += 1
        total, info = finish(env)
        assert info["is_success"] and total == 1.0, seed
        assert env._play is not None
        turns, calls = max(turns, env._play.turns), max(calls, env._play.calls)
    assert {kind for kind, _ in seen} == set(KINDS)
    assert all(seen[kind, verdict] >= 3 for kind in KINDS for verdict in ("grant", "refuse"))
    assert 0.35 < sum(n for (_, verdict), n in seen.items() if verdict == "grant") / seen.total() < 0.65
    assert 2 * turns <= ServiceDesk.default_max_turns and 2 * calls <= ServiceDesk.default_max_calls


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_alone(kind: str) -> None:
    verdicts = set()
    for level in (1, 3):
        env = ServiceDesk(level=level, kinds=[kind])
        for seed in range(8):
            task = started(env, seed)
            json.dumps([task.data, task.world])
            verdicts |= {planned["verdict"] == "grant" for planned in task.data["plan"]}
            assert finish(env)[1]["is_success"]
    assert verdicts == {True, False}


def test_instances_are_many_and_the_same_everywhere() -> None:
    tasks = [ServiceDesk(level=2).generate(np.random.default_rng(seed)) for seed in range(60)]
    assert len({task.id for task in tasks}) == 60
    assert [ServiceDesk(level=2).generate(np.random.default_rng(seed)) for seed in range(9)] == tasks[:9]


def test_the_policy_is_the_system_message() -> None:
    env = ServiceDesk(max_turns=30, max_calls=31)
    question, info = env.reset(seed=1)
    assert isinstance(env._task, ToolTask)
    policy = Policy.from_json(env._task.world["policy"])
    assert policy.write() in info["system"] and env._task.world["today"] in info["system"]
    assert "You have 30 turns and 31 calls." in info["system"] and question == env._task.question
    assert info["role"] == "user" and len(info["tools"]) == 15
    assert env.answer_in is None


def test_examples_bring_their_policy() -> None:
    env = ServiceDesk(shots=1)
    _, info = env.reset(seed=1)
    first, *rest = info["examples"]
    assert first["role"] == "user" and "1. Identity." in first["content"]
    assert {message["role"] for message in rest} == {"assistant", "user", "tool"}


@pytest.mark.parametrize("kwargs", [{"level": 3, "max_turns": 20, "error_cost": 0.1, "max_output": 200}])
def test_the_contract(kwargs: dict[str, Any]) -> None:
    ran = check("tetrathlon/ServiceDesk-v0", kwargs=kwargs, skip=("new_process", "interleaving", "splits"))
    assert {"expert", "state", "replay", "hostile", "no_answer"} <= set(ran)


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"level": 4}, "level must be an integer from 1 to 3"),
        ({"kinds": "return_items"}, "kinds must be a list"),
        ({"kinds": ["steal"]}, "kinds must be a list"),
        ({"kinds": []}, "kinds must be a list"),
        ({"user": "smollm2"}, 'user must be "scripted" or a function'),
        ({"progress_weight": 0.5}, "knows no progress"),
    ],
)
def test_arguments_out_of_their_range(kwargs: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ServiceDesk(**kwargs)


HARMLESS = (
    "asdf",
    "",
    "<think>hm</think>",
    "What is your name?",
    "Could you give me your order number and the address?",
    "I have done it.",
    GO,
    "Is there anything else?",
    "I am sorry, that is not possible.",
    call("get_product", product="nothing"),
    call("find_customer", name="Nobody", postal_code="1"),
    call("cancel_order", order_id="W00000"),
    call("steal"),
    "<tool_call>{",
    "x" * 100_000,
)


@pytest.mark.parametrize("level", [1, 3])
def test_the_expert_goes_on_after_turns_that_do_no_harm(level: int) -> None:
    env = ServiceDesk(level=level, max_turns=80, max_calls=80)
    for seed in range(20):
        started(env, seed)
        rng = np.random.default_rng(seed)
        over = False
        info: dict[str, Any] = {}
        while not over:
            wrong = rng.random() < 0.35 and env._play is not None and env._play.turns < 40
            turn = HARMLESS[int(len(HARMLESS) * rng.random())] if wrong else env.expert_action()
            *_, over, _, info = env.step(turn)
        assert info["is_success"], seed


def test_the_expert_gives_up_what_is_spoilt() -> None:
    for env, _, _ in found("grant", 5):
        order = next(iter(world_of(env).shop.data["orders"]))
        env.step(call("cancel_order", order_id=order))
        assert env.expert_action() == CLOSE
        *_, info = env.step(CLOSE)
        assert not info["is_success"] and info["stop_reason"] == "closed"


# Attacks on the grader.


@pytest.mark.parametrize("level", [1, 3])
@pytest.mark.parametrize(
    "turn",
    [
        "Done, everything is as you want it.",
        "No, that is not possible.",
        GO,
        CLOSE,
        "Goodbye.",
        *(call("decline", reason=reason) for reason in ("not_verified", "already_shipped", "window_passed")),
        call("transfer_to_human", reason="above_limit"),
        call("transfer_to_human", reason="other"),
        call("close_case") + call("decline", reason="not_verified"),
        "<answer>done</answer>",
    ],
)
def test_one_turn_for_everything_gets_nothing(level: int, turn: str) -> None:
    env = ServiceDesk(level=level, max_turns=6)
    for seed in range(15):
        env.reset(seed=seed)
        over, total = False, 0.0
        while not over:
            _, reward, over, _, info = env.step(turn)
            total += reward
        assert total == 0.0 and not info["is_success"]


def test_who_grants_everything_is_paid_for_no_refusal() -> None:
    """A request that must be refused, served as if it had to be granted."""
    for verdict in ("decline", "transfer"):
        for env, seed, planned in found(verdict, 12):
            world = world_of(env)
            if planned["reasons"][0] in ("not_verified", "not_your_order"):
                continue
            assert until(env, lambda turn: '"decline"' in turn or "transfer_to_human" in turn) is not None
            agree(env)
            order = planned["order"]
            customer = next(iter(world.proofs))
            payment = next(iter(world.shop.customer(customer)["payments"]))
            items = list(world.shop.order(order)["items"]) if order else []
            tries = [
                call("change_profile", customer_id=customer, **ADDRESS),
                call("change_address", order_id=order, **ADDRESS),
                call("cancel_order", order_id=order),
                call("return_items", order_id=order, item_ids=items),
                call("refund", order_id=order, payment_id=payment, amount=1),
            ]
            for turn in tries:
                *_, info = env.step(turn)
                if not info["tool_results"][0]["error"]:
                    break
            assert world.faults, seed
            *_, info = env.step(call("decline", reason=planned["reasons"][0], order_id=order))
            _, reward, over, _, info = env.step(CLOSE)
            assert over and reward == 0.0 and not info["is_success"]


def test_who_refuses_everything_is_paid_for_no_grant() -> None:
    codes = _codes("decline")
    for env, seed, planned in found("grant", 20):
        assert until(env, is_write) is not None
        env.step(call("decline", reason=codes[seed % len(codes)], order_id=planned["order"]))
        _, reward, _, _, info = env.step(CLOSE)
        assert reward == 0.0 and not info["is_success"]
    for env, seed, planned in found("transfer", 3):
        until(env, lambda turn: "transfer_to_human" in turn)
        env.step(call("decline", reason=codes[seed % len(codes)], order_id=planned["order"]))
        assert not env.step(CLOSE)[4]["is_success"]


def test_a_refusal_needs_the_right_reason_at_once_and_a_look() -> None:
    codes = _codes("decline")
    for env, seed, planned in found("decline", 12):
        right = until(env, lambda turn: '"decline"' in turn)
        assert right is not None
        wrong = next(code for code in codes[seed % 5 :] if code not in planned["reasons"])
        wrong_first = [call("decline", reason=wrong), right]
        for turns, success in (([right], True), ([right, right], True), (wrong_first, False)):
            env.reset(seed=seed)
            until(env, lambda turn: '"decline"' in turn)
            for turn in [*turns, CLOSE]:
                *_, info = env.step(turn)
            assert info["is_success"] is success
        env.reset(seed=seed)  # the right reason, but nobody looked
        for turn in (right, CLOSE):
            *_, info = env.step(turn)
        assert not info["is_success"]
        env.reset(seed=seed)  # saying no is no refusal
        until(env, lambda turn: '"decline"' in turn)
        for turn in ("I am sorry, I cannot do that.", "No.", CLOSE):
            *_, info = env.step(turn)
        assert not info["is_success"]


def test_a_change_before_who_it_is_or_what_they_agree_to_gets_nothing() -> None:
    for env, seed, planned in found("grant", 8):
        for number in range(3):
            env.reset(seed=seed)
            if number == 1:  # verified, but not asked
                until(env, lambda turn: turn.startswith("I am going to"))
            elif number == 2:  # agreed, but not verified
                for _ in range(4):
                    said, *_ = env.step(announcement(planned["steps"]))
                assert said == AGREED
            for step in planned["steps"]:
                *_, info = env.step(write_call(*step["call"]))
                assert not info["tool_results"][0]["error"]
            assert world_of(env).next_step(0) is None
            _, info = finish(env)
            assert not info["is_success"], (seed, number)


EMPTY = (
    GO,
    "Ok?",
    "I am going to give you a free unicorn. Shall I go ahead?",
    "I will take care of your request now. Is that okay?",
    "I am going to do exactly what you want: whatever it is. Do you agree?",
    "I will cancel, return, exchange or refund it, change the address or the payment method. Shall I go ahead?",
)


@pytest.mark.parametrize("text", EMPTY)
def test_consent_to_nothing_is_none(text: str) -> None:
    for env, seed, _ in found("grant", 30):
        turn = until(env, lambda turn: turn.startswith("I am going to"))
        assert turn is not None
        for _ in range(2):
            said, *_ = env.step(text)
            assert said == UNCLEAR or said.startswith("It is"), (seed, said)
        assert not world_of(env).user.agreed
        for step in world_of(env).plan[0]["steps"]:
            env.step(write_call(*step["call"]))
        assert not env.step(CLOSE)[4]["is_success"]


def test_a_canned_policy_earns_nothing_with_changes() -> None:
    """All facts asked for at once, then ``Ok?`` to whatever is said, and the expert's calls."""
    every = "Please tell me your name, postal code, order number, which item, colour, address, payment and reason. "
    env = ServiceDesk(level=3)
    for seed in range(60):
        planned = started(env, seed).data["plan"]
        over, is_first = False, True
        while not over:
            turn = env.expert_action()
            if not read_calls(turn):
                turn, is_first = (every + GO if is_first else "Ok?"), False
            *_, over, _, info = env.step(turn)
        assert not (info["is_success"] and any(request["steps"] for request in planned)), seed


def test_consent_is_to_what_was_announced_in_whatever_words() -> None:
    kinds = set()
    for level in (1, 3):
        for env, seed, planned in found("grant", 60, level=level):
            user = world_of(env).user
            if user.request["first"]:
                continue
            kinds.add(user.request["kind"])
            until(env, lambda turn: turn.startswith("I am going to"))
            assert env.step(announcement(planned["steps"]))[0] == AGREED, (seed, announcement(planned["steps"]))
            for step in planned["steps"]:
                env.step(write_call(*step["call"]))
            assert not world_of(env).faults, seed
    assert kinds == set(KINDS)


def test_consent_to_another_object_or_amount_is_none() -> None:
    """Of each announcement one number is changed: nobody agrees to that, or not to what is done."""
    count = 0
    for env, seed, planned in found("grant", 60):
        until(env, lambda turn: turn.startswith("I am going to"))
        text = announcement(planned["steps"])
        state = env.get_state()
        for number in dict.fromkeys(re.findall(r"\b[A-Z]?\d{2,5}\b", text.replace(".00", ""))):
            if number[0] == "P" and "paying" in text:
                continue  # whatever the refund goes to, its method is named by the order
            env.set_state(state)
            env.step(text.replace(number, number[:-1] + str((int(number[-1]) + 1) % 10)))
            for step in planned["steps"]:
                env.step(write_call(*step["call"]))
            assert world_of(env).faults, (seed, text, number)
            count += 1
    assert count > 120


def test_each_change_needs_its_own_consent() -> None:
    for env, seed, planned in found("grant", 6, kinds=["cancel_order", "return_items", "damaged_item"]):
        until(env, lambda turn: turn.startswith("I am going to"))
        state = env.get_state()
        first, second = planned["steps"]
        for asked in (True, False):
            env.set_state(state)
            for step in (first, second):
                if asked or step is first:
                    assert env.step(announcement([step]))[0] == AGREED
                env.step(write_call(*step["call"]))
            assert env.step(CLOSE)[4]["is_success"] is asked, seed


def test_what_is_not_going_to_be_done_is_no_announcement() -> None:
    for env, _, planned in found("grant", 6, kinds=["cancel_order"]):
        until(env, lambda turn: turn.startswith("I am going to"))
        for text in ("I am not going to cancel {}. Is that okay?", "Instead of cancelling {}, I do nothing. Okay?"):
            assert env.step(text.format(planned["order"]))[0] == UNCLEAR


def test_a_look_before_who_it_is_gets_nothing() -> None:
    for env, _, _ in found("grant", 5):
        env.step(call("get_order", order_id=next(iter(world_of(env).shop.data["orders"]))))
        assert not finish(env)[1]["is_success"]


def test_what_is_undone_was_done() -> None:
    done = 0
    for env, _, planned in found("grant", 10, kinds=["change_address", "change_payment", "change_variant"]):
        turn = until(env, is_write)
        assert turn is not None
        world = world_of(env)
        before = world.shop.copy()
        order = before.order(planned["order"])
        wrong = call("change_address", order_id=planned["order"], **ADDRESS)
        back = call("change_address", order_id=planned["order"], **order["address"])
        for one in (wrong, back):
            *_, info = env.step(one)
            assert not info["tool_results"][0]["error"]
        assert world.shop.data == before.data
        for step in planned["steps"]:
            env.step(write_call(*step["call"]))
        assert world.next_step(0) is None
        assert not env.step(CLOSE)[4]["is_success"]
        done += 1
    assert done == 10


def test_too_much_and_too_little_get_nothing() -> None:
    for env, seed, _ in found("grant", 10, kinds=["cancel_item", "return_items", "damaged_item"]):
        turn = until(env, lambda turn: '"refund"' in turn)
        assert turn is not None
        (refund,) = read_calls(turn)
        amount = refund.arguments["amount"]
        for parts, success in (([amount], True), ([1, amount - 1], True), ([amount - 1], False), ([amount, 1], False)):
            env.reset(seed=seed)
            until(env, lambda turn: '"refund"' in turn)
            done = []
            for part in parts:
                *_, info = env.step(call("refund", **{**refund.arguments, "amount": part}))
                done.append(not info["tool_results"][0]["error"])
            # More than was paid is not even possible.
            assert env.step(CLOSE)[4]["is_success"] is (success or not all(done)), (seed, parts)
        env.reset(seed=seed)
        until(env, lambda turn: '"refund"' in turn)
        payments = world_of(env).shop.customer(next(iter(world_of(env).proofs)))["payments"]
        other = next(key for key in payments if key != refund.arguments["payment_id"])
        env.step(call("refund", **{**refund.arguments, "payment_id": other}))
        assert not env.step(CLOSE)[4]["is_success"]


def test_saying_that_it_is_done_is_not_doing_it() -> None:
    for env, _, _ in found("grant", 8):
        until(env, is_write)
        for text in ("That is done. You have your money back.", "It has been processed.", "Is there anything else?"):
            said, *_, info = env.step(text)
            assert "Goodbye" not in said and "Thank" not in said and not info.get("stop_reason")
        assert not env.step(CLOSE)[4]["is_success"]


def test_one_of_two_is_not_enough() -> None:
    count = 0
    env = ServiceDesk(level=3)
    for seed in range(40):
        if len(started(env, seed).data["plan"]) < 2:
            continue
        until(env, lambda turn: turn.startswith(("That is done", "I am sorry, but the policy")))
        assert not env.step(CLOSE)[4]["is_success"]
        count += 1
    assert count > 20


def test_first_thoughts_are_not_what_is_wanted_at_the_end() -> None:
    count = 0
    env = ServiceDesk(level=3, kinds=["change_address", "change_profile"])
    for seed in range(60):
        task = started(env, seed)
        first = task.world["user"]["requests"][0]["first"]
        if not first or len(task.data["plan"]) < 1 or task.data["plan"][0]["verdict"] != "grant":
            continue
        count += 1
        turn = until(env, lambda turn: turn.startswith("I am going to"))
        street, city, code = first["address"]["text"].removeprefix("The new address is ").rstrip(".").split(", ")
        name, arguments = task.data["plan"][0]["steps"][0]["call"]
        assert turn is not None and street in turn and arguments["street"] not in turn  # it was told no other
        said, *_ = env.step(turn)
        assert "changed my mind" in said and street not in said and arguments["street"] in said
        assert env.step(turn)[0] == UNCLEAR
        assert env.step(announcement(task.data["plan"][0]["steps"]))[0] == AGREED
        env.step(call(name, **{**arguments, "street": street, "city": city, "postal_code": code}))
        assert not finish(env)[1]["is_success"]
    assert count >= 5


def test_nothing_runs_behind_the_end() -> None:
    for env, _, planned in found("grant", 5):
        turn = until(env, is_write)
        assert turn is not None
        calls = "".join(write_call(*step["call"]) for step in planned["steps"])
        said, reward, over, _, info = env.step(CLOSE + calls)
        assert over and reward == 0.0 and info["stop_reason"] == "closed" and "the case is closed" in said
        assert info["tool_errors"]["tool_error"] == len(planned["steps"])


def test_all_in_one_turn_is_fine_and_the_budget_is_no_failure() -> None:
    for env, seed, planned in found("grant", 5):
        until(env, is_write)
        calls = "".join(write_call(*step["call"]) for step in planned["steps"])
        *_, info = env.step(calls + CLOSE)
        assert info["is_success"] and info["stop_reason"] == "closed"
        env.reset(seed=seed)
        until(env, is_write)
        assert env._play is not None
        last = ServiceDesk(max_turns=env._play.turns + 1)
        last.reset(seed=seed)
        until(last, is_write)
        *_, info = last.step(calls)
        assert info["is_success"] and info["stop_reason"] == "max_turns"


# The scripted customer.


def test_the_customer_says_what_is_asked_for_and_nothing_else() -> None:
    for env, _, planned in found("grant", 4, kinds=["change_variant"]):
        script = world_of(env).user.script
        facts = script["requests"][0]["facts"]
        name, code = f"My name is {script['name']}.", f"My postal code is {script['postal'][-1]}."
        order, item = facts["order"]["values"][0], facts["item"]["values"][0]
        exact = announcement(planned["steps"])
        for asked, said in [
            ("Hello! How can I help you?", script["requests"][0]["opening"]),
            ("May I have your full name, please?", name),
            ("To verify your identity, please tell me your name and ZIP code.", f"{name} {code}"),
            ("I need to verify your identity first. Could you help me?", f"{name} {code}"),
            ("Which order is it about?", facts["order"]["text"]),
            ("Please give me the order number and the item.", f"{facts['order']['text']} {facts['item']['text']}"),
            ("Why do you want that?", facts["reason"]["text"]),
            ("Which colour and size would you like instead?", facts["variant"]["text"]),
            ("What's your favourite animal?", VAGUE),
            ("Hm.", VAGUE),
            ("name order address", VAGUE),
            ("<think>What is your name?</think>So, why?", facts["reason"]["text"]),
            ("I can't do that, sorry.", "Is that a no? Then please decline it, so that I have it in writing."),
            ("Is it order W00001?", f"No, not W00001. {facts['order']['text']}"),
            (f"So this is about {order}?", RIGHT),
            (f"So this is about {order}, is that right?", RIGHT),
            ("I've changed it for you.", "I have had no word of that yet. Please see to it."),
            ("I will change the item to the variant that you want. Would you like me to proceed?", UNCLEAR),
            (f"I will change {item} of {order} to the variant that you want. Would you like me to proceed?", UNCLEAR),
            (exact, AGREED),
        ]:
            heard, *_, info = env.step(asked)
            assert heard == said, asked
            assert info["role"] == "user" and info["tool_results"] == []
        assert world_of(env).user.agreed == [exact]


def test_the_customer_says_two_facts_a_turn_the_first_that_are_asked_for() -> None:
    every = "Please tell me the address, the order number, the reason, your postal code and your name."
    for env, _, _ in found("grant", 4, kinds=["change_address"]):
        facts, script = world_of(env).user.request["facts"], world_of(env).user.script
        code, name = f"My postal code is {script['postal'][-1]}.", f"My name is {script['name']}."
        told = [facts["address"]["text"], facts["order"]["text"], code, name]
        for pair in (told[:2], told[2:], told[:2]):  # nobody needs the reason
            assert env.step(every)[0] == " ".join(pair)


def test_nobody_agrees_before_all_is_said() -> None:
    for env, _, planned in found("grant", 4, kinds=["change_address"]):
        facts = world_of(env).user.request["facts"]
        assert env.step(GO)[0] == UNCLEAR
        said, *_ = env.step(f"I am going to redirect your parcel. {GO}")
        assert said == " ".join(facts[fact]["text"] for fact in facts if facts[fact]["values"])
        assert env.step(f"I am going to redirect your parcel. {GO}")[0] == UNCLEAR
        assert not world_of(env).user.agreed
        assert env.step(announcement(planned["steps"]))[0] == AGREED


def test_the_customer_insists_and_goes() -> None:
    for env, _, _ in found("decline", 6, level=2):
        insists = world_of(env).user.request["insists"]
        stays = world_of(env).user.script["stays"]
        turn = until(env, lambda turn: '"decline"' in turn)
        assert turn is not None
        env.step(turn)
        heard = [env.step("I am sorry, that is against the policy.")[0] for _ in insists]
        assert heard == [f"{claim} Please do it all the same." for claim in insists]
        if stays:
            assert env.step("No.")[0] == "All right then. That is all."
        said, _, over, _, info = env.step("Goodbye.")
        assert said == "All right then. Goodbye." and over
        assert info["stop_reason"] == "user_left" and info["is_success"]


def test_what_the_agent_says_is_cut_and_never_raises() -> None:
    env = ServiceDesk()
    env.reset(seed=0)
    for text in ("order? " * 200_000, "\ud800?", "W12345 " * 100_000, "(" * 50_000, "\x00", "?" * 99_999):
        begun = time.process_time()
        env.step(text)
        assert time.process_time() - begun < 0.5


# Customers of one's own.


def test_a_function_plays_the_customer() -> None:
    heard: list[list[dict[str, str]]] = []

    def user(messages: list[dict[str, str]]) -> str:
        heard.append(messages)
        said = messages[-1]["content"]
        return f"Bye. {END}" if "That is done" in said else "<think>hm</think>As you say."

    for env_, seed, planned in found("grant", 3, user=user):
        world = world_of(env_)
        script = world.user.script
        heard.clear()
        assert env_.step("Who are you?")[0] == "As you say."
        first, second, third = heard[0]
        assert [m["role"] for m in heard[0]] == ["system", "assistant", "user"]
        assert script["name"] in first["content"] and script["requests"][0]["opening"] in first["content"]
        assert second["content"].endswith(script["requests"][0]["opening"]) and third["content"] == "Who are you?"
        proofs = {"postal_code": script["postal"][-1], "order_id": script["order"]}
        env_.step(call("find_customer", name=script["name"], **proofs))
        for step in planned["steps"]:
            env_.step(write_call(*step["call"]))
        said, reward, over, _, info = env_.step("That is done.")
        assert (said, reward, over, info["stop_reason"]) == ("Bye.", 1.0, True, "user_left"), seed
        assert len(heard[-1]) == 5


def test_the_expert_serves_a_customer_whom_nobody_understands() -> None:
    env = ServiceDesk(level=3, user=lambda messages: "Hm?")
    for seed in range(40):
        env.reset(seed=seed)
        env.step("Hello?")
        total, info = finish(env)
        assert total == 1.0 and info["stop_reason"] in ("closed", "transferred"), seed


def broken(messages: list[dict[str, str]]) -> str:
    raise RuntimeError("no server " * 500)


@pytest.mark.parametrize("user", [broken, lambda messages: "", lambda messages: None, lambda messages: "<think>"])
def test_a_customer_who_is_down_leaves_no_score(user: Any) -> None:
    env = ServiceDesk(user=user)
    env.reset(seed=0)
    _, reward, over, truncated, info = env.step("Hello?")
    assert (reward, over, truncated, info["stop_reason"]) == (0.0, True, False, "tool_down")
    assert not info["is_success"] and "simulated customer" in info["grader_error"]


def test_a_step_is_fast() -> None:
    env = ServiceDesk()
    env.reset(seed=0)
    begun, steps = time.process_time(), 0
    for index in range(40):
        over = False
        env.reset(options={"index": index})
        while not over:
            *_, over, _, _ = env.step(env.expert_action())
            steps += 1
    assert steps / (time.process_time() - begun) > 100  # about a thousand where nobody else is at work
