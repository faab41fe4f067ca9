"""The method and options that `clew tune` chose for a base, stored in a file of the base."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from clew.answering.methods.catalog import create, method_class
from clew.answering.methods.protocol import Method, plain_options
from clew.core.errors import CorruptError
from clew.store.graph.manifest import TUNED, sealed_text, unsealed_or_older
from clew.store.graph.storage import change_file


class Tuned(BaseModel):
    """A method with its options, and its scores before and after tuning on held-out questions."""

    model_config = ConfigDict(extra="forbid")

    method: str
    options: dict[str, bool | int | float | str] = {}
    before: float
    after: float
    questions: int

    def create(self) -> Method:
        """Create the method. A base may come from an untrusted source, so only numbers, switches and choices apply."""
        allowed = plain_options(method_class(self.method))
        return create(self.method, {name: value for name, value in self.options.items() if name in allowed})


def keep_tuned(folder: Path, tuned: Tuned) -> None:
    """Store the method with which `auto` answers over this base."""
    change_file(folder, TUNED, lambda _: sealed_text(tuned.model_dump_json(indent=1).encode() + b"\n"))


def forget_tuned(folder: Path) -> bool:
    """Remove the tuned method. Return whether there was one."""
    was_there = (folder / TUNED).exists()
    (folder / TUNED).unlink(missing_ok=True)
    return was_there


def read_tuned(folder: Path) -> Tuned | None:
    """Return the method chosen for a base, or None."""
    file = folder / TUNED
    if not file.exists():
        return None
    try:
        return Tuned.model_validate_json(unsealed_or_older(file.read_bytes()) or b"")
    except ValidationError as error:
        raise CorruptError(
            f"{file} does not contain a valid choice of a method: `clew tune {folder} --undo` removes it"
        ) from error
