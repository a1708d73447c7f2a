"""Where a cost comes from and how good it is, in sentences of the report's language."""

from __future__ import annotations

from slotwise_workflows.costs import CostRecord
from slotwise_workflows.report.words import Words, clean


def source(cost: CostRecord, words: Words) -> str:
    """Who says so: what it was fitted to, the preset's publication, or the user."""
    if cost.checked is None:
        return words("cost.stated")
    if cost.checked.how == "fitted":
        return words("cost.fitted", requests=cost.checked.requests)
    return clean(cost.source, 200)


def detail(cost: CostRecord, words: Words) -> str:
    """Source and quality beside the fact; how far a fit is off stands among the limits already."""
    told = [source(cost, words)]
    fitted = cost.checked is not None and cost.checked.how == "fitted"
    told += [] if fitted else [quality(cost, words)]
    return words("format.list_separator").join(told)


def quality(cost: CostRecord, words: Words) -> str:
    """How far it is off, and what it leaves out."""
    own = cost.checked
    if own is None:
        return words("cost.unchecked")
    if own.how == "fitted":
        key = "cost.off_held_out" if own.held_out else "cost.off_fitted"
        told = [words(key, off=own.off, held_out=own.held_out)]
        told += [] if own.reliable else [words("cost.unreliable")]
    else:
        key = "cost.off_unknown" if own.off is None else "cost.off_tables"
        told = [words(f"cost.{own.how}"), words(key, off=own.off)]
        remark = f"cost.remark_{own.remark}"
        told += [words(remark)] if remark in words else []
    return words("format.list_separator").join(told)
