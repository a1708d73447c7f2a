"""What all parts of a workload file have in common: strictness, choices, kinds of numbers."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)


def integral(value: Any) -> Any:
    """``1e3`` is a float to YAML and a whole number to whoever wrote it."""
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        return int(value)
    return value


def one_or_many(value: Any) -> Any:
    """A single word where a list of words may stand."""
    return (value,) if isinstance(value, str) else value


Count = Annotated[int, Field(ge=1), BeforeValidator(integral)]
Tokens = Annotated[int, Field(ge=0, le=10_000_000), BeforeValidator(integral)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
# Lists of YAML become tuples; strict validation would refuse them otherwise.
Words = Annotated[
    tuple[str, ...],
    BeforeValidator(one_or_many),
    Field(strict=False, json_schema_extra={"type": ["array", "string"]}),
]


class Config(BaseModel):
    """Strict and frozen; unknown keys are refused, null is the same as left out."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_left_out(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return {} if data is None else data
        return {k: v for k, v in data.items() if v is not None or k not in cls.model_fields}


class OneOf(Config):
    """A choice: exactly one of the keys is there, and only that one is written out again."""

    words: ClassVar[tuple[str, ...]] = ()  # keys that may stand alone, as words
    beside: ClassVar[tuple[str, ...]] = ()  # keys that are no part of the choice

    @classmethod
    def choices(cls) -> list[str]:
        """The keys to choose from."""
        return [name for name in cls.model_fields if name not in cls.beside]

    @model_serializer(mode="wrap")
    def _chosen(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in serialize(self).items() if value is not None}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: Any, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """The schema says "one of" too, so that an editor finds a second choice."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        schema["oneOf"] = [{"required": [name]} for name in cls.choices()]
        if cls.words:
            return {
                "anyOf": [{"enum": list(cls.words)}, schema],
                "description": schema["description"],
            }
        return schema

    @model_validator(mode="after")
    def _exactly_one(self) -> OneOf:
        names = self.choices()
        there = [name for name in names if getattr(self, name) is not None]
        if len(there) != 1:
            found = "none is there" if not there else f"{' and '.join(there)} are there"
            raise ValueError(f"needs exactly one of {', '.join(names)}; {found}")
        return self
