"""Models with scripted replies, for tests and trials, and as `scripted:FILE`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from clew.core.texts import read_json_lines
from clew.models.model_names import capabilities_by_name
from clew.models.protocol import Capabilities, Completion, Request, Usage
from clew.models.tokens import count_request_tokens, count_tokens


@dataclass
class ScriptedModel:
    """Model that replies through a function and records the requests. A reply of None is an error."""

    reply: Callable[[Request], str | None]
    name: str = "scripted"
    context_tokens: int = 8192
    asked: list[Request] = field(default_factory=list, repr=False)

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities guessed from the name."""
        return capabilities_by_name(self.name, self.context_tokens)

    @classmethod
    def saying(cls, *replies: str) -> ScriptedModel:
        """Return a model that gives these replies in order, and then repeats the last reply."""
        left = list(replies)
        return cls(lambda _: left.pop(0) if len(left) > 1 else left[0])

    @classmethod
    def load(cls, file: Path) -> ScriptedModel:
        """Load rules from JSON lines `{"contains": "…", "reply": …}`. The first rule found in the last message applies.

        A reply other than a string is sent as JSON. A rule without `contains` always matches.
        """
        rules = read_json_lines(file, _Rule, '{"contains": …, "reply": …}')

        def reply(request: Request) -> str | None:
            asked = request.messages[-1].content
            return next((rule.text for rule in rules if rule.contains in asked), None)

        return cls(reply, name=f"scripted:{file.name}")

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Return the scripted replies, with estimated token counts."""
        self.asked.extend(requests)
        return [self._one(request) for request in requests]

    def _one(self, request: Request) -> Completion:
        text = self.reply(request)
        usage = Usage(count_request_tokens(request), count_tokens(text or ""))
        return Completion(text, usage) if text is not None else Completion("", usage, error="no rule for this prompt")


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid")
    contains: str = ""
    reply: str | dict[str, object] | list[object] | float

    @property
    def text(self) -> str:
        return self.reply if isinstance(self.reply, str) else json.dumps(self.reply, ensure_ascii=False)
