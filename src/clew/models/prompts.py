"""Prompts are text files with `$holes`; a missing or an unused hole raises, so that a prompt never silently lies."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from string import Template

from clew.core.errors import InputError
from clew.models.protocol import Message

SYSTEM_END = "\n---\n"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file: an optional system part, a line of three dashes, and the user part."""

    name: str
    system: str
    user: str

    @classmethod
    def load(cls, package: str, name: str) -> Prompt:
        """Read `name`.txt of a package, such as `clew.roles.prompts`."""
        text = resources.files(package).joinpath(f"{name}.txt").read_text("utf-8").strip()
        system, mark, user = text.partition(SYSTEM_END)
        prompt = cls(name, system.strip() if mark else "", user.strip() if mark else text)
        for part in (prompt.system, prompt.user):
            if not Template(part).is_valid():
                raise InputError(f"prompt {name}: a $ that opens no hole; write $$ for a dollar sign")
        return prompt

    @property
    def holes(self) -> frozenset[str]:
        """The names to be filled in."""
        return frozenset(Template(self.system).get_identifiers()) | frozenset(Template(self.user).get_identifiers())

    def fill(self, **values: object) -> tuple[Message, ...]:
        """The messages of the prompt; every hole must be given, and nothing else."""
        missing, unused = self.holes - values.keys(), values.keys() - self.holes
        if missing or unused:
            wrong = [f"missing: {', '.join(sorted(missing))}"] if missing else []
            wrong += [f"unused: {', '.join(sorted(unused))}"] if unused else []
            raise InputError(f"prompt {self.name}: {'; '.join(wrong)}")
        system = (Message("system", Template(self.system).substitute(values)),) if self.system else ()
        return (*system, Message("user", Template(self.user).substitute(values)))
