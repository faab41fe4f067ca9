"""A subgraph in words (Salnikov et al.): fact by fact, or as a model writes it.

linearize    deterministic Graph2Text: the facts one after another (algorithm 2)
highlight    marks the candidate's name in a text (section 4.4)
GraphWriter  a model writes sentences; a text that drops an entity or invents one is not used
rates        coverage and hallucination over many texts (table 3)
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clew.answering.methods.subgraph_reranking.subgraph import Subgraph
from clew.core import trace
from clew.core.errors import ReplyError
from clew.core.proper_names import proper_names
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, Prompt, ask
from clew.store.graph.protocol import KnowledgeBase

HIGHLIGHT = ("[unused1]", "[unused2]")
"""Tokens a sentence encoder has no meaning for yet: a fine-tuned ranker learns that they mark the candidate."""


def triples_in_words(kb: KnowledgeBase, subgraph: Subgraph) -> list[tuple[str, str, str]]:
    """Head, relation and tail by name: row by row over the labelled adjacency matrix, question entities first."""
    labels = relation_labels(kb)
    names = [ref.name for ref in kb.refs(subgraph.nodes)]
    heads, tails = subgraph.ends
    rows = sorted(zip(heads.tolist(), tails.tolist(), subgraph.edges.relations.tolist(), strict=True))
    return [(names[head], labels[kb.schema.relation_names[code]], names[tail]) for head, tail, code in rows]


def relation_labels(kb: KnowledgeBase) -> Mapping[str, str]:
    """How people call each relation."""
    return {relation.name: relation.label for relation in reversed(kb.schema.relations)}


def linearize(kb: KnowledgeBase, subgraph: Subgraph) -> str:
    """`head, relation, tail; head, relation, tail; …`; the names of the lone nodes where nothing is connected."""
    triples = triples_in_words(kb, subgraph)
    if not triples:
        return "; ".join(ref.name for ref in kb.refs(subgraph.nodes))
    return "; ".join(", ".join(triple) for triple in triples)


def highlight(text: str, name: str) -> str:
    """Every whole occurrence of the candidate's name between two marks; the marked name first where it is missing."""
    opening, closing = HIGHLIGHT
    marked, found = re.subn(
        rf"(?<!\w){re.escape(name)}(?!\w)", lambda match: f"{opening}{match[0]}{closing}", text, flags=re.IGNORECASE
    )
    return marked if found else f"{opening}{name}{closing}; {text}"


PROMPT = Prompt.load("clew.answering.methods.subgraph_reranking", "graph_to_text")
MOST_FACTS = 40
"""Facts put into words; the rest of a large subgraph stays unsaid, and entities it alone names are not missed."""
NUMBER = re.compile(r"(?<!\w)\d+(?:[.,:]\d+)*(?!\w)")


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """Which names a text keeps and which it invents."""

    entities: int
    missing: tuple[str, ...]
    strangers: tuple[str, ...]
    """Names and numbers that occur in no fact."""
    question_entities: tuple[int, int]
    """How many of the question entities the text keeps, and how many there are."""
    candidate: bool

    @property
    def faithful(self) -> bool:
        """Every entity and no stranger."""
        return not self.missing and not self.strangers


@dataclass(frozen=True, slots=True)
class WrittenGraph:
    """The text that is used, what the model wrote, and what the check found; the two differ after a fallback."""

    text: str
    written: str | None = None
    check: Faithfulness | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class FaithfulnessRates:
    """Shares over many texts: the paper's table 3, and how often something is invented."""

    texts: int
    coverage: float
    """Of all entities."""
    question_entities: float
    candidates: float
    hallucinated: float
    """Of the texts, those that name a stranger."""
    used: float
    """Of the texts, those that passed the check."""


