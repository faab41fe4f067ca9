"""Resources (a base, a node) and prompts for agents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from pydantic import BaseModel, Field

from clew.answering.methods.agent.tools import show_node
from clew.answering.methods.role_choice import description_of
from clew.core.errors import InputError, NotFoundError
from clew.models.structured import Prompt
from clew.server.examples import examples
from clew.server.serving import ServedBase

ADDRESS = re.compile(r"clew://bases/([^/]{1,300})(?:/nodes/(.{1,1500}))?")
NODES = {
    "uriTemplate": "clew://bases/{base}/nodes/{key}",
    "name": "node",
    "title": "A node of a base",
    "description": "One node of a base, by key or name: its document and its neighbours by relation.",
    "mimeType": "text/plain",
}
MAX_TOKENS = 8_000
"""Maximum tokens of the relations in a text."""
PROMPTS: Mapping[str, tuple[str, str, str]] = {
    "answer": ("Answer a question from a base, each statement with its evidence.", "question", "The question."),
    "check": ("Check a claim against a base.", "claim", "What is claimed, in a sentence."),
    "connect": ("Tell how things are connected in a base.", "entities", "Names or keys, with commas between them."),
}
"""Prompts: description, required argument, and description of the argument."""


def listed(bases: Mapping[str, ServedBase]) -> list[dict[str, str]]:
    """Return a resource for every base that can be asked."""
    return [
        {
            "uri": f"clew://bases/{quote(name, safe='')}",
            "name": name,
            "title": f"What is in {name}",
            "description": "Types, attributes and relations of the base, and questions to begin with.",
            "mimeType": "text/plain",
        }
        for name, base in bases.items()
        if base.is_ready
    ]


def read(bases: Mapping[str, ServedBase], address: object) -> str:
    """Return the text of a resource. Raise NotFoundError if it does not exist or is not visible."""
    found = ADDRESS.fullmatch(address) if isinstance(address, str) else None
    base = None if found is None else bases.get(unquote(found[1]))
    if found is None or base is None:
        raise NotFoundError(f"no resource {str(address)[:200]!r}: see resources/list")
    return base_text(base) if found[2] is None else show_node(base.base().tools, unquote(found[2])).text


def base_text(base: ServedBase) -> str:
    """Describe the content of a base, with example questions."""
    tools = base.base().tools
    parts = description_of(tools).parts("", MAX_TOKENS)
    lines = [base.name, "", "Types, the number of nodes, some names, and attributes:", parts["types"]]
    lines += ["", "Relations, as head type -> relation -> tail type:", parts["relations"]]
    asked = examples(tools)
    return "\n".join([*lines, *(["", "Questions to begin with:"] if asked else []), *(f"- {one}" for one in asked)])


def prompts() -> list[dict[str, Any]]:
    """Return every prompt with its arguments."""
    base = {"name": "base", "description": "The base; may be left out.", "required": False}
    return [
        {
            "name": name,
            "description": what,
            "arguments": [{"name": needed, "description": meaning, "required": True}, base],
        }
        for name, (what, needed, meaning) in PROMPTS.items()
    ]


class _Wanted(BaseModel):
    name: str
    arguments: dict[str, str] = Field({}, max_length=10)


def prompt(bases: Mapping[str, ServedBase], parameters: object) -> dict[str, Any]:
    """Fill a prompt with its arguments."""
    wanted = _Wanted.model_validate(parameters)
    if wanted.name not in PROMPTS:
        raise InputError(f"no prompt {wanted.name[:100]!r}: use {', '.join(PROMPTS)}")
    what, needed, _ = PROMPTS[wanted.name]
    given = {name: value.strip() for name, value in wanted.arguments.items() if value.strip()}
    if given.keys() - {"base"} != {needed}:
        arrived = ", ".join(given) or "nothing"
        raise InputError(f"the prompt {wanted.name} requires {needed} and accepts base, but got: {arrived}")
    if "base" in given and given["base"] not in bases:
        raise InputError(f"name one of the bases: {', '.join(bases) or 'there are none'}")
    names = [given["base"]] if "base" in given else list(bases)
    base = f"the knowledge base {names[0]}" if len(names) == 1 else f"the base that fits ({', '.join(names)})"
    (message,) = Prompt.load("clew.server.prompts", wanted.name).fill(**{needed: given[needed]}, base=base)
    return {"description": what, "messages": [{"role": "user", "content": {"type": "text", "text": message.content}}]}
