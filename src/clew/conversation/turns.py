"""A turn of a conversation, and one way to read a question that leans on the turns before."""

from __future__ import annotations

from dataclasses import dataclass, field

from clew.core.roles import Parse
from clew.core.types import Answer, NodeSet
from clew.reading.mentions import Named


@dataclass(frozen=True)
class Turn:
    """A question, the whole question that it stood for, and the answer."""

    question: str
    asked: str
    answer: Answer
    named: tuple[Named, ...] = ()
    """What the whole question names; words that pointed back are among it."""
    within: NodeSet | None = None
    """Where only some of what matched before was asked for, what that was."""

    @property
    def nodes(self) -> NodeSet:
        """What was found."""
        if self.answer.matched is not None and self.answer.found:
            return self.answer.matched
        return NodeSet.of([candidate.node.id for candidate in self.answer.matches])


@dataclass(frozen=True)
class Reading:
    """One way to read a question in its conversation."""

    asked: str
    parse: Parse | None = None
    """None: `asked` is a whole question."""
    fixes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    named: tuple[Named, ...] = ()
    within: NodeSet | None = None

    @property
    def certainty(self) -> float:
        """That of a whole question is not known yet: nothing else is meant."""
        return 1.0 if self.parse is None else self.parse.certainty or 0.0
