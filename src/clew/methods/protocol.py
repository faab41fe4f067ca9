"""What every method is: a frozen dataclass whose fields are its options, and one function from question to answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from clew.core.errors import InputError
from clew.core.types import Answer
from clew.methods.options import check_fields
from clew.toolbox import Toolbox

WITHOUT_MODEL = "without a language model (--model)"


@dataclass(frozen=True)
class Method(ABC):
    """Answers questions; what is costly to make for a base is made once (`Toolbox.keep`)."""

    name: ClassVar[str]
    """How it is called on the command line and in answers."""

    def __post_init__(self) -> None:
        """Refuse an option of a wrong type here, where the caller can see which it is."""
        check_fields(self)

    def refuse(self, options: Iterable[str], where: str) -> None:
        """Refuse what was set although it has no effect there: nothing is silently ignored."""
        for option in options:
            if (given := getattr(self, option)) != getattr(type(self), option):
                raise InputError(f"{self.name}: {option}={given} has no effect {where}: leave it out, or change that")

    @abstractmethod
    def answer(self, question: str, tools: Toolbox) -> Answer:
        """Ranked candidates with their evidence."""

    def learned(self, tools: Toolbox) -> Mapping[str, Any]:  # noqa: ARG002 - most have learned nothing
        """What can change an answer beside the options, the model and the base: weights, files."""
        return {}
