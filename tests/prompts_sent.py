"""What is sent to a model, word for word, compared with files under tests/data/prompts_sent.

`CLEW_GOLDEN=write pytest …` writes the files anew; the difference is then for a person to read.
"""

import os
from pathlib import Path

from clew.models.protocol import Completion

GOLDEN = Path(__file__).parent / "data" / "prompts_sent"


class Sends:
    """A model that keeps what it is sent and gives one reply to everything."""

    name, context_tokens = "sends", 8192

    def __init__(self, reply):
        self.reply, self.sent = reply, []

    def complete(self, requests):
        self.sent += ["\n".join(f"<{m.role}>\n{m.content}" for m in request.messages) for request in requests]
        return [Completion(self.reply) for _ in requests]


def matches_golden(name, model):
    """Whether all that was sent is what the file of this name holds."""
    file = GOLDEN / f"{name}.txt"
    sent = "\n\n".join(model.sent) + "\n"
    if os.environ.get("CLEW_GOLDEN") == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(sent, "utf-8")
    return file.read_text("utf-8") == sent
