"""What identifies a run: the questions, the method with its parameters, the model and the base."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any

from clew import __version__
from clew.core.errors import InputError
from clew.datasets.questions import Dataset, Kind, Match
from clew.methods.protocol import Method


@dataclass(frozen=True)
class Setup:
    """The configuration of a run; two runs with equal setups answer the same questions in the same way."""

    dataset: str
    split: str | None
    portion: str
    kind: Kind
    match: Match
    n: int
    questions: str
    """Digest of the questions and their gold answers."""
    method: str
    parameters: Mapping[str, Any]
    model: str
    base: str
    per_question: bool = False
    version: str = __version__

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        method: str,
        parameters: Mapping[str, Any],
        *,
        model: str = "none",
        base: str = "",
        match: Match = "strict",
        per_question: bool = False,
    ) -> Setup:
        """The setup of one method on one data set."""
        return cls(
            dataset=dataset.name,
            split=dataset.split,
            portion=dataset.portion,
            kind=dataset.kind,
            match=match,
            n=len(dataset.questions),
            questions=_digest([(q.id, q.text, q.answers, q.passages, dict(q.aliases)) for q in dataset.questions]),
            method=method,
            parameters=parameters,
            model=model,
            base=base,
            per_question=per_question,
        )

    def to_json(self) -> dict[str, Any]:
        """As plain values, the same after a round through JSON."""
        values: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return values

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Setup:
        """The setup a run folder remembers."""
        return cls(**{part.name: raw[part.name] for part in fields(cls)})

    def folder_name(self) -> str:
        """Where the run lies below the output folder: the data set, then the method and its model."""
        dataset = f"{self.dataset}-{self.split}" if self.split else self.dataset
        method = self.method if self.model == "none" else f"{self.method}-{self.model}"
        return f"{_plain(dataset)}/{_plain(method)}"

    def refuse(self, other: Setup, folder: object) -> None:
        """Raise where another setup's answers would be mixed with this one's."""
        ours, theirs = self.to_json(), other.to_json()
        different = [f"{name} is {theirs[name]!r}, not {ours[name]!r}" for name in ours if ours[name] != theirs[name]]
        if different:
            raise InputError(
                f"{folder} holds another run ({'; '.join(different)}): choose another --out, or remove the folder"
            )


def parameters(method: Method) -> dict[str, Any]:
    """The parameters of a method and of its parts: simple values, and the class names of everything else."""
    found = _described(method)
    return found if isinstance(found, dict) else {"method": found}


def _described(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [_described(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        shown = {part.name: _described(getattr(value, part.name)) for part in fields(value) if part.repr}
        return {"": type(value).__name__, **shown}
    return type(value).__name__


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()[:16]


def _plain(text: str) -> str:
    return re.sub(r"[^\w.\-]+", "_", text).strip("._") or "run"
