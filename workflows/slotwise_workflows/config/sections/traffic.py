"""`traffic`: the requests, read from a log or made up, and how users send them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from slotwise_workflows.config.base import (
    Config,
    Count,
    NotNegative,
    OneOf,
    Positive,
    Tokens,
    Words,
    integral,
)
from slotwise_workflows.given import MOST_USERS

MOST_REQUESTS = 100_000_000


class Log(Config):
    """A traffic log to be read."""

    path: Words = Field(
        description="files, globs or directories; relative to this file", min_length=1
    )
    format: str = Field("auto", description="a log format's id; auto looks at the content")
    timezone: str | None = Field(
        None, description="IANA zone of times without one; UTC if not given"
    )
    segment: Words = Field((), description="columns or paths by which results are split")
    map: dict[str, str] = Field({}, description="field: column or dotted path, for one's own table")
    time_unit: Literal["auto", "s", "ms", "us", "ns"] = Field(
        "auto", description="unit of numeric times; auto goes by the digits of the whole column"
    )
    origin: Literal["first", "zero"] = Field(
        "first",
        description="t = 0: the first kept arrival, or the log's own zero (relative times only)",
    )
    decimal: Literal["auto", ".", ","] = Field(
        "auto", description="decimal sign of a CSV's numbers"
    )
    where: Words = Field(
        (), description="conditions column=value (also != < <= > >=) a row must meet"
    )
    allow_truncated: bool = Field(
        False, description="read a gzip stream that ends early up to its cut"
    )

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str | None) -> str | None:
        if name is not None:
            from zoneinfo import ZoneInfo

            try:
                ZoneInfo(name)
            except (OSError, ValueError, KeyError):
                raise ValueError(
                    f"{name!r} is no IANA time zone, such as Asia/Tokyo or UTC"
                ) from None
        return name


class Rate(Config):
    """Arrivals at a rate."""

    rate: Positive = Field(description="requests per second")


class GammaRate(Rate):
    """Arrivals whose gaps are gamma distributed."""

    cv: Positive = Field(description="coefficient of variation of the gaps; 1 is Poisson")


class Arrivals(OneOf):
    """How requests arrive. ``upfront`` may also be written as a word."""

    words = ("upfront",)

    constant: Rate | None = Field(None, description="equal gaps")
    poisson: Rate | None = Field(None, description="independent arrivals")
    gamma: GammaRate | None = Field(None, description="more (cv > 1) or less bursty than Poisson")
    upfront: Literal[True] | None = Field(None, description="all at t = 0")
    trace: tuple[NotNegative, ...] | None = Field(
        None, strict=False, description="arrival times in seconds, one a request"
    )

    @model_validator(mode="before")
    @classmethod
    def _word(cls, data: Any) -> Any:
        if data == "upfront":
            return {"upfront": True}
        if isinstance(data, dict) and data.get("upfront", 0) in (None, {}):
            return {**data, "upfront": True}
        return data


class Lognormal(Config):
    """Lengths with a long tail."""

    # Bounded so that no draw leaves the range of whole numbers.
    mean: Annotated[float, Field(gt=0, le=10_000_000)] = Field(description="mean in tokens")
    cv: Annotated[float, Field(ge=0, le=20)] = Field(description="standard deviation over mean")


Range = Annotated[tuple[Tokens, Tokens], Field(strict=False)]
Sample = Annotated[tuple[Tokens, ...], Field(strict=False, min_length=1)]


class SimpleLengths(OneOf):
    """One distribution of token counts."""

    constant: Tokens | None = Field(None, description="every request the same")
    uniform: Range | None = Field(None, description="[smallest, largest], both included")
    lognormal: Lognormal | None = Field(None, description="rounded to whole tokens, at least 1")
    empirical: Sample | None = Field(None, description="token counts to draw from, equally likely")

    @field_validator("uniform")
    @classmethod
    def _ascending(cls, bounds: tuple[int, int] | None) -> tuple[int, int] | None:
        if bounds is not None and bounds[0] > bounds[1]:
            raise ValueError(f"[{bounds[0]}, {bounds[1]}] must ascend")
        return bounds

    def smallest(self) -> int:
        """The fewest tokens it can yield."""
        if self.constant is not None:
            return self.constant
        if self.uniform is not None:
            return self.uniform[0]
        return min(self.empirical) if self.empirical is not None else 1


class Component(SimpleLengths):
    """One part of a mixture: its weight beside its distribution."""

    beside = ("weight",)

    weight: Positive = Field(description="share of the requests, relative to the other weights")


class Lengths(SimpleLengths):
    """Token counts: one distribution, or a mixture of several."""

    mixture: Annotated[tuple[Component, ...], Field(strict=False, min_length=1)] | None = Field(
        None, description="each request draws one of these by weight"
    )

    def smallest(self) -> int:
        """The fewest tokens it can yield."""
        if self.mixture is not None:
            return min(part.smallest() for part in self.mixture)
        return super().smallest()


class Synthetic(Config):
    """Made-up traffic."""

    requests: Annotated[int, Field(ge=1, le=MOST_REQUESTS), BeforeValidator(integral)] = Field(
        description="how many requests"
    )
    arrivals: Arrivals = Field(description="how they arrive")
    output_tokens: Lengths = Field(description="tokens generated")
    prompt_tokens: Lengths = Field(
        Lengths(constant=0), description="tokens of the prompts; 0 if left out"
    )
    max_tokens: Count | None = Field(None, description="the cap every request is sent with")

    @field_validator("arrivals")
    @classmethod
    def _a_time_each(cls, arrivals: Arrivals, info: ValidationInfo) -> Arrivals:
        requests = info.data.get("requests")  # missing where it is wrong itself
        if arrivals.trace is not None and requests not in (None, len(arrivals.trace)):
            raise ValueError(f"trace holds {len(arrivals.trace)} times for {requests} requests")
        return arrivals

    @field_validator("output_tokens")
    @classmethod
    def _some_output(cls, lengths: Lengths) -> Lengths:
        if lengths.smallest() < 1:
            raise ValueError("must be at least 1 token; a request without output is not one")
        return lengths


class Users(Config):
    """Users who wait for their answers: a closed loop, in place of the requests' own times."""

    count: Annotated[Count, Field(le=MOST_USERS)] = Field(
        description="how many take turns; each sends the next request when it has read its answer"
    )
    think_s: NotNegative = Field(0.0, description="mean seconds thought before each request")
    think: Literal["constant", "exponential"] = Field(
        "constant", description="always as long, or drawn"
    )


class Traffic(OneOf):
    """The requests: a log, or made up."""

    beside = ("users",)

    log: Log | None = Field(None, description="read from files")
    synthetic: Synthetic | None = Field(None, description="drawn from distributions")
    users: Users | None = Field(
        None, description="who wait for their answers; the times of arrival are then not used"
    )
