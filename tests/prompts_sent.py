"""What is sent to a model, word for word, compared with files under tests/data/prompts_sent.

`CLEW_GOLDEN=write pytest …` writes the files anew; the difference is then for a person to read.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from clew.models.protocol import Completion, Request

GOLDEN = Path(__file__).parent / "data" / "prompts_sent"


def shown(request: Request) -> str:
    """A request as a reviewer reads it: its messages, then what holds the reply to a form."""
    parts = [f"[{message.role}]\n{message.content}" for message in request.messages]
    told = {"max_tokens": request.max_tokens, "temperature": request.temperature, "n": request.n}
    told |= {} if request.schema is None else {"schema": request.schema}
    return "\n\n".join([*parts, f"[settings]\n{json.dumps(told, ensure_ascii=False)}"]) + "\n"


class Sends:
    """A model that keeps what it is sent and gives one reply to everything."""

    name, context_tokens = "sends", 8192

    def __init__(self, reply):
        self.reply, self.sent = reply, []

    def complete(self, requests):
        self.sent += map(shown, requests)
        return [Completion(self.reply) for _ in requests]


def matches_golden(name: str, sent: Sequence[str]) -> bool:
    """Whether all that was sent is what the file of this name holds."""
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("CLEW_GOLDEN") == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(sent), "utf-8")
    return file.read_text("utf-8") == "\n".join(sent)
