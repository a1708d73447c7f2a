"""Page one: the verdict, how sure and why, the next action, three numbers, what would change it."""

from __future__ import annotations

from dataclasses import replace

from slotwise_workflows.report import reading
from slotwise_workflows.report.document import (
    Block,
    Bullets,
    Column,
    Cover,
    Item,
    KeyNumber,
    KeyNumbers,
    Label,
    Paragraph,
    Section,
    Table,
)
from slotwise_workflows.report.numbers import DASH
from slotwise_workflows.report.sections.data import fact_value, known
from slotwise_workflows.report.words import Words, clean
from slotwise_workflows.result import Diagnosis, Result
from slotwise_workflows.sample_size import P95_REQUESTS

_MAX_MODELS = 12
_MAX_REASONS = 4
_MAX_DOUBTS = 2
# Limits of the figures, told also where a fact decides the verdict.
_OF_FIGURES = frozenset({"cost_unreliable", "slots_differ"})


def cover(result: Result, words: Words) -> Cover:
    """The answer, its reasons, its confidence and one next action."""
    action = result.actions[0] if result.actions else None
    return Cover(
        verdict=result.verdict,
        badge=words(f"verdict.{result.verdict}.badge"),
        sentence=words(f"verdict.{result.verdict}.sentence"),
        because=tuple(_because(result, words)[:_MAX_REASONS]),
        confidence=words("page.confidence", level=words(f"confidence.{result.confidence}")),
        confidence_why=_doubts(result, words) or (words("page.confidence_high"),),
        action_title=words("page.next"),
        action=_of_model(words.sentence("action", action.code, action.numbers), result, words)
        if action
        else "",
    )


def _doubts(result: Result, words: Words) -> tuple[str, ...]:
    """What keeps the confidence down; where a fact decides, whether anybody has confirmed it."""
    if result.verdict in reading.BY_FACT:
        name = "serving" if result.verdict == "not_yours" else "batches_already"
        own = reading.fact(result, name)
        if own is None or own.source in {"given", "measured"}:
            return ()
        text = words(
            "page.confidence_probed" if own.basis == "probe" else "page.confidence_read",
            fact=words(f"fact.{name}"),
            value=fact_value(own, words),
            basis=known(words, "basis", own.basis),
        )
        about_figures = (own for own in result.limits if own.code in _OF_FIGURES)
        doubts = (reading.limit_item(words, own).text for own in about_figures)
        return (_of_model(text, result, words), *doubts)
    return tuple(
        _of_model(reading.limit_item(words, limit).text, result, words)
        for limit in result.limits[:_MAX_DOUBTS]
    )


def _because(result: Result, words: Words) -> list[Item]:
    """The reasons; where the log holds several models, those of the leading one by its name."""
    items = [(reason.code, reading.reason_item(words, reason)) for reason in result.reasons]
    return [
        item if code == "models_apart" else replace(item, text=_of_model(item.text, result, words))
        for code, item in items
    ]


def _of_model(sentence: str, result: Result, words: Words) -> str:
    """The sentence under the leading model's name, where the log holds several."""
    if not result.models:
        return sentence
    return words(
        "page.of_model", model=model_name(words, reading.leading(result)), sentence=sentence
    )


def models(result: Result, words: Words) -> Section | None:
    """One verdict a model, up front, where the log holds several."""
    if len(result.models) < 2:
        return None
    shown = result.models[:_MAX_MODELS]
    rows = tuple(
        (
            model_name(words, model),
            words.number(model.requests, "count"),
            words.number(model.token_share, "percent"),
            words(f"verdict.{model.verdict}.badge"),
            words(f"confidence.{model.confidence}"),
            words.estimate(model.gain) if model.gain else words.number(None, ""),
        )
        for model in shown
    )
    titles = ("model", "requests", "share", "verdict", "confidence", "gain")
    rest = len(result.models) - len(shown)
    table = Table(
        caption=words("models.title"),
        columns=tuple(Column(words(f"models.{t}"), t in {"requests", "share"}) for t in titles),
        rows=rows,
        label="simulated",
        tag=words("label.simulated"),
        note=words("models.others", count=rest) if rest else "",
    )
    below = words("models.shown", model=model_name(words, reading.leading(result)))
    blocks = (Paragraph(words("models.lead")), table, Paragraph(below))
    return Section("models", words("models.title"), blocks)


