"""Convert a subgraph to text (Salnikov et al.): fact by fact, or by a model.

linearize    deterministic Graph2Text: a list of the facts (algorithm 2)
highlight    marks the candidate's name in a text (section 4.4)
GraphWriter  a model writes sentences. Texts that omit or invent an entity are rejected
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
"""Unused tokens of the sentence encoder. A fine-tuned ranker learns that they mark the candidate."""


def triples_in_words(kb: KnowledgeBase, subgraph: Subgraph) -> list[tuple[str, str, str]]:
    """Return head, relation and tail by name, row by row over the adjacency matrix, question entities first."""
    labels = relation_labels(kb)
    names = [ref.name for ref in kb.refs(subgraph.nodes)]
    heads, tails = subgraph.ends
    rows = sorted(zip(heads.tolist(), tails.tolist(), subgraph.edges.relations.tolist(), strict=True))
    return [(names[head], labels[kb.schema.relation_names[code]], names[tail]) for head, tail, code in rows]


def relation_labels(kb: KnowledgeBase) -> Mapping[str, str]:
    """Return the label of each relation."""
    return {relation.name: relation.label for relation in reversed(kb.schema.relations)}


def linearize(kb: KnowledgeBase, subgraph: Subgraph) -> str:
    """Return `head, relation, tail; head, relation, tail; …`, or the names of the nodes if there are no edges."""
    triples = triples_in_words(kb, subgraph)
    if not triples:
        return "; ".join(ref.name for ref in kb.refs(subgraph.nodes))
    return "; ".join(", ".join(triple) for triple in triples)


def highlight(text: str, name: str) -> str:
    """Mark every whole occurrence of the candidate's name. If it is missing, prepend the marked name."""
    opening, closing = HIGHLIGHT
    marked, found = re.subn(
        rf"(?<!\w){re.escape(name)}(?!\w)", lambda match: f"{opening}{match[0]}{closing}", text, flags=re.IGNORECASE
    )
    return marked if found else f"{opening}{name}{closing}; {text}"


PROMPT = Prompt.load("clew.answering.methods.subgraph_reranking", "graph_to_text")
MOST_FACTS = 40
"""Maximum number of facts in a text. The check ignores entities of the remaining facts."""
NUMBER = re.compile(r"(?<!\w)\d+(?:[.,:]\d+)*(?!\w)")


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """Names that a text contains, omits or invents."""

    entities: int
    missing: tuple[str, ...]
    strangers: tuple[str, ...]
    """Names and numbers that occur in no fact."""
    question_entities: tuple[int, int]
    """Number of question entities in the text, and in the facts."""
    candidate: bool

    @property
    def faithful(self) -> bool:
        """Whether the text has all entities and no invented names."""
        return not self.missing and not self.strangers


@dataclass(frozen=True, slots=True)
class WrittenGraph:
    """The final text, the model's text, and the check. The two texts differ after a fallback."""

    text: str
    written: str | None = None
    check: Faithfulness | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class FaithfulnessRates:
    """Shares over many texts: the paper's table 3, and the share of texts with invented names."""

    texts: int
    coverage: float
    """Share of all entities that the texts contain."""
    question_entities: float
    candidates: float
    hallucinated: float
    """Share of the texts with an invented name or number."""
    used: float
    """Share of the texts that passed the check."""


@dataclass(frozen=True)
class GraphWriter:
    """Asks a model for the text of each subgraph."""

    model: LanguageModel
    kb: KnowledgeBase

    def write(self, subgraphs: Sequence[Subgraph]) -> list[WrittenGraph]:
        """Return one text per subgraph, in order."""
        facts = [triples_in_words(self.kb, subgraph)[:MOST_FACTS] for subgraph in subgraphs]
        said = [place for place, own in enumerate(facts) if own]
        asks = [telling(facts[place]) for place in said]
        outcomes = dict(zip(said, ask(self.model, asks, role="write"), strict=True))
        written = []
        for place, subgraph in enumerate(subgraphs):
            plain = linearize(self.kb, subgraph)
            outcome = outcomes.get(place)
            if outcome is None:  # no edges: there are no facts to write
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
    """Check which entities of the facts occur in the text, and which names in it are invented."""
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
    """Return the entities of facts."""
    return {name for head, _, tail in facts for name in (head, tail)}


def names_kept(facts: Sequence[tuple[str, str, str]], text: str) -> set[str]:
    """Return the entities that occur in a text, ignoring case."""
    plain = _plain(text)
    return {name for name in names_in(facts) if re.search(rf"(?<!\w){re.escape(_plain(name))}(?!\w)", plain)}


def strangers_in(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the names and numbers in a text that contain an unknown word."""
    words = _words(" ".join(known))
    found = [name.text for name in proper_names(text)] + NUMBER.findall(text)
    return tuple(dict.fromkeys(name for name in found if not _words(name) <= words))


def rates(checks: Sequence[Faithfulness]) -> FaithfulnessRates:
    """Return coverage and hallucination over many texts."""
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
    """Create a request for sentences that state the facts."""
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


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", _plain(text)))
