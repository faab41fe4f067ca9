"""What travels over HTTP about evaluations, as types."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class _Reply(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="ignore", json_schema_serialization_defaults_required=True, use_attribute_docstrings=True
    )


class TableReply(_Reply):
    """A table of cells that are ready to be shown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


class EvaluationReply(_Reply):
    """The runs over one set of questions."""

    title: str
    runs: tuple[str, ...]
    tables: tuple[TableReply, ...]


class FailureReply(_Reply):
    """A question that was not answered well."""

    id: str
    question: str
    gold: tuple[str, ...]
    found: tuple[str, ...]
    metrics: dict[str, float]
    error: str | None
    fallbacks: tuple[str, ...]
    trace: tuple[str, ...]
