"""`server`: the machines, what their work costs, and their memory."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from slotwise_sim.costs import Piece, Step
from slotwise_workflows.config.base import Config, Count, OneOf, integral
from slotwise_workflows.costs.presets import all_presets, find_preset
from slotwise_workflows.errors import ConfigError
from slotwise_workflows.given import MOST_MS_PER_TOKEN, MOST_REPLICAS, MOST_SLOTS

MOST_PIECES = 100
MOST_KV_TOKENS = 1_000_000_000_000
MOST_BLOCK_TOKENS = 1_000_000

Milliseconds = Annotated[float, Field(ge=0, le=MOST_MS_PER_TOKEN, allow_inf_nan=False)]


class StepPiece(Config):
    """What an iteration costs once many sequences decode in it."""

    from_seqs: Annotated[int, Field(ge=2, le=MOST_SLOTS), BeforeValidator(integral)] = Field(
        description="sequences decoding in it from which this holds"
    )
    base_ms: Milliseconds = Field(description="in place of base_ms above")
    per_seq_ms: Milliseconds = Field(0.0, description="in place of per_seq_ms above")
    per_kv_token_ms: Milliseconds = Field(0.0, description="in place of per_kv_token_ms above")


class StepCost(Config):
    """Duration of one iteration, by what it decodes (B, K) and prefills (P, Q)."""

    base_ms: Milliseconds = Field(description="every iteration")
    per_seq_ms: Milliseconds = Field(0.0, description="times sequences decoding in it (B)")
    per_kv_token_ms: Milliseconds = Field(0.0, description="times tokens those sequences hold (K)")
    per_prefill_token_ms: Milliseconds = Field(0.0, description="times prompt tokens prefilled (P)")
    per_prefill_token2_ms: Milliseconds = Field(0.0, description="times attention's share (Q)")
    prefill_base_ms: Milliseconds | None = Field(
        None, description="in place of base_ms where nothing decodes; base_ms if left out"
    )
    pieces: Annotated[tuple[StepPiece, ...], Field(strict=False, max_length=MOST_PIECES)] = Field(
        (), description="other terms for larger batches, ascending"
    )

    @model_validator(mode="after")
    def _possible(self) -> StepCost:
        self.step()
        return self

    def step(self) -> Step:
        """The cost as the simulator takes it.

        Raises:
            ValueError: Together the terms are no cost.
        """
        terms = self.model_dump(exclude={"pieces"})
        return Step(**terms, pieces=tuple(Piece(**piece.model_dump()) for piece in self.pieces))


def _known_preset(name: str) -> str:
    try:
        return find_preset(name).name
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _preset_names(schema: dict[str, Any]) -> None:
    schema["enum"] = [preset.name for preset in all_presets()]


PresetName = Annotated[str, AfterValidator(_known_preset), Field(json_schema_extra=_preset_names)]


class Cost(OneOf):
    """What a token or an iteration costs."""

    ms_per_token: (
        Annotated[float, Field(gt=0, le=MOST_MS_PER_TOKEN, allow_inf_nan=False)] | None
    ) = Field(None, description="milliseconds a token, whatever else runs")
    step: StepCost | None = Field(None, description="milliseconds an iteration, by what it holds")
    preset: PresetName | None = Field(None, description="a step cost that others measured, by name")
    calibration: str | None = Field(
        None, description="file with a step cost fitted to measurements"
    )


class Memory(Config):
    """KV memory; limits continuous batching under a step cost only."""

    kv_tokens: Annotated[Count, Field(le=MOST_KV_TOKENS)] = Field(
        description="tokens the KV cache of one server holds"
    )
    block_tokens: Annotated[Count, Field(le=MOST_BLOCK_TOKENS)] = Field(
        16, description="tokens a block, under paged"
    )
    reserve: Literal["paged", "max_tokens"] = Field(
        "paged", description="grow block by block, or reserve prompt + max_tokens at once"
    )


Slots = Annotated[int, Field(ge=1, le=MOST_SLOTS), BeforeValidator(integral)]
Replicas = Annotated[int, Field(ge=1, le=MOST_REPLICAS), BeforeValidator(integral)]
Balancer = Literal["round_robin", "least_busy"]


class Server(Config):
    """The server that is, or would be, there."""

    serving: Literal["self_hosted", "managed_api", "unknown"] | None = Field(
        None, description="who runs it; inferred from the log if left out"
    )
    mode: Literal["online", "offline"] | None = Field(
        None, description="users wait, or a job is to be finished; inferred if left out"
    )
    replicas: Replicas | None = Field(None, description="servers of this kind behind one balancer")
    balancer: Balancer = Field(
        "round_robin",
        description="how requests are spread over replicas: in turn, or to the one with the fewest "
        "unanswered",
    )
    slots: Slots | None = Field(None, description="requests one server runs at once")
    cost: Cost | None = Field(None, description="what a token or an iteration costs")
    memory: Memory | None = Field(None, description="KV memory; without it, memory never limits")
