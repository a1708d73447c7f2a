"""What a probe found, in sentences; the console and the report say the same ones."""

from __future__ import annotations

from slotwise_workflows.report.words import Words, clean
from slotwise_workflows.result import ProbeFigures, Reason


def verdict(probe: ProbeFigures, words: Words) -> str:
    """How the endpoint batches."""
    return words(f"probe.said_{probe.batching}", url=clean(probe.url, 200))


def because(reason: Reason, words: Words) -> str:
    """What was seen, or what keeps it from being told."""
    fault = f"fault.{reason.numbers.get('fault')}"
    told = {"fault": words(fault)} if fault in words.table else {}
    return words.sentence("probe_reason", reason.code, {**reason.numbers, **told})


def findings(probe: ProbeFigures, words: Words) -> list[str]:
    """What else was found, and how far it can be relied on; a sentence each."""
    told = [words("probe.confidence", confidence=words(f"confidence.{probe.confidence}"))]
    if probe.batching not in {"undetermined", "serial"}:
        slots = "slots" if probe.slots is not None else "slots_at_least"
        told.append(words(f"probe.{slots}", slots=probe.slots or probe.slots_at_least))
    if probe.batching == "continuous":
        told.append(words("probe.fleet"))
    if probe.release is not None:
        told.append(words(f"probe.release_{probe.release}"))
    told += _gathering(probe, words)
    told += [because(own, words) for own in probe.remarks]
    if probe.cost is not None:
        off = {name: signed(share, words) for name, share in probe.cost_errors.items()}
        key = "probe.cost_held_out" if probe.held_out else "probe.cost_fitted"
        told.append(words(key, requests=probe.held_out, **off))
        told += [] if probe.cost_counts else [words("probe.cost_off")]
    told.append(words("probe.sent", requests=probe.requests_sent, tokens=probe.output_tokens))
    return told


def signed(share: float, words: Words) -> str:
    """A relative error with its sign; what rounds to nothing has none."""
    told = words.number(round(abs(share), 3), "percent")
    return told if round(share, 3) == 0 else ("−" if share < 0 else "+") + told


def _gathering(probe: ProbeFigures, words: Words) -> list[str]:
    if probe.gather_s is None:
        return []
    low, high = probe.gather_s
    if probe.batching == "dynamic":
        key = "probe.gather" if high is not None else "probe.gather_at_least"
        return [words(key, low=low, high=high)]
    return [] if high is None else [words("probe.no_gather", high=high)]
