"""What follows from the verdict: what-if, money, where to look instead, limits, roll-out."""

from __future__ import annotations

from slotwise_workflows.report import reading
from slotwise_workflows.report.after_test import COMPARE_COMMAND, command_of_then
from slotwise_workflows.report.document import (
    Block,
    Bullets,
    Callout,
    Code,
    Column,
    Item,
    Paragraph,
    Section,
    Table,
)
from slotwise_workflows.report.sections.sweep_tables import limits_table
from slotwise_workflows.report.words import Words
from slotwise_workflows.result import Diagnosis, Provenance, WhatIf
from slotwise_workflows.sample_size import P95_REQUESTS

_AGAIN = {"no_gain": "again_changed", "insufficient_data": "again_data"}
_SAY_IT_THEMSELVES = {"arrivals_unknown", "replicas_unknown", "replay_contradicted"}


def what_if(diagnosis: Diagnosis, words: Words) -> Section:
    """Other slots and other loads."""
    title = words("whatif.title")
    if not diagnosis.what_if:
        return Section("what-if", title, (Paragraph(words("whatif.none")),))
    batch = reading.baseline(diagnosis)
    timed = any(point.latency_mean_s for point in diagnosis.what_if)
    loaded = any(point.load for point in diagnosis.what_if)
    p95 = timed and diagnosis.requests >= P95_REQUESTS
    keys = [
        "slots",
        *(["load"] if loaded else []),
        "gain",
        *(["mean"] if timed else []),
        *(["p95"] if p95 else []),
        "idle",
    ]
    rows = []
    for point in diagnosis.what_if:
        cells = [
            words.number(point.slots, "count"),
            *([words.number(point.load, "factor")] if loaded else []),
            words.number(point.gain, "times"),
        ]
        if timed:
            cells.append(_seconds(point, point.latency_mean_s, batch, words))
        if p95:
            cells.append(_seconds(point, point.latency_p95_s, batch, words))
        cells.append(_idle(point, batch, words))
        rows.append(tuple(cells))
    lead = words("whatif.lead" if loaded else "whatif.lead_backlog")
    strained = any(any(point.overloaded.values()) for point in diagnosis.what_if)
    table = Table(
        caption=words("whatif.caption" if loaded else "whatif.caption_backlog"),
        columns=tuple(Column(words(f"whatif.{key}")) for key in keys),
        rows=tuple(rows),
        label="simulated",
        tag=words("label.simulated"),
        note=words("whatif.note") if strained and timed else "",
    )
    limits = _limits(diagnosis, words)
    return Section("what-if", title, (Paragraph(lead), table, *([limits] if limits else [])))


def _limits(diagnosis: Diagnosis, words: Words) -> Table | None:
    """Capacity, servers needed, and where the change pays, with their intervals."""
    if diagnosis.sweep is None or not reading.times_count(diagnosis):
        return None
    return limits_table(
        diagnosis.sweep,
        words,
        named=lambda policy: reading.policy_name(words, policy, diagnosis),
        in_words=reading.compared(words, diagnosis),
        label=reading.seconds_label(diagnosis),
    )


def _seconds(point: WhatIf, seconds: dict[str, float], batch: str, words: Words) -> str:
    shown = [
        words("whatif.overloaded")
        if point.overloaded.get(policy, False)
        else words.number(seconds.get(policy), "seconds")
        for policy in (batch, reading.CONTINUOUS)
    ]
    return words("whatif.arrow", now=shown[0], after=shown[1])


def _idle(point: WhatIf, batch: str, words: Words) -> str:
    now, after = (
        words.number(point.idle_share.get(policy), "percent")
        for policy in (batch, reading.CONTINUOUS)
    )
    return words("whatif.arrow", now=now, after=after)


def money(diagnosis: Diagnosis, words: Words) -> Section | None:
    """Servers and cost in the busiest hour, only from a price the client gave."""
    given = diagnosis.money
    if not given:
        return None

    def amount(key: str) -> str:
        value, currency = given[key], str(given["currency"])
        if currency == "JPY":
            return words("money.amount_JPY", value=value)
        return words("money.amount_other", value=value, currency=currency)

    heads = (
        Column(words("money.item"), numeric=False),
        Column(words("money.now")),
        Column(words("money.after")),
    )
    rows = (
        (
            words("money.servers"),
            words.number(given["servers_now"], "count"),
            words.number(given["servers_after"], "count"),
        ),
        (words("money.hour"), amount("hour_now"), amount("hour_after")),
    )
    table = Table(
        words("money.caption"),
        heads,
        rows,
        "simulated",
        words("label.simulated"),
        words("money.formula"),
    )
    return Section(
        "money",
        words("money.title"),
        (
            Paragraph(words("money.lead")),
            table,
            Paragraph(words("money.saved", saved=amount("hour_saved"))),
            Paragraph(
                words("money.price", price=amount("server_hour")), "given", words("label.given")
            ),
        ),
    )


def elsewhere(diagnosis: Diagnosis, words: Words) -> Section:
    """Where to look instead, or as well."""
    items = tuple(reading.alternative_item(words, own) for own in diagnosis.alternatives)
    title = "elsewhere.title_also" if diagnosis.verdict in reading.CHANGES else "elsewhere.title"
    block: Block = Bullets(items) if items else Paragraph(words("elsewhere.none"))
    return Section("elsewhere", words(title), (block,))


def limits(diagnosis: Diagnosis, words: Words) -> Section:
    """Everything that keeps the verdict from being certain."""
    items = [reading.limit_item(words, limit) for limit in diagnosis.limits]
    if diagnosis.waiting is None and not _SAY_IT_THEMSELVES & {x.code for x in diagnosis.limits}:
        why = words(reading.why_no_waiting(diagnosis))
        items.insert(0, Item(words("numbers.no_waiting", why=why)))
    if not items:
        return Section("limits", words("limits.title"), (Paragraph(words("limits.none")),))
    return Section("limits", words("limits.title"), (Bullets(tuple(items)),))


def rollout(diagnosis: Diagnosis, provenance: Provenance, words: Words) -> Section:
    """What to do in which order; the prediction where a change is advised, and its test."""
    steps = tuple(
        Item(words.sentence("action", action.code, action.numbers)) for action in diagnosis.actions
    )
    blocks: list[Block] = [Bullets(steps, ordered=True)] if steps else []
    changes = diagnosis.verdict in reading.CHANGES
    if changes and diagnosis.gain is not None:
        text = words("rollout.prediction", gain=words.estimate(diagnosis.gain))
        blocks.append(Callout(words("rollout.predicted"), text))
    if diagnosis.verdict not in reading.BY_FACT:  # that no later log would change
        again = "again" if changes else _AGAIN[diagnosis.verdict]
        command = command_of_then(provenance.command, diagnosis.facts)
        blocks += [Paragraph(words(f"rollout.{again}")), Code(command)]
        blocks += [Paragraph(words("rollout.compare")), Code(COMPARE_COMMAND)]
    title = "rollout.title" if changes else "rollout.title_no"
    return Section("rollout", words(title), tuple(blocks))
