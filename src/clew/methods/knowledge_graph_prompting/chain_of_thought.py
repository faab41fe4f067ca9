"""IRCoT's reasoning step (Trivedi et al., ACL 2023): the next sentence of a chain of thought, after two examples.

The examples are ours, made up, each with the passages it needs and one that it does not, as the paper's
`gold_with_2_distractors_context` has them.
"""

from __future__ import annotations

from collections.abc import Sequence

from clew.core import trace
from clew.core.errors import ReplyError
from clew.core.roles import Source
from clew.models.prompts import Prompt
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, ask
from clew.models.tokens import count_tokens, cut_to_question
from clew.reading.language.proper_names import sentences

THINK = Prompt.load("clew.methods.knowledge_graph_prompting", "chain_of_thought")
CONCLUDED = "the answer is"
"""How the chains of the examples end."""
LONGEST = 120
"""Tokens of a reply, of which only the first sentence counts."""


def has_answer(thought: str) -> bool:
    """Whether a chain of thought ends with this sentence."""
    return CONCLUDED in thought.lower()


def next_thought(
    model: LanguageModel, question: str, passages: Sequence[Source], thoughts: Sequence[str]
) -> str | None:
    """The next sentence; None where the model gives none."""
    room = (model.context_tokens - LONGEST - count_tokens(THINK.user)) // max(len(passages), 1)
    shown = "\n\n".join(
        f"Title: {passage.title}\n{cut_to_question(passage.text, question, room)}" for passage in passages
    )
    filled = THINK.fill(passages=shown, question=question, thoughts=" ".join(thoughts))
    [outcome] = ask(model, [Ask(filled, read_thought, max_tokens=LONGEST)], role="write")
    if outcome.value is None:
        trace.fallback("write", outcome.problem or "no reply", "what was found so far is read")
    return outcome.value


def read_thought(completion: Completion) -> str:
    """The first sentence of a reply."""
    text = completion.text.strip().removeprefix("A:").strip()
    found = sentences(text)
    if not found:
        raise ReplyError("the reply holds no sentence")
    return " ".join(found[0].split())
