"""A ledger: amounts, accounts, bookings between them, reports."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.cases_ledger import CASES
from tetrathlon.envs.tools.repo.family import Family, of, whole

_MONEY = '''"""Amounts of money in whole cents."""


def parse_amount(text):
    """Return the cents that a text such as "12.5", "-3" or "1,204.07" stands for.

    Commas are left out. There may be no more than two digits behind the point, else ValueError is raised.
    """
    sign = -1 if text.startswith("-") else 1
    whole, _, part = text.lstrip("-").replace(",", "").partition(".")
    if len(part) > 2:
        raise ValueError("too many digits: " + text)
    return sign * (int(whole) * 100 + int(part.ljust(2, "0")))


def format_amount(cents):
    """Return cents as text with two digits behind the point, followed by a blank and K_UNIT.

    A negative amount begins with a minus.
    """
    sign = "-" if cents < 0 else ""
    return sign + str(abs(cents) // 100) + "." + str(abs(cents) % 100).rjust(2, "0") + " " + K_UNIT


def split_evenly(cents, parts):
    """Return a list of so many amounts that add up to cents, none more than one cent above another, largest first.

    With less than one part ValueError is raised.
    """
    if parts < 1:
        raise ValueError("there must be a part")
    share, rest = cents // parts, cents % parts
    return [share + 1] * rest + [share] * (parts - rest)


def fee_of(cents):
    """Return the fee for an amount: N_RATE per thousand of it, rounded down, but at least N_LEAST cents.

    For nothing the fee is 0.
    """
    if cents == 0:
        return 0
    return max(cents * N_RATE // 1000, N_LEAST)
'''
_ACCOUNT = '''"""Accounts that money is put into and taken from."""


class AccountError(ValueError):
    """A booking is not allowed."""


class Account:
    """An account.

    Its balance may fall to minus the limit, but not below. Every change is kept in its history, as a pair of the
    amount (negative for what was taken) and a note.
    """

    def __init__(self, owner, limit=0, history=None):
        self.owner = owner
        self.limit = limit
        self._history = list(history) if history is not None else []

    def deposit(self, cents, note=""):
        """Put in an amount above 0, else AccountError is raised."""
        if cents <= 0:
            raise AccountError("an amount must be above 0")
        self._history.append((cents, note))

    def withdraw(self, cents, note=""):
        """Take out an amount above 0 for which there is enough, else AccountError is raised."""
        if cents <= 0:
            raise AccountError("an amount must be above 0")
        if cents > self.available():
            raise AccountError("there is not enough")
        self._history.append((-cents, note))

    def balance(self):
        """Return what is on the account."""
        total = 0
        for cents, _ in self._history:
            total += cents
        return total

    def available(self):
        """Return the largest amount that can be taken out: the balance and the limit."""
        return self.balance() + self.limit

    def history(self):
        """Return all changes as a new list."""
        return list(self._history)
'''
_LEDGER = '''"""A ledger of several accounts."""

from PKG.account import Account, AccountError
from PKG.money import fee_of


class Ledger:
    """Accounts by their owners."""

    def __init__(self):
        self._accounts = {}

    def open_account(self, owner, limit=0):
        """Open and return an account. Whoever has one gets AccountError."""
        if owner in self._accounts:
            raise AccountError(owner + " has an account")
        self._accounts[owner] = Account(owner, limit)
        return self._accounts[owner]

    def account_of(self, owner):
        """Return the account of an owner; KeyError is raised where there is none."""
        return self._accounts[owner]

    def owners(self):
        """Return the owners in alphabetical order."""
        return sorted(self._accounts)

    def transfer(self, source, target, cents, free=False):
        """Take an amount from the account of one owner and put it into that of another.

        The source pays the fee for the amount as well, with the note "fee", unless it is free. The notes of
        the amount name the other owner. If there is not enough for both, AccountError is raised and nothing changes.
        Returns the fee.
        """
        payer, payee = self.account_of(source), self.account_of(target)
        fee = 0 if free else fee_of(cents)
        if cents + fee > payer.available():
            raise AccountError("there is not enough")
        payer.withdraw(cents, target)
        payee.deposit(cents, source)
        if fee > 0:
            payer.withdraw(fee, "fee")
        return fee

    def total(self):
        """Return what is on all accounts together."""
        return sum(account.balance() for account in self._accounts.values())
'''
_REPORT = '''"""Reports about a ledger."""

from PKG.money import format_amount, split_evenly


def debtors(ledger):
    """Return the owners whose balance is below 0, the deepest in debt first, then in alphabetical order."""
    found = []
    for owner in ledger.owners():
        if ledger.account_of(owner).balance() < 0:
            found.append(owner)
    return sorted(found, key=lambda owner: ledger.account_of(owner).balance())


def statement(account):
    """Return a line for each change of an account, "amount note", and a last line "balance amount".

    The amounts are formatted. A change without a note has "-" for it.
    """
    lines = []
    for cents, note in account.history():
        lines.append(format_amount(cents) + " " + (note or "-"))
    return lines + ["balance " + format_amount(account.balance())]


def largest_change(account):
    """Return the change of largest size, whatever its sign, the first of equals; None for an account without any."""
    best = None
    for cents, _ in account.history():
        if best is None or abs(cents) > abs(best):
            best = cents
    return best


def share_out(ledger, cents, note="share"):
    """Put an amount into all accounts of a ledger, split evenly: who comes first in the alphabet gets more.

    Those whose part is 0 get nothing. Returns owner -> part for all.
    """
    owners = ledger.owners()
    parts = dict(zip(owners, split_evenly(cents, len(owners))))
    for owner, part in parts.items():
        if part > 0:
            ledger.account_of(owner).deposit(part, note)
    return parts
'''
LEDGER = Family(
    "ledger",
    ("tallybook", "coinlog", "pursekeeper", "centbook", "paybook", "thrift"),
    """Keeps accounts in whole cents of K_UNIT.