def model_name(words: Words, model: Diagnosis) -> str:
    """A model's name, fit to print."""
    return clean(model.model, 40) if model.model else words("models.unnamed")


def numbers(diagnosis: Diagnosis, words: Words) -> Section:
    """Three numbers, now and after, and at which load and slots they stand."""
    batch = reading.baseline(diagnosis)
    strained = reading.overloaded(diagnosis, batch)
    second = _longest(diagnosis, words)
    first, third = _idle(diagnosis, batch, words), _capacity(diagnosis, batch, words)
    if _shows_latency(diagnosis, batch):
        second = _latency(diagnosis, batch, words)
    three = KeyNumbers(
        now=words("page.now"),
        after=words("page.after"),
        items=_sample(diagnosis, words) if not diagnosis.policies else (first, second, third),
    )
    blocks: list[Block] = [three]
    blocks += _load(diagnosis, batch, words)
    if diagnosis.waiting is not None and not strained:
        w = diagnosis.waiting
        text = words("numbers.waiting", value=w.estimate, low=w.low, high=w.high)
        if not any(
            "waiting" in reason.numbers for reason in diagnosis.reasons
        ):  # the cover says it
            blocks.append(Paragraph(text, "simulated", words("label.simulated")))
    elif strained and reading.times_count(diagnosis):
        blocks.append(Paragraph(words("numbers.overloaded")))
    else:
        why = words(reading.why_no_waiting(diagnosis))
        blocks.append(Paragraph(words("numbers.no_waiting", why=why)))
    if diagnosis.slots_is_range and diagnosis.policies:
        text = words("numbers.slots_range", slots=diagnosis.slots)
        blocks.append(Paragraph(text, "assumed", words("label.assumed")))
    title = "numbers.title_already" if diagnosis.verdict == "already" else "numbers.title"
    return Section("numbers", words(title), tuple(blocks))


def _shows_latency(diagnosis: Diagnosis, batch: str) -> bool:
    return (
        reading.times_count(diagnosis)
        and diagnosis.waiting is not None
        and batch in diagnosis.policies
        and reading.CONTINUOUS in diagnosis.policies
        and not reading.overloaded(diagnosis, batch)
    )


def _item(words: Words, name: str, now: str, after: str, interval: str, label: Label) -> KeyNumber:
    if now == DASH:
        label = ""
    return KeyNumber(words(name), now, after, interval, label, reading.label_word(words, label))


def _sample(diagnosis: Diagnosis, words: Words) -> tuple[KeyNumber, ...]:
    """What there is where nothing could be simulated: the sample and what it lacks."""
    own = diagnosis.output_tokens
    needed = words("numbers.requests_needed", needed=P95_REQUESTS)
    only = words("numbers.sample_only")
    requests = words.number(diagnosis.requests, "count")
    cv = words.number(own.cv, "number")
    return (
        _item(words, "numbers.requests", requests, "", needed, "measured"),
        _item(words, "numbers.mean", words.number(own.mean, "tokens"), "", only, "measured"),
        _item(words, "numbers.cv", cv, "", only, "measured"),
    )


def _idle(diagnosis: Diagnosis, batch: str, words: Words) -> KeyNumber:
    """One pair: under full load, where today's load leaves slots empty anyway; else of the replay.

    All policies' shares of the replay stand in the full tables.
    """
    full = diagnosis.idle_at_full.get(batch)
    refilled = diagnosis.idle_at_full.get(reading.CONTINUOUS)
    strained = reading.times_count(diagnosis) and reading.overloaded(diagnosis, batch)
    if full is not None and refilled is not None and not strained:
        shown = words.number(full.estimate, "percent"), words.number(refilled.estimate, "percent")
        note = words("numbers.idle_interval", low=full.low, high=full.high)
        return _item(words, "numbers.idle_at_full", *shown, note, "simulated")
    now = words.number(diagnosis.idle_share.get(batch), "percent")
    after = words.number(diagnosis.idle_share.get(reading.CONTINUOUS), "percent")
    if DASH in {now, after}:
        return _item(words, "numbers.idle", DASH, DASH, words("numbers.not_simulated"), "simulated")
    note = _ranges(words, "numbers.idle_ranges", "idle_share", diagnosis, batch)
    return _item(words, "numbers.idle", now, after, note, "simulated")


