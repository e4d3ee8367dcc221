"""Tables of a report that only some entries have: pass@k, costs of robots, what answers to pictures depend on."""

from __future__ import annotations

from collections.abc import Mapping

from tetrathlon.benchmarks.excerpt import escape, line
from tetrathlon.benchmarks.page import dot, table
from tetrathlon.benchmarks.report_run import Run

LOOKS: Mapping[str, str] = {
    "full": "full",
    "twin": "twin",
    "pair": "both",
    "flips": "flips",
    "abstains": "unseen",
    "masked": "masked",
    "distractor_drop": "drop",
    "no_image": "no image",
    "blind_floor": "blind",
}
"""What is shown of :class:`~tetrathlon.agents.dependence.Dependence`, by its column."""
_SAID = (
    "In %, on the same instances. Right on the picture as it is, on its twin (changed so that the answer is another), "
    "and on both; how often the answer to the twin is another one. Where the evidence is covered: says that it cannot "
    "be seen, and gives the covered answer all the same. What as much cover elsewhere takes away (0 of one who looks "
    "at the evidence). The answer without any picture, and how often the best policy is right that never looks."
)


def _row(run: Run, name: str, policy: str, cells: str) -> str:
    """Return a row that begins with an entry and a policy."""
    return (
        f'<tr><td class="k">{run.number[name]}</td><td>{escape(line(name))}</td>'
        f"<td>{dot(run.series[policy])}{escape(line(policy, 24))}</td>{cells}</tr>"
    )


def passes(run: Run) -> str:
    """Return the section on how often one of several samples is right, where several were drawn."""
    found = [
        (name, policy, row)
        for name in run.names
        for policy in run.policies
        if (row := run.by.get((name, policy))) is not None and row["samples"] > 1
    ]
    if not found:
        return ""
    ks = sorted({int(k) for _, _, row in found for k in row["pass_at"]})
    rows = []
    for name, policy, row in found:
        told = [row["pass_at"].get(str(k)) for k in ks]
        shares = "".join(f'<td class="n">{"" if share is None else f"{100 * share:.0f}"}</td>' for share in told)
        rows.append(_row(run, name, policy, shares))
    head = ['<th class="k"></th><th>environment</th><th>policy</th>', *(f'<th class="n">pass@{k}</th>' for k in ks)]
    said = "In %: the unbiased chance that one of k samples of an instance is right (Chen et al., 2021)."
    return f'<h2 id="passes">Several samples</h2>{table(head, [("", rows)])}<p class="note">{said}</p>'


def costs(run: Run) -> str:
    """Return the section on what robots should not have done, where any was measured."""
    rows = []
    for name in run.names:
        for policy in run.policies:
            row = run.by.get((name, policy))
            if row is None or (total := row["costs"].get("total")) is None:
                continue
            terms = ", ".join(
                f"{line(term, 30)} {cost['mean']:.2f}" for term, cost in row["costs"].items() if term != "total"
            )
            told = (
                f'<td class="n">{total["mean"]:.2f}</td><td class="n">{100 * total["share"]:.0f}</td>'
                f'<td class="n">{total["cvar"]:.1f}</td><td>{escape(terms)}</td>'
            )
            rows.append(_row(run, name, policy, told))
    if not rows:
        return ""
    head = ['<th class="k"></th><th>environment</th><th>policy</th><th class="n">cost</th>']
    head.append('<th class="n">share in %</th><th class="n">CVaR</th><th>by kind</th>')
    said = "Cost an episode, the share of episodes with any, the mean of the costliest tenth, the mean of each kind."
    return f'<h2 id="costs">Costs</h2>{table(head, [("", rows)])}<p class="note">{said}</p>'


def looks(run: Run) -> str:
    """Return the section on what answers to pictures depend on, where any was measured."""
    rows = []
    for name in run.names:
        for policy in run.policies:
            row = run.by.get((name, policy))
            if row is None or (found := row["dependence"]) is None:
                continue
            shares = "".join(f'<td class="n">{100 * found[key]:.0f}</td>' for key in LOOKS)
            rows.append(_row(run, name, policy, shares))
    if not rows:
        return ""
    head = ['<th class="k"></th><th>environment</th><th>policy</th>']
    head += [f'<th class="n">{title}</th>' for title in LOOKS.values()]
    return f'<h2 id="looks">Visual dependence</h2>{table(head, [("", rows)])}<p class="note">{_SAID}</p>'
