"""A ledger: what it does."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.family import Case, case, name, names, of, whole, wholes

CASES: tuple[Case, ...] = (
    case("money.parse_amount", "with cents", """
        ? parse_amount(str(V_a) + "." + str(V_b))
    """, V_a=whole(1, 900), V_b=whole(10, 99)),
    case("money.parse_amount", "with one digit", """
        ? parse_amount(str(V_a) + "." + str(V_b))
    """, V_a=whole(0, 900), V_b=whole(1, 9)),
    case("money.parse_amount", "below zero", """
        ? parse_amount("-" + str(V_a))
        ? parse_amount("-0.0" + str(V_b))
    """, V_a=whole(1, 900), V_b=whole(1, 9)),
    case("money.parse_amount", "with commas", """
        ? parse_amount(str(V_a) + "," + str(V_b) + ".25")
    """, V_a=whole(1, 90), V_b=whole(100, 999)),
    case("money.parse_amount", "with too many digits", """
        ! parse_amount(V_a)
    """, V_a=of("1.234", "0.005", "-7.1234", "12.000")),
    case("money.format_amount", "", """
        ? format_amount(V_a)
    """, V_a=whole(100, 99_999)),
    case("money.format_amount", "below zero", """
        ? format_amount(-V_a)
        ? format_amount(-V_b)
    """, V_a=whole(100, 99_999), V_b=whole(1, 9)),
    case("money.format_amount", "of few cents", """
        ? format_amount(V_a)
    """, V_a=whole(0, 9)),
    case("money.split_evenly", "", """
        ? split_evenly(V_a, V_n)
    """, V_a=whole(10, 5_000), V_n=whole(2, 6)),
    case("money.split_evenly", "exactly", """
        ? split_evenly(V_a * V_n, V_n)
        ? split_evenly(V_a, 1)
    """, V_a=whole(1, 500), V_n=whole(2, 5)),
    case("money.split_evenly", "into nothing", """
        ! split_evenly(V_a, 0)
    """, V_a=whole(1, 99)),
    case("money.fee_of", "a large amount", """
        ? fee_of(V_a)
    """, V_a=whole(20_000, 900_000)),
    case("money.fee_of", "a small amount", """
        ? fee_of(V_a)
        ? fee_of(0)
    """, V_a=whole(1, 99)),
    case("account.Account.deposit", "", """
        account = Account(V_o)
        account.deposit(V_a, V_n)
        account.deposit(V_b)
        ? account.balance()
        ? account.history()
    """, V_o=name(), V_a=whole(1, 900), V_b=whole(1, 900), V_n=name()),
    case("account.Account.deposit", "nothing", """
        account = Account(V_o)
        ! account.deposit(0)
        ! account.deposit(-V_a)
        ? account.history()
    """, V_o=name(), V_a=whole(1, 9)),
    case("account.Account.deposit", "one cent", """
        account = Account(V_o)
        account.deposit(1)
        ? account.balance()
    """, V_o=name()),
    case("account.Account.withdraw", "", """
        account = Account(V_o, V_l)
        account.deposit(V_a)
        account.withdraw(V_b, V_n)
        ? account.balance()
        ? account.history()
    """, V_o=name(), V_l=whole(1, 90), V_a=whole(300, 900), V_b=whole(1, 300), V_n=name()),
    case("account.Account.withdraw", "all there is", """
        account = Account(V_o, V_l)
        account.deposit(V_a)
        account.withdraw(V_a + V_l)
        ? account.balance()
        ! account.withdraw(1)
        ? account.available()
    """, V_o=name(), V_l=whole(1, 90), V_a=whole(1, 900)),
    case("account.Account.withdraw", "nothing", """
        account = Account(V_o, V_a)
        ! account.withdraw(0)
        ! account.withdraw(-V_a)
        ? account.history()
        account.withdraw(1)
        ? account.balance()
    """, V_o=name(), V_a=whole(1, 9)),
    case("account.Account.withdraw", "without a limit", """
        account = Account(V_o)
        ! account.withdraw(V_a)
        ? account.available()
    """, V_o=name(), V_a=whole(1, 9)),
    case("account.Account.available", "", """
        account = Account(V_o, V_l)
        account.deposit(V_a)
        ? account.available()
    """, V_o=name(), V_l=whole(1, 900), V_a=whole(1, 900)),
    case("account.Account.history", "is a copy", """
        account = Account(V_o)
        account.deposit(V_a)
        account.history().append((V_b, ""))
        ? account.balance()
    """, V_o=name(), V_a=whole(1, 900), V_b=whole(1, 900)),
    case("account.Account", "with a history", """
        old = [(V_a, V_o)]
        account = Account(V_o, 0, old)
        account.deposit(V_b)
        ? old
        ? account.balance()
        ? account.owner
        ? account.limit
    """, V_o=name(), V_a=whole(1, 900), V_b=whole(1, 900)),
    case("account.Account", "alone", """
        one, other = Account(V_o), Account(V_p)
        one.deposit(V_a)
        ? other.history()
    """, V_o=name(), V_p=name(), V_a=whole(1, 9)),
    case("ledger.Ledger.open_account", "", """
        ledger = Ledger()
        ledger.open_account(V_o, V_l)
        ? ledger.account_of(V_o).available()
        ? ledger.account_of(V_o).owner
        ! ledger.open_account(V_o)
        ? ledger.open_account("zz" + V_o).available()
    """, V_o=name(), V_l=whole(1, 90)),
    case("ledger.Ledger.owners", "", """
        ledger = Ledger()
        for owner in V_o: ledger.open_account(owner)
        ? ledger.owners()
        ! ledger.account_of('')
    """, V_o=names(4)),
    case("ledger.Ledger.transfer", "", """
        ledger = Ledger()
        ledger.open_account("ann").deposit(V_a)
        ledger.open_account("bob")
        ? ledger.transfer("ann", "bob", V_b)
        ? ledger.account_of("ann").history()
        ? ledger.account_of("bob").history()
        ? ledger.total()
    """, V_a=whole(90_000, 99_000), V_b=whole(20_000, 60_000)),
    case("ledger.Ledger.transfer", "for free", """
        ledger = Ledger()
        ledger.open_account("ann", V_a)
        ledger.open_account("bob", V_a)
        ? ledger.transfer("bob", "ann", V_a, free=True)
        ? ledger.account_of("bob").balance()
        ? ledger.account_of("bob").history()
    """, V_a=whole(1, 900)),
    case("ledger.Ledger.transfer", "too much", """
        ledger = Ledger()
        ledger.open_account("ann", V_a)
        ledger.open_account("bob", V_a)
        ! ledger.transfer("ann", "bob", V_a)
        ? ledger.account_of("ann").history()
        ? ledger.account_of("bob").history()
    """, V_a=whole(1, 90_000)),
    case("ledger.Ledger.transfer", "to the last cent", """
        ledger = Ledger()
        ledger.open_account("ann", V_a + fee_of(V_a))
        ledger.open_account("bob")
        ? ledger.transfer("ann", "bob", V_a)
        ? ledger.account_of("ann").available()
    """, V_a=whole(1, 90_000)),
    case("ledger.Ledger.total", "", """
        ledger = Ledger()
        ledger.open_account("ann").deposit(V_a)
        ledger.open_account("bob", V_b).withdraw(V_b)
        ? ledger.total()
    """, V_a=whole(1, 900), V_b=whole(1, 900)),
    case("report.debtors", "", """
        ledger = Ledger()
        for owner, cents in zip(V_o, V_d): ledger.open_account(owner, 99).withdraw(cents)
        ledger.open_account("zz").deposit(V_a)
        ledger.open_account("yy")
        ? debtors(ledger)
    """, V_o=names(4), V_d=wholes(4, 4, 1, 6), V_a=whole(1, 9)),
    case("report.statement", "", """
        account = Account(V_o, V_a)
        account.withdraw(V_a, V_n)
        account.deposit(V_b)
        ? statement(account)
    """, V_o=name(), V_a=whole(1, 9_000), V_b=whole(1, 9_000), V_n=name()),
    case("report.statement", "of an empty account", """
        ? statement(Account(V_o))
    """, V_o=name()),
    case("report.largest_change", "", """
        account = Account("x", 9_999)
        for cents in V_c: account.deposit(cents)
        account.withdraw(V_a)
        ? largest_change(account)
    """, V_c=wholes(2, 4, 10, 60), V_a=whole(1, 90)),
    case("report.largest_change", "of equals", """
        account = Account('x', V_a)
        account.withdraw(V_a)
        account.deposit(V_a)
        ? largest_change(account)
        ? largest_change(Account('y'))
    """, V_a=whole(1, 90)),
    case("report.share_out", "", """
        ledger = Ledger()
        for owner in V_o: ledger.open_account(owner)
        ? share_out(ledger, V_a)
        ? [ledger.account_of(owner).history() for owner in ledger.owners()]
    """, V_o=names(3), V_a=whole(10, 900)),
    case("report.share_out", "one cent", """
        ledger = Ledger()
        for owner in V_o: ledger.open_account(owner)
        ? share_out(ledger, V_a, V_n)
        ? [ledger.account_of(owner).history() for owner in ledger.owners()]
    """, V_o=names(3), V_a=whole(1, 2), V_n=name()),
)  # fmt: skip
"""Its cases."""