Moving an amount costs N_RATE per thousand, at least N_LEAST cents. An account may be overdrawn up to its limit.""",
    {"money": _MONEY, "account": _ACCOUNT, "ledger": _LEDGER, "report": _REPORT},
    CASES,
    {
        "Ledger": ("Ledger", "Bank", "House", "Journal"),
        "open_account": ("open_account", "enrol", "add_account"),
        "account_of": ("account_of", "find_account", "seek"),
        "parse_amount": ("parse_amount", "read_amount", "to_cents"),
        "format_amount": ("format_amount", "show_amount", "as_money"),
        "split_evenly": ("split_evenly", "share_evenly", "in_parts"),
        "fee_of": ("fee_of", "fee_for", "charge_on"),
        "deposit": ("deposit", "pay_in", "put_in"),
        "withdraw": ("withdraw", "pay_out", "take_out"),
        "transfer": ("transfer", "send", "remit"),
        "debtors": ("debtors", "in_the_red", "in_debt"),
        "statement": ("statement", "account_lines", "extract"),
        "largest_change": ("largest_change", "biggest_move", "main_change"),
        "share_out": ("share_out", "distribute", "hand_out"),
    },
    {"N_RATE": whole(3, 40), "N_LEAST": whole(5, 90), "K_UNIT": of("EUR", "USD", "CHF", "NOK", "JPY", "GBP", "PLN")},
    (
        (
            "account",
            (
                "history=None):\n"
                "        self.owner = owner\n"
                "        self.limit = limit\n"
                "        self._history = list(history) if history is not None else []\n"
            ),
            "history=[]):\n        self.owner = owner\n        self.limit = limit\n        self._history = history\n",
        ),
        (
            "account",
            "        self._history = list(history) if history is not None else []\n",
            "        self._history = [] if history is None else history\n",
        ),
        (
            "account",
            "        self._history.append((-cents, note))\n",
            "        self._history.append((cents, note))\n",
        ),
        (
            "ledger",
            "Account(owner, limit)",
            "Account(owner)",
        ),
        (
            "ledger",
            "        payer.withdraw(cents, target)\n        payee.deposit(cents, source)\n",
            "        payer.withdraw(cents, source)\n        payee.deposit(cents, target)\n",
        ),
        (
            "report",
            "abs(cents) > abs(best)",
            "cents > best",
        ),
        (
            "money",
            'int(part.ljust(2, "0"))',
            'int(part or "0")',
        ),
    ),
)