@dataclass(frozen=True)
class GraphWriter:
    """Asks a model for each subgraph."""

    model: LanguageModel
    kb: KnowledgeBase

    def write(self, subgraphs: Sequence[Subgraph]) -> list[WrittenGraph]:
        """One text per subgraph, in order."""
        facts = [triples_in_words(self.kb, subgraph)[:MOST_FACTS] for subgraph in subgraphs]
        said = [place for place, own in enumerate(facts) if own]
        asks = [telling(facts[place]) for place in said]
        outcomes = dict(zip(said, ask(self.model, asks, role="write"), strict=True))
        written = []
        for place, subgraph in enumerate(subgraphs):
            plain = linearize(self.kb, subgraph)
            outcome = outcomes.get(place)
            if outcome is None:  # nothing is connected: there is nothing to say
                written.append(WrittenGraph(plain))
            elif outcome.value is None:
                written.append(WrittenGraph(plain, problem=outcome.problem))
            else:
                check = check_text(self.kb, subgraph, facts[place], outcome.value)
                problem = None if check.faithful else _problem(check)
                written.append(WrittenGraph(plain if problem else outcome.value, outcome.value, check, problem))
            if written[-1].problem is not None:
                trace.fallback("graph to text", written[-1].problem, "the facts one after another")
        return written


def check_text(kb: KnowledgeBase, subgraph: Subgraph, facts: Sequence[tuple[str, str, str]], text: str) -> Faithfulness:
    """Which of the entities that the facts name occur in the text, and what occurs in it that they do not name."""
    named, kept = names_in(facts), names_kept(facts, text)
    names = {ref.id: ref.name for ref in kb.refs([*subgraph.entities, subgraph.candidate])}
    asked = [names[entity] for entity in subgraph.entities if names[entity] in named]
    labels = relation_labels(kb).values()
    return Faithfulness(
        entities=len(named),
        missing=tuple(sorted(named - kept)),
        strangers=strangers_in(text, [*named, *labels, *(kind.label for kind in kb.schema.node_types)]),
        question_entities=(sum(name in kept for name in asked), len(asked)),
        candidate=names[subgraph.candidate] in kept,
    )


def names_in(facts: Sequence[tuple[str, str, str]]) -> set[str]:
    """The entities of some facts."""
    return {name for head, _, tail in facts for name in (head, tail)}


def names_kept(facts: Sequence[tuple[str, str, str]], text: str) -> set[str]:
    """Those that occur in a text as they are spelled, in upper or lower case."""
    plain = _plain(text)
    return {name for name in names_in(facts) if _occurs(_plain(name), plain)}


def strangers_in(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """Names and numbers in a text with a word that is none of those known."""
    words = _words(" ".join(known))
    found = [name.text for name in proper_names(text)] + NUMBER.findall(text)
    return tuple(dict.fromkeys(name for name in found if not _words(name) <= words))


def rates(checks: Sequence[Faithfulness]) -> FaithfulnessRates:
    """Coverage and hallucination over many texts."""
    entities = sum(check.entities for check in checks)
    asked = sum(check.question_entities[1] for check in checks)
    count = max(len(checks), 1)
    return FaithfulnessRates(
        texts=len(checks),
        coverage=1 - sum(len(check.missing) for check in checks) / max(entities, 1),
        question_entities=sum(check.question_entities[0] for check in checks) / max(asked, 1),
        candidates=sum(check.candidate for check in checks) / count,
        hallucinated=sum(bool(check.strangers) for check in checks) / count,
        used=sum(check.faithful for check in checks) / count,
    )


def telling(facts: Sequence[tuple[str, str, str]]) -> Ask[str]:
    """Asks for the sentences that state some facts."""
    shown = "\n".join(" | ".join(fact) for fact in facts)
    return Ask(PROMPT.fill(facts=shown), _read, max_tokens=min(1500, 120 + 40 * len(facts)))


def _read(completion: Completion) -> str:
    text = " ".join(completion.text.split())
    if not text:
        raise ReplyError("the reply is empty")
    return text


def _problem(check: Faithfulness) -> str:
    faults = {"leaves out": check.missing, "invents": check.strangers}
    return "the written text " + " and ".join(f"{what} {', '.join(own[:3])}" for what, own in faults.items() if own)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().replace("’", "'").split())


def _occurs(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", _plain(text)))
