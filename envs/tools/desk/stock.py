"""A shop's database in the making."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from tetrathlon.envs.tools.desk.draw import COLOURS, FIRST, LAST, MAKERS, SIZES, THINGS, Draw
from tetrathlon.envs.tools.desk.shop import Shop

_FIRST_DAY = date(2025, 1, 1)
_DIGITS = {"customer": ("C", 4), "payment": ("P", 4), "order": ("W", 5), "item": ("I", 5), "product": ("B", 4)}
_DIGITS["variant"] = ("V", 5)


class Stock:
    """A shop's database in the making.

    Args:
        draw: What everything is drawn from.
        level: 1 to 3; from 2 on there are more customers, products and orders.
    """

    def __init__(self, draw: Draw, level: int) -> None:
        self.draw = draw
        self.today = _FIRST_DAY + timedelta(days=draw.between(90, 900))
        self.data: dict[str, Any] = {"customers": {}, "products": {}, "orders": {}}
        self._taken: set[str] = set()
        customers, products = (3, 8) if level == 1 else (4, 12)
        first, last = draw.some(FIRST, customers), draw.some(LAST, customers)
        for names in zip(first, last, strict=True):
            self._add_customer(" ".join(names))
        self.free = [self._add_product() for _ in range(products)]
        """Products that no order of the caller has."""
        self.caller = draw.pick(tuple(self.data["customers"]))
        """Who calls, or is said to."""
        for customer in self.data["customers"]:
            for _ in range(1 if level == 1 else draw.between(1, 3)):
                self.add_order(customer, draw.pick(("processing", "delivered", "delivered")), [self._product(customer)])

    @property
    def shop(self) -> Shop:
        """The shop with this database."""
        return Shop(self.data)

    def new_id(self, kind: str) -> str:
        """Draw an id that nothing has."""
        letter, digits = _DIGITS[kind]
        while True:
            name = f"{letter}{self.draw.between(10 ** (digits - 1), 10**digits - 1)}"
            if name not in self._taken:
                self._taken.add(name)
                return name

    def other(self) -> str:
        """Draw a customer who does not call."""
        return self.draw.pick([key for key in self.data["customers"] if key != self.caller])

    def add_order(self, customer_id: str, state: str, products: list[str], days: int | None = None) -> str:
        """Draw an order; return its id.

        Args:
            customer_id: Whose it is.
            state: ``processing``, ``shipped`` or ``delivered``.
            products: What is in it.
            days: How long it has been in this state; None: drawn.
        """
        draw, customer = self.draw, self.data["customers"][customer_id]
        since = draw.between(1, {"processing": 3, "shipped": 6, "delivered": 80}[state]) if days is None else days
        here = self.today - timedelta(days=since)
        shipped = here if state == "shipped" else here - timedelta(days=draw.between(1, 4))
        placed = here if state == "processing" else shipped - timedelta(days=draw.between(0, 3))
        items = {}
        for product_id in products:
            product = self.data["products"][product_id]
            variant_id = draw.pick(tuple(product["variants"]))
            variant = product["variants"][variant_id]
            items[self.new_id("item")] = {
                "product": product_id,
                "name": product["name"],
                "category": product["category"],
                "variant": variant_id,
                "colour": variant["colour"],
                "size": variant["size"],
                "price": variant["price"],
                "state": "ordered",
            }
        name = self.new_id("order")
        self.data["orders"][name] = {
            "customer": customer_id,
            "state": state,
            "placed": placed.isoformat(),
            "shipped": "" if state == "processing" else shipped.isoformat(),
            "delivered": here.isoformat() if state == "delivered" else "",
            "address": dict(customer["address"]),
            "payment": next(key for key, payment in customer["payments"].items() if "balance" not in payment),
            "paid": sum(item["price"] for item in items.values()),
            "refunds": {},
            "items": items,
        }
        return name

    def take_products(self, n: int) -> list[str]:
        """Draw n products that no order of the caller has; none has them later."""
        taken = self.draw.some(self.free, n)
        self.free = [name for name in self.free if name not in taken]
        return taken

    def _product(self, customer_id: str) -> str:
        return self.take_products(1)[0] if customer_id == self.caller else self.draw.pick(tuple(self.data["products"]))

    def _add_customer(self, name: str) -> None:
        draw = self.draw
        first = draw.between(1_000, 4_999)
        second = draw.between(5_000, 9_999)
        payments: dict[str, Any] = {
            self.new_id("payment"): {"kind": f"card ending in {first}"},
            self.new_id("payment"): {"kind": f"card ending in {second}"},
            self.new_id("payment"): {"kind": "gift card", "balance": draw.between(2, 30) * 5},
        }
        self.data["customers"][self.new_id("customer")] = {
            "name": name,
            "tier": "gold" if draw.chance(0.35) else "standard",
            "address": draw.address(),
            "payments": payments,
        }

    def _add_product(self) -> str:
        draw = self.draw
        names = {product["name"] for product in self.data["products"].values()}
        while True:
            category = draw.pick(tuple(THINGS))
            name = f"{draw.pick(MAKERS)} {draw.pick(THINGS[category])}"
            if name not in names:
                break
        price = draw.between(3, 24) * 5
        looks = [(colour, size) for colour in draw.some(COLOURS, 3) for size in draw.some(SIZES, 2)]
        variants = {
            self.new_id("variant"): {
                "colour": colour,
                "size": size,
                "price": price + draw.pick((0, 0, 0, 4, -4, 9)),
                "stock": 0 if draw.chance(0.2) else draw.between(1, 20),
            }
            for colour, size in draw.some(looks, draw.between(3, 5))
        }
        key = self.new_id("product")
        self.data["products"][key] = {"name": name, "category": category, "variants": variants}
        return key
