"""The written policy of a shop: rules in plain English, with numbers of their own in each instance."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tetrathlon.envs.tools.desk.draw import THINGS, Draw

PROOFS: dict[str, tuple[str, ...]] = {
    "postal": ("postal",),
    "order": ("order",),
    "both": ("postal", "order"),
    "either": ("postal",),
}
"""How customers are verified -> the facts, besides the name, that suffice; for ``either`` one of several ways."""
_PROOFS_WRITTEN = {
    "postal": "their full name and their postal code; an order number does not do",
    "order": "their full name and the number of an order of theirs; a postal code does not do",
    "both": "their full name, their postal code and the number of an order of theirs, all three",
    "either": "their full name and either their postal code or the number of an order of theirs",
}


@dataclass(frozen=True, slots=True)
class Policy:
    """What may be done at a service desk."""

    identity: str
    """One of :data:`PROOFS`."""
    window: int
    """Days after delivery in which items are returned or exchanged, the last one included."""
    gold_days: int
    """Days more for gold customers."""
    final: tuple[str, ...]
    """Categories of which nothing is taken back."""
    fee: int
    """What is taken off a refund for each returned item."""
    redirect: bool
    """Whether an order that has been shipped may go to another address."""
    single: bool
    """Whether single items of an order may be cancelled."""
    gift_refund: bool
    """Whether the refund of a return may go to a gift card instead."""
    dearer: bool
    """Whether an item may be exchanged for a dearer variant."""
    limit: int
    """Most that the desk refunds for what is lost or damaged; more is for a human."""
    lost_days: int
    """Days after which an order that was shipped and has not arrived counts as lost."""
    damage_days: int
    """Days after delivery in which damage is reported, the last one included."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {**asdict(self), "final": list(self.final)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Policy:
        """Return what :meth:`to_json` was called on."""
        return cls(**{**data, "final": tuple(data["final"])})

    def verifies(self, proofs: frozenset[str]) -> bool:
        """Tell whether a customer is verified by a name with ``proofs``, some of ``postal`` and ``order``."""
        if self.identity == "either":
            return bool(proofs)
        return proofs.issuperset(PROOFS[self.identity])

    def write(self) -> str:
        """Return the rules as text; what a request is declined or handed over for stands in brackets."""
        gold = f", gold customers {self.window + self.gold_days} days" if self.gold_days else ""
        fee = f", less a fee of {self.fee} for each item" if self.fee else ""
        gift = " or, if they ask for it, to a gift card of theirs" if self.gift_refund else " and to no other"
        dearer = (
            "A difference in price goes over the payment method of the order; exchange_item does that."
            if self.dearer
            else "The new variant may not be dearer [dearer_variant]; the tool refunds what it is cheaper."
        )
        redirect = (
            "Where an order goes can be changed until it is delivered [already_delivered]."
            if self.redirect
            else "Where an order goes can be changed only while it is processing [already_shipped]."
        )
        single = (
            "A single item can be cancelled while the order is processing [already_shipped]; refund its price."
            if self.single
            else "Single items cannot be cancelled, only whole orders [whole_order_only]."
        )
        final = " and ".join(self.final)
        rules = [
            f"Identity. Before anything is shown or changed, verify the customer by {_PROOFS_WRITTEN[self.identity]}, "
            "as they tell you, with find_customer. If it fits nobody, ask once more; if it fits nobody again, decline "
            "[not_verified]. Open only orders of the verified customer, which find_customer lists. An order that is "
            "not among them you decline without opening it [not_your_order].",
            "Consent. Before a change, tell the customer what you are going to do and wait until they agree: what you "
            "change, of which order or item, the new variant, address or payment method, and the amount of a refund. "
            "They agree to that and to nothing else. Change "
            "only what they want at the end, once they are sure: any other change breaks the policy, even if it is "
            "undone.",
            f"Refunds. Nothing is refunded by itself: call refund, in whole. A refund goes to the payment method of "
            f"the order; that of a return goes there{gift} [other_payment].",
            "Cancelling. An order can be cancelled only while it is processing [already_shipped]; refund all that was "
            f"paid. {single}",
            f"Addresses. {redirect} The address in the profile of a customer cannot be changed while an order of "
            "theirs is shipped and not yet delivered [order_under_way].",
            "Payment. The payment method of an order can be changed only while it is processing [already_shipped], "
            "and to a gift card only if that covers the whole order [not_enough_balance].",
            "Other variants. While an order is processing, an item of it can be changed for another variant of its "
            "product; when it is shipped and not yet delivered, not [already_shipped]. When it is delivered, that is "
            "an exchange, for which the rules of returns hold. The variant must be in stock [out_of_stock]. " + dearer,
            f"Returns and exchanges. Only what is delivered [not_delivered], within {self.window} days after delivery"
            f"{gold} [window_passed]; nothing of {final} [final_sale]. Refund the prices of returned items{fee}.",
            f"Lost orders. One that was shipped at least {self.lost_days} days ago and is not delivered counts as "
            f"lost; a later one does not [too_early]. Report it and refund all that was paid, up to {self.limit}; "
            "more is for a human [above_limit]. So is one that the records call delivered [marked_delivered].",
            f"Damage. An item that arrived damaged can be reported within {self.damage_days} days after delivery "
            f"[window_passed], of any category. Report it and refund its price, up to {self.limit}, and it need not "
            "come back; more is for a human [above_limit].",
        ]
        return "\n".join(f"{number}. {rule}" for number, rule in enumerate(rules, 1))


def draw_policy(draw: Draw) -> Policy:
    """Draw a policy."""
    return Policy(
        identity=draw.pick(tuple(PROOFS)),
        window=draw.pick((10, 14, 21, 30, 45, 60)),
        gold_days=draw.pick((0, 7, 14, 30)),
        final=tuple(draw.some(THINGS, 2)),
        fee=draw.pick((0, 0, 2, 3, 5)),
        redirect=draw.chance(),
        single=draw.chance(),
        gift_refund=draw.chance(),
        dearer=draw.chance(),
        limit=draw.pick((60, 80, 100, 150)),
        lost_days=draw.pick((5, 7, 10, 14)),
        damage_days=draw.pick((3, 5, 7, 10)),
    )
