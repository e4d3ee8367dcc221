"""An inventory: prices of items, a store, orders, reports."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.cases_stock import CASES
from tetrathlon.envs.tools.repo.family import Family, of, whole

_ITEM = '''"""Items and their prices, in cents."""


class Item:
    """An item with a code, a price for one, and tags, which it keeps as a list of its own.

    A price below 0 or an empty code raises ValueError.
    """

    def __init__(self, code, price, tags=()):
        if price < 0 or not code:
            raise ValueError("an item needs a code and a price")
        self.code = code
        self.price = price
        self.tags = list(tags)

    def has_tags(self, tags):
        """Tell whether the item has all of the tags."""
        return all(tag in self.tags for tag in tags)


def price_of(item, count):
    """Return the price of so many of an item: from N_MANY on it is N_OFF per cent less, rounded down to cents.

    A count below 1 raises ValueError.
    """
    if count < 1:
        raise ValueError("there must be one")
    total = item.price * count
    if count >= N_MANY:
        total -= total * N_OFF // 100
    return total
'''
_STORE = '''"""A store of items."""

from PKG.item import Item


class Shortage(Exception):
    """There is not enough of an item."""


class Store:
    """How many there are of each item, by codes."""

    def __init__(self, items=()):
        self._items = {item.code: item for item in items}
        self._counts = {item.code: 0 for item in items}

    def register(self, item):
        """Add an item of which there is none yet; tell whether its code was free."""
        if item.code in self._items:
            return False
        self._items[item.code] = item
        self._counts[item.code] = 0
        return True

    def item_of(self, code):
        """Return the item with a code; KeyError is raised where there is none."""
        return self._items[code]

    def codes(self, tags=()):
        """Return the codes, in alphabetical order, of the items that have all of the tags."""
        return sorted(code for code, item in self._items.items() if item.has_tags(tags))

    def level(self, code):
        """Return how many there are; 0 for a code that nobody knows."""
        return self._counts.get(code, 0)

    def put(self, code, count):
        """Put in so many of a known item and return how many there are now.

        A count below 1 raises ValueError, a code that nobody knows KeyError.
        """
        if count < 1:
            raise ValueError("there must be one")
        self._counts[code] += count
        return self._counts[code]

    def take(self, code, count):
        """Take out so many and return how many are left; if there are fewer, Shortage is raised and none is taken."""
        if count > self.level(code):
            raise Shortage(code)
        self._counts[code] -= count
        return self._counts[code]

    def levels(self):
        """Return code -> how many there are, as a new dict."""
        return dict(self._counts)

    def worth(self):
        """Return the sum of the plain prices of all that is there."""
        return sum(self._items[code].price * count for code, count in self._counts.items())
'''
_ORDER = '''"""Orders of several items."""

from PKG.item import price_of
from PKG.store import Shortage


class Order:
    """How many of what somebody wants: code -> count."""

    def __init__(self, buyer, wanted=None):
        self.buyer = buyer
        self.wanted = dict(wanted) if wanted is not None else {}

    def want(self, code, count=1):
        """Want so many more of an item."""
        self.wanted[code] = self.wanted.get(code, 0) + count

    def drop(self, code):
        """Want an item no more; tell whether it was wanted."""
        return self.wanted.pop(code, None) is not None

    def cost(self, store):
        """Return what the order costs: the prices of all it wants, and N_POST for delivery if that is below N_FREE.

        An order that wants nothing costs nothing.
        """
        if not self.wanted:
            return 0
        total = sum(price_of(store.item_of(code), count) for code, count in self.wanted.items())
        return total + N_POST if total < N_FREE else total


def missing(order, store):
    """Return code -> how many more the order wants than there are, of those items of which there are too few."""
    found = {}
    for code, count in order.wanted.items():
        if count > store.level(code):
            found[code] = count - store.level(code)
    return found


def fulfil(order, store):
    """Take all that an order wants out of a store and return its cost.

    If there is too little of something, Shortage is raised and nothing is taken.
    """
    if missing(order, store):
        raise Shortage(order.buyer)
    cost = order.cost(store)
    for code, count in order.wanted.items():
        store.take(code, count)
    return cost
'''
_REPORTS = '''"""Reports about a store."""

from PKG.order import fulfil, missing


def scarce(store, least=N_LOW):
    """Return the codes of which there are fewer than least, the fewest first, then in alphabetical order."""
    found = [code for code in store.codes() if store.level(code) < least]
    return sorted(found, key=store.level)


def refill(store, least=N_LOW):
    """Fill up each item of which there are fewer than least to so many; return code -> how many were added."""
    added = {}
    for code in scarce(store, least):
        added[code] = least - store.level(code)
        store.put(code, added[code])
    return added


def serve_all(orders, store):
    """Fulfil orders one after the other where there is enough of everything.

    Returns the cost of all that were fulfilled, and the buyers of the others.
    """
    total, waiting = 0, []
    for order in orders:
        if missing(order, store):
            waiting.append(order.buyer)
            continue
        total += fulfil(order, store)
    return total, waiting


def list_levels(store, tags=()):
    """Return a line "code: count" for each code of items with all of the tags, in order, "none" for a count of 0."""
    return [code + ": " + (str(store.level(code)) if store.level(code) else "none") for code in store.codes(tags)]
'''
STOCK = Family(
    "stock",
    ("stockroom", "shelfware", "warekeeper", "depotkit", "storewise", "cratebook"),
    """Keeps the items of a store and serves orders; all prices are in cents.

