"""What every method is: a frozen dataclass whose fields are its options, and one function from question to answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from clew.core.types import Answer
from clew.methods.options import check_fields
from clew.toolbox import Toolbox


@dataclass(frozen=True)
class Method(ABC):
    """Answers questions; what is costly to make for a base is made once (`Toolbox.keep`)."""

    name: ClassVar[str]
    """How it is called on the command line and in answers."""

    def __post_init__(self) -> None:
        """Refuse an option of a wrong type here, where the caller can see which it is."""
        check_fields(self)

    @abstractmethod
    def answer(self, question: str, tools: Toolbox) -> Answer:
        """Ranked candidates with their evidence."""

    def learned(self, tools: Toolbox) -> Mapping[str, Any]:  # noqa: ARG002 - most have learned nothing
        """What can change an answer beside the options, the model and the base: weights, files."""
        return {}
