"""The network that reads a passage beside a question, and the teacher that it may learn from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clew.core.errors import InputError
from clew.models.embedding.words import DIMENSION
from clew.reading.encoders import Floats
from clew.training.reader.network import word_vectors

HEADS = 3
"""For every word: whether it tells, whether a short answer starts there, whether it ends there."""


def passage_network(torch: Any, encoder: Any) -> Any:
    """Relevance of the whole, and three numbers for every word."""

    class Passages(torch.nn.Module):  # type: ignore[misc]  # torch has no stubs here
        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder
            self.relevance, self.words = torch.nn.Linear(DIMENSION, 1), torch.nn.Linear(DIMENSION, HEADS)

        def forward(self, ids: Any, types: Any) -> tuple[Any, Any]:
            fed = {"input_ids": ids, "attention_mask": (ids != 0).long(), "token_type_ids": types}
            states = self.encoder(**fed).last_hidden_state
            return self.relevance(states[:, 0]).squeeze(-1).float(), self.words(states).float()

    return Passages()


def teacher_network(torch: Any, folder: Path) -> Any:
    """A cross-encoder with one score, in the same tokens; it gets heads for words, to be fine-tuned like the other."""
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True)
    words = len(word_vectors())
    if model.config.num_labels != 1 or model.config.vocab_size != words:
        raise InputError(
            f"the teacher in {folder} has {model.config.num_labels} outputs and {model.config.vocab_size} words: "
            f"it should be a cross-encoder with one output and the {words} words of uncased BERT"
        )

    class Teacher(torch.nn.Module):  # type: ignore[misc]  # torch has no stubs here
        def __init__(self) -> None:
            super().__init__()
            self.model, self.words = model, torch.nn.Linear(model.config.hidden_size, HEADS)
            model.get_input_embeddings().weight.requires_grad_(False)

        def forward(self, ids: Any, types: Any) -> tuple[Any, Any]:
            fed = {"input_ids": ids, "attention_mask": (ids != 0).long(), "token_type_ids": types}
            told = self.model(**fed, output_hidden_states=True)
            return told.logits[:, 0].float(), self.words(told.hidden_states[-1]).float()

    return Teacher()


def passage_heads(network: Any) -> dict[str, Floats]:
    """What lies on top of the encoder, under the names that the product knows."""
    parts = {"relevance": network.relevance.weight[0], "relevance_bias": network.relevance.bias}
    parts |= {"words": network.words.weight.T, "words_bias": network.words.bias}
    return {name: part.detach().float().cpu().numpy() for name, part in parts.items()}
