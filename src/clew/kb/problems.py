"""Rows of the sources that cannot be used: the first one is an error, unless they are to be skipped and listed."""

from __future__ import annotations

from dataclasses import dataclass, field

from clew.core.errors import SourceError


@dataclass(frozen=True, slots=True)
class Problem:
    """One row that cannot be used, and where it stands; line 0 means the whole file."""

    message: str
    file: str
    line: int


@dataclass
class Problems:
    """Raises at the first problem, or counts and lists them where `skip` is set."""

    skip: bool = False
    listed: list[Problem] = field(default_factory=list)
    count: int = 0
    most_listed: int = 1000

    def add(self, message: str, file: str, line: int) -> None:
        """Report one row."""
        if not self.skip:
            raise SourceError(f"{message}; --skip-bad leaves such rows out and lists them", file=file, line=line)
        self.count += 1
        if len(self.listed) < self.most_listed:
            self.listed.append(Problem(message, file, line))