def _ranges(words: Words, key: str, figure: str, diagnosis: Diagnosis, batch: str) -> str:
    """Both intervals of a replayed figure, or that there are none."""
    now, after = (
        diagnosis.intervals.get(f"{figure}.{policy}") for policy in (batch, reading.CONTINUOUS)
    )
    if now is None or after is None:
        return words("numbers.no_interval")
    return words(key, low=now.low, high=now.high, after_low=after.low, after_high=after.high)


def _latency(diagnosis: Diagnosis, batch: str, words: Words) -> KeyNumber:
    if diagnosis.requests < P95_REQUESTS:
        dash = words.number(None, "")
        note = words("numbers.p95_withheld", requests=diagnosis.requests, needed=P95_REQUESTS)
        return _item(words, "numbers.latency", dash, dash, note, "simulated")
    now = diagnosis.policies[batch].latency_s.p95
    after = diagnosis.policies[reading.CONTINUOUS].latency_s.p95
    note = _ranges(words, "numbers.latency_ranges", "latency_p95_s", diagnosis, batch)
    return _item(
        words,
        "numbers.latency",
        words.number(now, "seconds"),
        words.number(after, "seconds"),
        note,
        reading.seconds_label(diagnosis),
    )


def _longest(diagnosis: Diagnosis, words: Words) -> KeyNumber:
    bound = diagnosis.gain_bound.get(str(diagnosis.slots))
    if bound is None:
        dash = words.number(None, "")
        return _item(words, "numbers.longest", dash, "", words("numbers.not_simulated"), "measured")
    return _item(
        words,
        "numbers.longest",
        words("numbers.one", value=bound.estimate, low=bound.low, high=bound.high),
        "",
        words("format.interval_times", low=bound.low, high=bound.high),
        "measured",
    )


def _capacity(diagnosis: Diagnosis, batch: str, words: Words) -> KeyNumber:
    gain = diagnosis.gain
    if gain is None:
        dash = words.number(None, "")
        note = words("numbers.not_simulated")
        return _item(words, "numbers.capacity", dash, dash, note, "simulated")
    note = words("numbers.gain_interval", gain=gain.estimate, low=gain.low, high=gain.high)
    label = reading.seconds_label(diagnosis)
    now = diagnosis.capacity_per_s.get(batch)
    after = diagnosis.capacity_per_s.get(reading.CONTINUOUS)
    if now is None or after is None or label == "assumed":
        one = words("numbers.one", value=1.0, low=gain.low, high=gain.high)
        then = words("numbers.one", value=gain.estimate, low=gain.low, high=gain.high)
        note = words("numbers.gain_range", low=gain.low, high=gain.high)
        return _item(words, "numbers.capacity_ratio", one, then, note, "simulated")
    return _item(
        words,
        "numbers.capacity",
        words.number(now, "rate"),
        words.number(after, "rate"),
        note,
        label,
    )


def _load(diagnosis: Diagnosis, batch: str, words: Words) -> list[Block]:
    arrivals = diagnosis.arrivals
    if arrivals is None:
        return []
    now = diagnosis.utilisation.get(batch)
    after = diagnosis.utilisation.get(reading.CONTINUOUS)
    if now is None or after is None:
        return []
    text = words(
        "numbers.load_utilisation",
        rate=arrivals.busiest_rate_per_s,
        span=arrivals.busiest_span_s,
        batch=now,
        continuous=after,
    )
    blocks: list[Block] = [Paragraph(text, "simulated", words("label.simulated"))]
    if after >= 1:
        blocks.append(Paragraph(words("numbers.still_overloaded")))
    return blocks


def flips(diagnosis: Diagnosis, words: Words) -> Section:
    """The values at which the verdict changes."""
    tag = words("label.simulated")
    items = tuple(
        Item(words.sentence("flip", flip.code, flip.numbers), "simulated", tag)
        for flip in diagnosis.flip
    )
    none = "flip.none" if diagnosis.verdict in reading.BY_FACT else "flip.none_found"
    block: Block = Bullets(items) if items else Paragraph(words(none))
    return Section("flips", words("flips.title"), (block,))
