"""What tokens cost: a data file that ships, and the user's own beside it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clew.errors import SourceError


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens, and the length of the model's context where it is known."""

    input: float = 0.0
    output: float = 0.0
    context: int | None = None

    def dollars(self, prompt_tokens: int, completion_tokens: int) -> float:
        """What these tokens cost."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1_000_000

    def discounted(self, share: float) -> Price:
        """The price times a share."""
        return Price(self.input * share, self.output * share, self.context)


FREE = Price()


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid")
    input: float = Field(ge=0)
    output: float = Field(ge=0)
    context: int | None = Field(None, gt=0)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    batch_discount: float | None = Field(None, ge=0, le=1)
    models: dict[str, _Row] = Field(default_factory=dict)


@dataclass(frozen=True)
class PriceTable:
    """Prices by model name."""

    rows: dict[str, Price]
    batch_discount: float = 1.0

    @classmethod
    def load(cls, own: Path | None = None) -> PriceTable:
        """The shipped table, overridden by the user's where there is one."""
        shipped = _read(resources.files("clew.models").joinpath("prices.toml").read_text("utf-8"), Path("prices.toml"))
        files = [shipped] + ([_read(own.read_text("utf-8"), own)] if own is not None and own.is_file() else [])
        rows = {name: Price(**row.model_dump()) for file in files for name, row in file.models.items()}
        discounts = [file.batch_discount for file in files if file.batch_discount is not None]
        return cls(rows, discounts[-1] if discounts else 1.0)

    def of(self, model: str) -> Price:
        """The price of a model or of the undated model it is a version of; free where none is listed."""
        if model in self.rows:
            return self.rows[model]
        stems = [name for name in self.rows if model.startswith(f"{name}-") and model[len(name) + 1 :][:1].isdigit()]
        return self.rows[max(stems, key=len)] if stems else FREE


def _read(text: str, file: Path) -> _File:
    try:
        return _File.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as failure:
        raise SourceError(f"no price table: {failure}", file=file) from failure
    except ValidationError as failure:
        raise SourceError(f"no price table: {failure}", file=file) from failure
