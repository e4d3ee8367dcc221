"""What an announcement to a customer names: the change, and all that decides it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tetrathlon.envs.tools.desk.shop import Shop, id_of

Clarity = Literal["nothing", "kind", "all"]
"""What a text names of a change: nothing of it, what kind of change it is, or all that decides it."""
_LONGEST_HEARD = 4_000
_MOST_NUMBERS = 16
"""Different numbers in one announcement; more are no announcement, but a list of all that there is."""
_MOST_KINDS = 3
_SENDS = r"sen[dt]|deliver|ship|redirect|forward|chang|updat|correct|replac|set|address|enter|put"
_WORDS: Mapping[str, str] = {
    "cancel_order": r"cancel|call(?:ing)? off|void",
    "cancel_item": r"cancel|remov|tak(?:e|en|ing) (?:\S+ ){0,8}?out|drop",
    "return_items": r"return|(?:tak(?:e|en|ing)|sen[dt]|sending) (?:\S+ ){0,16}?back|accept",
    "exchange_item": r"exchang|chang|swap|replac|switch",
    "change_address": _SENDS,
    "change_profile": _SENDS,
    "change_payment": r"mov|chang|switch|pay|charg|bill|updat|set",
    "lost": r"lost|missing|(?:not|never) (?:been )?(?:arriv|deliver|com|came|reach)",
    "damaged": r"damag|broken|defect|faulty",
    "refund": r"refund|reimburs|credit|(?:pay|paid|paying|give|giving) (?:\S+ ){0,8}?back|money back",
}
"""Change (problems that are reported by themselves) -> beginnings of words that say it, in small letters."""
_WISHES: Mapping[str, str] = {"change_variant": "exchange_item", "lost_order": "refund", "damaged_item": "refund"}
_SAYS = {name: re.compile(rf"\b(?:{words})") for name, words in _WORDS.items()}
_DENIES = {
    name: re.compile(rf"(?:\bnot|n't|\bnever|\bcannot|\bunable|\binstead of)(?: \w+){{0,3}}? (?:{words})\w*")
    for name, words in _WORDS.items()
    if name not in ("lost", "damaged")
}
_KINDS = tuple(re.compile(rf"\b(?:{words})") for words in (
    "cancel", r"return|\w+ back", "exchang|swap", "address", "profile", "payment method|pay with", "lost", "damag"
))  # fmt: skip
_NUMBER = re.compile(r"\b[a-z]?\d+\b")
_PAYMENT = re.compile(r"\bp\d{4}\b")


class Announcement:
    """A text that may say to a customer what is going to be done for them.

    Wording is free; content is not: the kind of change must be said, and its object by id or by name.

    Args:
        text: What is said, of any length.
        shop: The database that the change is made in, as it is when it is said.
    """

    def __init__(self, text: str, shop: Shop) -> None:
        self.said = " ".join(text[:_LONGEST_HEARD].casefold().replace("\u2019", "'").split())
        self.shop = shop

    @property
    def is_sprawling(self) -> bool:
        """Whether it lists what might be done in place of what will be."""
        kinds = sum(kind.search(self.said) is not None for kind in _KINDS)
        return kinds > _MOST_KINDS or len(set(_NUMBER.findall(self.said))) > _MOST_NUMBERS

    def mentions(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Tell whether a kind of change is said at all.

        Args:
            name: Of the tool.
            arguments: Its own; only ``problem`` counts.
        """
        kind = str(arguments.get("problem", name))
        said = _DENIES[kind].sub(" ", self.said) if kind in _DENIES else self.said
        return _SAYS[kind].search(said) is not None

    def names(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Tell whether a change is said with all that decides it: order, items, variant, address, payment, amount.

        Args:
            name: Of the tool.
            arguments: Of a call that is possible.
        """
        if not self.mentions(name, arguments):
            return False
        items = [item for item in (*arguments.get("item_ids", ()), arguments.get("item_id", "")) if item]
        order_id = arguments.get("order_id", "")
        if name == "refund":
            return self._has_amount(arguments["amount"]) and self._has_aim(order_id, arguments["payment_id"])
        if order_id and not items and not self._has(id_of(order_id)):
            return False
        return (
            all(self._has_item(order_id, item) for item in items)
            and all(self._has(arguments[key]) for key in ("street", "city", "postal_code") if key in arguments)
            and ("variant_id" not in arguments or self._has_variant(order_id, items[0], arguments["variant_id"]))
            and ("payment_id" not in arguments or self._has_payment(order_id, arguments["payment_id"]))
        )

    def clarity(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> Clarity:
        """Return what it names of ``calls``, the tools and their arguments of all that is to be done."""
        said = [call for call in calls if self.mentions(*call)]
        return self._clarity(bool(said), all(self.names(*call) for call in said))

    def clarity_of_wish(self, kind: str, values: Sequence[str]) -> Clarity:
        """Return what it names of what a customer wishes, whatever it comes to.

        Args:
            kind: Of the request.
            values: By which the order or the items are recognized; one is enough.
        """
        is_meant = self.mentions(_WISHES.get(kind, kind), {})
        return self._clarity(is_meant, not values or any(map(self._has, values)))

    def _clarity(self, is_meant: bool, is_named: bool) -> Clarity:
        if not is_meant:
            return "nothing"
        return "all" if is_named and not self.is_sprawling else "kind"

    def _has(self, value: str) -> bool:
        wanted = " ".join(str(value).casefold().split())
        return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", self.said) is not None

    def _has_item(self, order_id: str, item_id: str) -> bool:
        return self._has(id_of(item_id)) or self._has(self.shop.item(order_id, item_id)["name"])

    def _has_variant(self, order_id: str, item_id: str, variant_id: str) -> bool:
        product = self.shop.data["products"][self.shop.item(order_id, item_id)["product"]]
        variant = product["variants"][id_of(variant_id)]
        return self._has(id_of(variant_id)) or (self._has(variant["colour"]) and self._has(variant["size"]))

    def _has_payment(self, order_id: str, payment_id: str) -> bool:
        payments = self.shop.customer(self.shop.order(order_id)["customer"])["payments"]
        kind = payments[id_of(payment_id)]["kind"]
        digits = re.search(r"\d+", kind)
        return self._has(id_of(payment_id)) or self._has(kind) or (digits is not None and self._has(digits[0]))

    def _has_aim(self, order_id: str, payment_id: str) -> bool:
        """Tell whether it says where a refund goes, or leaves it at the method that the order was paid with."""
        if self._has_payment(order_id, payment_id):
            return True
        return id_of(payment_id) == self.shop.order(order_id)["payment"] and not _PAYMENT.search(self.said)

    def _has_amount(self, amount: int) -> bool:
        return re.search(rf"(?<![\d.,]){amount}(?:\.00?)?(?!\d|[.,]\d)", self.said) is not None