From N_MANY of one item on they are N_OFF per cent cheaper. Delivery costs N_POST for orders below N_FREE.""",
    {"item": _ITEM, "store": _STORE, "order": _ORDER, "reports": _REPORTS},
    CASES,
    {
        "Item": ("Item", "Article", "Product"),
        "has_tags": ("has_tags", "is_tagged", "carries"),
        "price_of": ("price_of", "price_for", "charge"),
        "Store": ("Store", "Warehouse", "Depot"),
        "register": ("register", "admit", "enlist"),
        "item_of": ("item_of", "find_item", "look_up"),
        "level": ("level", "on_hand", "amount_of"),
        "put": ("put", "bring_in", "stow"),
        "take": ("take", "fetch", "remove_some"),
        "worth": ("worth", "total_value"),
        "Order": ("Order", "Purchase", "Request"),
        "fulfil": ("fulfil", "serve", "carry_out"),
        "missing": ("missing", "lacking", "shortfall"),
        "scarce": ("scarce", "running_low", "nearly_out"),
        "refill": ("refill", "top_up", "restock"),
        "serve_all": ("serve_all", "work_off"),
        "list_levels": ("list_levels", "level_lines"),
    },
    {
        "N_MANY": whole(5, 12),
        "N_OFF": of(5, 8, 10, 12, 15, 20, 25),
        "N_POST": whole(150, 900),
        "N_FREE": whole(2_000, 6_000),
        "N_LOW": whole(3, 9),
    },
    (
        (
            "item",
            "        self.tags = list(tags)\n",
            "        self.tags = tags\n",
        ),
        (
            "order",
            (
                "wanted=None):\n"
                "        self.buyer = buyer\n"
                "        self.wanted = dict(wanted) if wanted is not None else {}\n"
            ),
            "wanted={}):\n        self.buyer = buyer\n        self.wanted = wanted\n",
        ),
        (
            "order",
            (
                "    cost = order.cost(store)\n"
                "    for code, count in order.wanted.items():\n"
                "        store.take(code, count)\n"
                "    return cost\n"
            ),
            (
                "    for code, count in order.wanted.items():\n"
                "        store.take(code, count)\n"
                "        return order.cost(store)\n"
            ),
        ),
        (
            "store",
            "        self._counts[item.code] = 0\n        return True",
            "        return True",
        ),
        (
            "reports",
            "            continue\n",
            "",
        ),
    ),
)
