"""A shop's database, and what can be done in it. It keeps no policy: that is the business of whoever works there."""

from __future__ import annotations

import json
import marshal
from collections.abc import Mapping, Sequence
from typing import Any

from tetrathlon.envs.tools.tool import ToolError

Leaf = str | int
PROBLEMS = ("lost", "damaged")
"""What can be reported of an order or an item."""
_LONGEST_SHOWN = 60
_LONGEST_FIELD = 80


class Shop:
    """A shop's database, and what can be done in it.

    Whatever is impossible raises a ``ToolError`` and changes nothing; whatever is only forbidden is done.

    Args:
        data: ``customers``, ``products`` and ``orders`` by their ids; it is changed.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def order(self, order_id: str) -> dict[str, Any]:
        """Return an order."""
        return self._entry("orders", "order", order_id)

    def customer(self, customer_id: str) -> dict[str, Any]:
        """Return a customer."""
        return self._entry("customers", "customer", customer_id)

    def item(self, order_id: str, item_id: str) -> dict[str, Any]:
        """Return an item of an order."""
        found: dict[str, Any] | None = self.order(order_id)["items"].get(id_of(item_id))
        if found is None:
            raise ToolError(f"order {id_of(order_id)} has no item {_shown(item_id)}")
        return found

    def product(self, named: str) -> tuple[str, dict[str, Any]]:
        """Return the id and the entry of a product that is named by its id or its name."""
        wanted = " ".join(named.split()).casefold()
        for key, product in self.data["products"].items():
            if wanted in (key.casefold(), product["name"].casefold()):
                return key, product
        raise ToolError(f"there is no product {_shown(named)}")

    def orders_of(self, customer_id: str) -> dict[str, Any]:
        """Return the orders of a customer by their ids."""
        return {key: order for key, order in self.data["orders"].items() if order["customer"] == customer_id}

    def find_customer(self, name: str, postal_code: str, order_id: str) -> str | None:
        """Return the id of the one customer whom all that is given fits, or None."""
        wanted = " ".join(name.split()).casefold()
        for key, customer in self.data["customers"].items():
            if customer["name"].casefold() != wanted:
                continue
            if postal_code and customer["address"]["postal_code"] != postal_code.strip():
                continue
            if order_id and id_of(order_id) not in self.orders_of(key):
                continue
            return str(key)
        return None

    def cancel_order(self, order_id: str) -> str:
        """Cancel an order and all items of it that are still ordered."""
        order = self.order(order_id)
        if order["state"] == "cancelled":
            raise ToolError(f"order {id_of(order_id)} is cancelled already")
        order["state"] = "cancelled"
        for item in order["items"].values():
            if item["state"] == "ordered":
                self._end(item, "cancelled")
        return f"Order {id_of(order_id)} is cancelled. Nothing is refunded yet."

    def cancel_item(self, order_id: str, item_id: str) -> str:
        """Take an item out of an order."""
        self._end(self._live(order_id, item_id), "cancelled")
        return f"Item {id_of(item_id)} of order {id_of(order_id)} is cancelled. Nothing is refunded yet."

    def return_items(self, order_id: str, item_ids: Sequence[str]) -> str:
        """Take items back."""
        wanted = list(dict.fromkeys(map(id_of, item_ids)))
        if not wanted:
            raise ToolError("item_ids must name an item")
        for item in [self._live(order_id, item_id) for item_id in wanted]:
            self._end(item, "returned")
        return f"Of order {id_of(order_id)} {', '.join(wanted)} will be returned. Nothing is refunded yet."

    def exchange_item(self, order_id: str, item_id: str, variant_id: str) -> str:
        """Exchange an item for another variant of its product; the difference goes over the order's payment method."""
        order, item = self.order(order_id), self._live(order_id, item_id)
        variants = self.data["products"][item["product"]]["variants"]
        wanted = id_of(variant_id)
        if wanted not in variants:
            raise ToolError(f"{item['name']} has no variant {_shown(variant_id)}; get_product lists them")
        variant = variants[wanted]
        if wanted == item["variant"]:
            raise ToolError(f"item {id_of(item_id)} is variant {wanted} already")
        if variant["stock"] < 1:
            raise ToolError(f"variant {wanted} is out of stock")
        difference = variant["price"] - item["price"]
        if difference > 0:
            self._take(order, order["payment"], difference)
            order["paid"] += difference
        elif difference:
            self._give(order, order["payment"], -difference)
        variants[item["variant"]]["stock"] += 1
        variant["stock"] -= 1
        item.update(variant=wanted, colour=variant["colour"], size=variant["size"], price=variant["price"])
        moved = f"{abs(difference)} {'charged to' if difference > 0 else 'refunded to'} {order['payment']}"
        return f"Item {id_of(item_id)} is now variant {wanted}; {moved if difference else 'the price is the same'}."

    def change_address(self, order_id: str, street: str, city: str, postal_code: str) -> str:
        """Change where an order goes."""
        self.order(order_id)["address"] = _address(street, city, postal_code)
        return f"Order {id_of(order_id)} goes to the new address."

    def change_profile(self, customer_id: str, street: str, city: str, postal_code: str) -> str:
        """Change where a customer lives."""
        self.customer(customer_id)["address"] = _address(street, city, postal_code)
        return f"Customer {id_of(customer_id)} has the new address."

    def change_payment(self, order_id: str, payment_id: str) -> str:
        """Move all that was paid for an order from its payment method to another of the customer's."""
        order = self.order(order_id)
        self._payment(order, payment_id)
        wanted, due = id_of(payment_id), order["paid"] - sum(order["refunds"].values())
        if wanted == order["payment"]:
            raise ToolError(f"order {id_of(order_id)} is paid with {wanted} already")
        self._take(order, wanted, due)
        old = self._payment(order, order["payment"])
        if "balance" in old:
            old["balance"] += due
        order["payment"] = wanted
        return f"Order {id_of(order_id)} is now paid with {wanted}; {due} went back to the old method."

    def report_problem(self, order_id: str, problem: str, item_id: str = "") -> str:
        """Note that an order was lost or an item arrived damaged."""
        if problem not in PROBLEMS:
            raise ToolError(f"problem must be one of {', '.join(PROBLEMS)}, got {_shown(problem)}")
        if problem == "lost":
            self.order(order_id)["state"] = "lost"
            return f"Order {id_of(order_id)} is noted as lost. Nothing is refunded yet."
        self._live(order_id, item_id)["state"] = "damaged"
        return f"Item {id_of(item_id)} is noted as damaged. Nothing is refunded yet."

    def refund(self, order_id: str, payment_id: str, amount: int) -> str:
        """Pay back a part of what an order cost."""
        order = self.order(order_id)
        left = order["paid"] - sum(order["refunds"].values())
        if not 1 <= amount <= left:
            raise ToolError(f"amount must be from 1 to {left}, what is paid and not refunded, got {str(amount)[:40]}")
        self._give(order, id_of(payment_id), amount)
        return f"{amount} refunded to {id_of(payment_id)} for order {id_of(order_id)}."

    def do(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Do what is named as one of the methods that change something."""
        return str(getattr(self, name)(**arguments))

    def copy(self) -> Shop:
        """Return a shop of its own with the same database."""
        return Shop(marshal.loads(marshal.dumps(self.data)))  # several times as fast as copy.deepcopy

    def dump(self) -> str:
        """Return the database as a text, which :meth:`load` reads."""
        return json.dumps(self.data)

    @classmethod
    def load(cls, text: str) -> Shop:
        """Return a shop with the database that :meth:`dump` wrote."""
        return cls(json.loads(text))

    def at(self, path: str) -> Leaf | None:
        """Return the value at a path of :meth:`changes`; None: there is none."""
        value: Any = self.data
        for key in path.split("/"):
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def changes(self, before: Shop) -> dict[str, Leaf | None]:
        """Return every single value that is another than ``before``, by its path; None for what is gone."""
        changes: dict[str, Leaf | None] = {}
        _compare(before.data, self.data, "", changes)
        return changes

    def _entry(self, table: str, kind: str, key: str) -> dict[str, Any]:
        found: dict[str, Any] | None = self.data[table].get(id_of(key))
        if found is None:
            raise ToolError(f"there is no {kind} {_shown(key)}")
        return found

    def _live(self, order_id: str, item_id: str) -> dict[str, Any]:
        item = self.item(order_id, item_id)
        if item["state"] != "ordered":
            raise ToolError(f"item {id_of(item_id)} of order {id_of(order_id)} is {item['state']} already")
        return item

    def _end(self, item: dict[str, Any], state: str) -> None:
        item["state"] = state
        self.data["products"][item["product"]]["variants"][item["variant"]]["stock"] += 1

    def _payment(self, order: dict[str, Any], payment_id: str) -> dict[str, Any]:
        found: dict[str, Any] | None = self.data["customers"][order["customer"]]["payments"].get(id_of(payment_id))
        if found is None:
            raise ToolError(f"{_shown(payment_id)} is no payment method of the customer of this order")
        return found

    def _take(self, order: dict[str, Any], payment_id: str, amount: int) -> None:
        payment = self._payment(order, payment_id)
        if "balance" in payment:
            if payment["balance"] < amount:
                raise ToolError(f"gift card {id_of(payment_id)} holds {payment['balance']}, less than {amount}")
            payment["balance"] -= amount

    def _give(self, order: dict[str, Any], payment_id: str, amount: int) -> None:
        payment = self._payment(order, payment_id)
        if "balance" in payment:
            payment["balance"] += amount
        order["refunds"][payment_id] = order["refunds"].get(payment_id, 0) + amount


def id_of(text: str) -> str:
    """Return an id as it is kept, whatever case and mark it was written with."""
    return text.strip().lstrip("#").upper()


def _shown(text: str) -> str:
    return repr(text[:_LONGEST_SHOWN])


def _address(street: str, city: str, postal_code: str) -> dict[str, str]:
    fields = {"street": street, "city": city, "postal_code": postal_code}
    written = {name: " ".join(text[: _LONGEST_FIELD + 1].split()) for name, text in fields.items()}
    for name, text in written.items():
        if not text or len(text) > _LONGEST_FIELD or len(fields[name]) > _LONGEST_FIELD:
            raise ToolError(f"{name} must have 1 to {_LONGEST_FIELD} characters")
    return written


def _compare(before: Any, after: Any, path: str, changes: dict[str, Leaf | None]) -> None:
    if before == after:
        return
    if not isinstance(after, dict):
        changes[path] = after
        return
    old = before if isinstance(before, dict) else {}
    for key in {**old, **after}:
        _compare(old.get(key), after.get(key), f"{path}/{key}" if path else key, changes)
