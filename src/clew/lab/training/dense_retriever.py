"""Train STaRK's Dense Retriever: one encoder for questions, one for node documents (DPR, Karpukhin et al., 2020).

1  examples: a question, the nodes that answer it, and up to 20 false positives of vector search
2  training: both encoders start equal; a question should be closer to its document than to all others of the batch
3  files: two int8 encoders over the shipped word vectors, as an embedder folder with a card

Deviations from the paper: mean-pooled MiniLM instead of RoBERTa, whose weights are not in a package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from clew.core.errors import InputError
from clew.lab.training.exporting import export_encoder
from clew.lab.training.gradient import Contrast, ContrastSettings, Descent, TokenisedQuestion
from clew.lab.training.networks import EncoderSize, open_torch, start_card, start_encoder, word_table
from clew.models.embedding.onnx import CHARACTERS_PER_TOKEN, ENCODER, QUESTIONS, open_tokenizer
from clew.models.model_card import digest_of_files, write_card

LONGEST = 256
"""Maximum number of tokens of a question or a document."""
AT_ONCE_WITHOUT_GPU = 8
"""Number of questions per forward pass on a CPU. More would need tens of gigabytes."""


@dataclass(frozen=True)
class DenseSettings(ContrastSettings):
    """Training settings. `size` is for randomly initialised encoders, for quick trials."""

    epochs: int = 8
    rate: float = 5e-5
    questions: int = 32
    at_once: int = 32
    wrong: int = 5
    hard: int = 20
    seed: int = 0
    size: EncoderSize | None = None


@dataclass(frozen=True, slots=True)
class Labelled:
    """A question, its answer nodes, and false positives of vector search."""

    question: str
    right: tuple[int, ...]
    wrong: tuple[int, ...]


def fit_dense(
    labelled: Sequence[Labelled],
    text: Callable[[int], str],
    out: Path,
    settings: DenseSettings,
    card: dict[str, Any],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Train on all questions and write the weights. Return their card with the loss of each epoch."""
    torch = open_torch()
    if not labelled:
        raise InputError("no question has an answer among the nodes: nothing to train on")
    tokenizer = open_tokenizer(LONGEST)

    def tokens(read: str) -> list[int]:
        ids: list[int] = tokenizer.encode(read[: LONGEST * CHARACTERS_PER_TOKEN]).ids
        return ids

    nodes = sorted({node for one in labelled for node in (*one.right, *one.wrong)})
    place = {node: at for at, node in enumerate(nodes)}
    asked = [
        TokenisedQuestion(
            tokens(one.question), [place[node] for node in one.right], [place[node] for node in one.wrong]
        )
        for one in labelled
    ]
    descent = Descent.start(torch, settings.seed, say)
    of_questions, of_texts = (start_encoder(torch, settings.size).to(descent.device) for _ in range(2))
    if settings.size is not None:  # start with equal weights, like loaded encoders
        of_questions.load_state_dict(of_texts.state_dict())
    at_once = settings.at_once if descent.device == "cuda" else min(settings.at_once, AT_ONCE_WITHOUT_GPU)
    settings = replace(settings, at_once=at_once)
    losses = Contrast(settings, descent, asked, [tokens(text(node)) for node in nodes], of_questions, of_texts).fit()
    out.mkdir(parents=True, exist_ok=True)
    digests = {}
    for key, encoder, name in (("digest", of_texts, ENCODER), (QUESTIONS, of_questions, f"{QUESTIONS}.onnx")):
        export_encoder(torch, encoder, out / name, is_pooled=True)
        digests[key] = digest_of_files(out, [name])
    whole = card | {
        "words": word_table(),
        **digests,
        "start": start_card(),
        "settings": asdict(settings),
        "losses": losses,
    }
    write_card(out, whole)
    return whole
