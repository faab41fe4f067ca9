"""Agent (after ARK, 2601.13969): a language model explores the base with tools, then answers.

1  one step is one model call: search nodes, show a node, run a query, or answer
2  the result of a tool is the next message, errors included. Steps and tokens are limited
3  the answer is a query, which is executed like the method `query`, or nodes that the tools have shown

Deviations from the paper: a third tool runs queries, and one model explores once instead of several in parallel.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from pydantic import Field

from clew.answering.methods.agent.tools import LANGUAGE, Observation, label, query_nodes, search_nodes, show_node
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import description_of
from clew.answering.queries.query_answers import Executed, answer_query
from clew.answering.reading.documents.close_reading import most_telling
from clew.answering.roles.claims import check_claims
from clew.answering.roles.formulate import ALONE, BY_TEXT
from clew.answering.roles.read import SUPPORTED
from clew.core import trace
from clew.core.errors import InputError, ReplyError
from clew.core.roles import CitedClaim, Source
from clew.core.types import Answer, Candidate, Evidence, Passage
from clew.models.protocol import Message, Request
from clew.models.structured import SHOWN_REPLY, Prompt, TypedReply, object_schema, read_json
from clew.models.tokens import PER_MESSAGE, count_request_tokens, count_tokens, cut_end
from clew.store.open_base import OpenBase

PROMPT = Prompt.load("clew.answering.methods.agent", "explore")
REPLY_TOKENS = 400
"""Maximum tokens of a reply."""
NOTE_TOKENS = 40
"""Tokens of the note on the remaining steps."""
HITS, NEIGHBOURS = 6, 50
"""Maximum number of nodes that a search finds, and of neighbours by one relation."""
MOST_KEYS, NEAR, CITED = 100, 10, 12
"""Maximum number of nodes in an answer by keys, of close matches, and of nodes cited in a sentence."""
LAST = 'This is the last step: reply with the tool "answer" or "none".'
IF_MEANT = "If these names are meant, give the same answer again."
ToolName = Literal["search", "show", "query", "answer", "none"]
_TEXT = {"type": "string"}
SCHEMA = object_schema(
    {
        "thinking": _TEXT,
        "tool": {"enum": [*get_args(ToolName)]},
        "text": _TEXT,
        "only": _TEXT,
        "query": _TEXT,
        "keys": {"type": "array", "items": _TEXT},
    }
)


class _Step(TypedReply):
    thinking: str = ""
    tool: ToolName
    text: str = ""
    only: str = ""
    query: str = ""
    keys: list[str] = Field(default_factory=list)

    def in_words(self) -> str:
        parts = (self.text, self.only, self.query, ", ".join(self.keys))
        return f"{self.tool}: {' | '.join(part for part in parts if part)}"


@dataclass(frozen=True)
class Agent(Method):
    """A language model explores the base: it searches nodes, looks at neighbours and runs queries, then answers."""

    name = "agent"
    needs_model = True
    steps: int = 6
    """Maximum number of model calls for a question."""
    tokens: int = 12_000
    """Maximum tokens of all prompts and replies for a question, as estimated. The model must answer before."""
    result_tokens: int = 600
    """Maximum tokens of one result of a tool."""

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return the result of the model's query, or the nodes it names, with the evidence that it saw."""
        model = tools.required_model("the method agent")
        if min(self.steps, self.tokens, self.result_tokens) < 1:
            raise InputError("agent: steps, tokens and result_tokens must be at least 1")
        exploration = _Exploration(question, tools, self.result_tokens)
        messages = exploration.prompt(min(self.tokens // 10, model.context_tokens // 6))
        spent = 0
        for step in range(1, self.steps + 1):
            now = count_request_tokens(Request(messages)) + NOTE_TOKENS + REPLY_TOKENS
            following = now + REPLY_TOKENS + self.result_tokens + 2 * PER_MESSAGE
            if spent + now > self.tokens or now > model.context_tokens:
                return exploration.stopped(f"the prompt does not fit into {self.tokens - spent:,} tokens")
            is_last = step == self.steps or spent + now + following > self.tokens or following > model.context_tokens
            further = 2 * following - now
            is_next = step + 1 == self.steps or spent + now + following + further > self.tokens
            note = (
                LAST if is_last else f"(Step {step} of {self.steps}{', the next one is the last' if is_next else ''}.)"
            )
            messages = (*messages[:-1], replace(messages[-1], content=f"{messages[-1].content}\n\n{note}"))
            request = Request(messages, REPLY_TOKENS, schema=SCHEMA)
            with trace.span(f"step {step}") as span:
                [completion] = model.complete([request])
                if completion.error is not None:
                    trace.fallback("agent", completion.error, "answered from the steps before")
                    return exploration.stopped("the model did not reply")
                spent += count_request_tokens(request) + count_tokens(completion.text)
                outcome = exploration.act(completion.text, span, is_last=is_last)
                span.note(tokens=spent, result=outcome if isinstance(outcome, str) else outcome.state)
            if isinstance(outcome, Answer):
                return outcome
            if is_last:
                break
            reply = Message("assistant", cut_end(completion.text[:SHOWN_REPLY], REPLY_TOKENS) or "(nothing)")
            messages = (*messages, reply, Message("user", outcome))
        return exploration.stopped(f"the model gave no answer in {step} steps")


@dataclass
class _Exploration:
    """The tools for one question, and the nodes that they have shown."""

    question: str
    tools: OpenBase
    result_tokens: int
    seen: dict[int, list[Evidence]] = field(default_factory=dict)
    queries: set[str] = field(default_factory=set)
    """Queries whose results were shown."""
    last: Executed | None = None
    """The last query that had a result."""

    def prompt(self, tokens: int) -> tuple[Message, ...]:
        """Return the first messages, with at most `tokens` tokens each for types, relations and names."""
        parts = description_of(self.tools).parts(self.question, tokens)
        shown = {name: cut_end(text, tokens) for name, text in parts.items()}
        return PROMPT.fill(question=self.question, language=LANGUAGE, **shown)

    def act(self, text: str, span: Any, *, is_last: bool) -> Answer | str:
        """Carry out the step of a reply. Return the answer, or the text to show to the model."""
        try:
            step = read_json(text, _Step)
            span.note(step=step.in_words(), thinking=step.thinking)
            if step.tool == "none":
                return self.not_found(step.text or step.thinking)
            if step.tool == "answer" or (is_last and step.tool == "query"):
                return self.conclude(step, is_last=is_last)
            observation = self.observe(step)
        except (InputError, ReplyError) as error:
            return cut_end(f"Error: {error}", self.result_tokens)
        for node, evidence in observation.seen.items():
            known = self.seen.setdefault(node, [])
            known += [piece for piece in evidence if piece not in known]
        return observation.text

    def observe(self, step: _Step) -> Observation:
        """Use a tool."""
        tools, only, limit = self.tools, step.only.strip() or None, self.result_tokens
        if step.tool == "search":
            return search_nodes(tools, step.text, only, k=HITS, tokens=limit)
        if step.tool == "show":
            return show_node(tools, _bare(step.text), only, NEIGHBOURS, self.question, limit)
        observation = query_nodes(tools, step.query, tokens=limit)
        self.queries.add(step.query)
        if observation.executed is not None and not observation.executed.is_empty:
            self.last = observation.executed
        return observation

    def conclude(self, step: _Step, *, is_last: bool) -> Answer | str:
        """Return the answer by a query or by keys, or a remark if it cannot be used and a step is left."""
        if step.query.strip():
            observation = query_nodes(self.tools, step.query, tokens=self.result_tokens)
            executed = observation.executed
            assert executed is not None
            is_doubtful = bool(executed.notes) and step.query not in self.queries  # a name is spelled otherwise
            if not is_last and (executed.is_empty or is_doubtful):
                self.queries.add(step.query)
                return f"{observation.text}\n{IF_MEANT if is_doubtful else 'No answer yet.'}"
            return self.by_query(executed, 0.0 if executed.is_empty else ALONE)
        keys = [*map(_bare, step.keys[:MOST_KEYS])]
        there = {ref.key for ref in self.tools.kb.refs(self.tools.kb.ids(keys)) if ref.id in self.seen}
        unseen = [key for key in keys if key not in there]
        if unseen and not is_last:
            return cut_end(f"Error: no result has shown {', '.join(unseen)}: search for them", self.result_tokens)
        if not there:
            raise ReplyError('the tool "answer" needs a query, or keys that results have shown')
        return self.by_nodes([key for key in dict.fromkeys(keys) if key in there], step.text)

    def by_query(self, executed: Executed, certainty: float) -> Answer:
        """Return the whole result of a query."""
        return replace(answer_query(self.tools.kb, self.question, executed), certainty=certainty)

    def by_nodes(self, keys: list[str], sentence: str) -> Answer:
        """Return nodes with what was seen of them. The sentence is shown if this evidence supports it."""
        kb = self.tools.kb
        candidates = [self._candidate(node, sentence) for node in kb.ids(keys)]
        sources = [Source(_text(one, kb.node(one.node.id).text), one.node.name) for one in candidates[:CITED]]
        claim = CitedClaim(sentence.strip(), tuple(range(len(sources))))
        [checked] = check_claims([claim], sources, self.tools.embedder)[0] if claim.text else [claim]
        answer = Answer(
            self.question, tuple(candidates), certainty=min(BY_TEXT, checked.support), answer_count=len(candidates)
        )
        if checked.support < SUPPORTED:
            note = f"left out, the evidence does not say this: “{claim.text}”"
            return replace(answer, notes=(note,) if claim.text else ())
        cited = [candidates[place] for place in checked.citations]
        marks = "".join(f"[{number}]" for number in range(1, len(cited) + 1))
        evidence = tuple(one.evidence[0] for one in cited if one.evidence)
        return replace(answer, text=f"{claim.text} {marks}", certainty=checked.support, evidence=evidence)

    def not_found(self, reason: str) -> Answer:
        """Return the nodes that were seen as close matches."""
        near = tuple(self._candidate(node, "", 0.0) for node in list(self.seen)[:NEAR])
        notes = (f"not in the base: {cut_end(reason, 100)}",) if reason else ()
        return Answer(self.question, near, certainty=0.0, answer_count=0, notes=notes)

    def stopped(self, why: str) -> Answer:
        """Return the last result of a query as a possible answer, or the nodes that were seen as close matches."""
        if self.last is None:
            return replace(self.not_found(""), notes=(f"stopped: {why}",))
        answer = self.by_query(self.last, BY_TEXT)
        return replace(answer, notes=(f"stopped: {why}; this is its last query", *answer.notes))

    def _candidate(self, node: int, sentence: str, score: float = 1.0) -> Candidate:
        content = self.tools.kb.node(node)
        facts = self.seen.get(node, [])
        quote = [most_telling(content, f"{self.question} {sentence}")] if content.text else []
        is_passage = bool(quote) and quote[0].file is not None  # its text says more than its neighbours
        evidence = (*quote, *facts) if is_passage else (*facts, *quote)
        return Candidate(self.tools.kb.refs([node])[0], score, evidence)


def _text(candidate: Candidate, text: str) -> str:
    """Return what a node says: its text if it is a part of a file, otherwise also its facts."""
    quoted = [piece for piece in candidate.evidence if isinstance(piece, Passage)]
    if quoted and quoted[0].file is not None:
        return text
    facts = [piece.in_words() for piece in candidate.evidence if not isinstance(piece, Passage)]
    return "\n".join([label(candidate.node), *facts, text])


def _bare(key: str) -> str:
    """Remove the brackets in which results show a key."""
    key = key.strip()
    return key[1:-1] if key.startswith("[") and key.endswith("]") else key
