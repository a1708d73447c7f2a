"""What a look at the live endpoint found: how it batches, the evidence, and how far it can be said.

The evidence is a picture of the requests of one trial; the test of the prediction is a table.
"""

from __future__ import annotations

from collections.abc import Sequence

from slotwise_workflows.report import probe_reading
from slotwise_workflows.report.charts.probe import HATCH, requests_over_time
from slotwise_workflows.report.document import (
    Block,
    Bullets,
    Column,
    Figure,
    Item,
    Paragraph,
    Section,
    Table,
)
from slotwise_workflows.report.sections.drawn import figure, table
from slotwise_workflows.report.words import Words
from slotwise_workflows.result import Prediction, ProbeFigures, Result, TimelineRow


def endpoint(result: Result, words: Words) -> Section | None:
    """The probe's finding with its evidence; None where nothing was probed."""
    probe = result.probe
    if probe is None:
        return None
    tag = words("label.measured")
    blocks: list[Block] = [
        Paragraph(probe_reading.verdict(probe, words), "measured", tag),
        Paragraph(probe_reading.because(probe.reason, words)),
    ]
    drawn = _timeline(probe, words)
    blocks += [] if drawn is None else [drawn]
    blocks.append(Bullets(tuple(Item(text) for text in probe_reading.findings(probe, words))))
    blocks += [] if probe.prediction is None else [_prediction(probe.prediction, words)]
    return Section("endpoint", words("probe.title"), tuple(blocks))


def _timeline(probe: ProbeFigures, words: Words) -> Figure | None:
    requests = probe.timeline
    if not requests:
        return None
    names = _names(requests, words)
    first, others = requests[0], requests[1:]
    beside = sum(own.first_token_s < first.last_token_s for own in others)
    labels = {key: words(f"probe.{key}") for key in ("waiting", "answering", "axis", "end")}
    told = {"beside": beside, "others": len(others)}
    heads = tuple(words(f"probe.head_{key}") for key in ("name", "sent", "first", "last"))
    rows = [
        (name, *(words.number(at, "seconds") for at in (o.sent_s, o.first_token_s, o.last_token_s)))
        for name, o in zip(names, requests, strict=True)
    ]
    return figure(
        words,
        "probe-timeline",
        requests_over_time(requests, names, labels),
        title=words("probe.picture_all" if beside == len(others) else "probe.picture", **told),
        description=words("probe.description", **told, end=first.last_token_s),
        table=table(words("probe.table"), heads, rows),
        label="measured",
        defs=HATCH,
    )


def _names(requests: Sequence[TimelineRow], words: Words) -> list[str]:
    """The first by what it is, the others by number: names within the picture are unique."""
    return [words("probe.first")] + [
        words("probe.other", number=i) for i in range(1, len(requests))
    ]


def _prediction(own: Prediction, words: Words) -> Table:
    heads = ("figure", "measured", *(["simulated", "error"] if own.simulated else []))
    rows = tuple(
        (
            words(f"prediction.{key}"),
            words.number(seconds, "seconds"),
            *(
                (
                    words.number(own.simulated[key], "seconds"),
                    probe_reading.signed(own.simulated[key] / seconds - 1, words),
                )
                if own.simulated
                else ()
            ),
        )
        for key, seconds in own.measured.items()
    )
    scaled = {"rate": own.rate_scale, "lengths": own.length_scale}
    notes = [words("prediction.scaled", **scaled)] if set(scaled.values()) != {1.0} else []
    notes += [] if own.simulated else [words("prediction.no_cost")]
    notes += [words("prediction.failed", failed=own.failed)] if own.failed else []
    notes += [words("prediction.bottleneck")] if own.client_bottleneck else []
    return Table(
        caption=words("prediction.caption", requests=own.requests),
        columns=tuple(
            Column(words(f"prediction.head_{head}"), numeric=head != "figure") for head in heads
        ),
        rows=rows,
        label="measured",
        tag=words("label.measured"),
        note=" ".join(notes),
    )
