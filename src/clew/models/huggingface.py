"""A model folder of the transformers library, in this process; needs torch and transformers (extra `train`)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock

from clew.errors import MissingExtraError, NotFoundError
from clew.models.batch_runner import LocalModel
from clew.models.chat_body import chat_body
from clew.models.protocol import Completion, Request, Usage


@dataclass(frozen=True)
class HuggingFaceModel:
    """Loads on first use; nothing constrains its replies, so the schema is put into the prompt in words."""

    spec: str
    """FOLDER, or FOLDER#file.gguf."""
    context_tokens: int = 8192
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self._folder.is_dir():
            raise NotFoundError(f"no folder {self._folder}: hf: needs a folder with a model")

    @property
    def _folder(self) -> Path:
        return Path(self.spec.partition("#")[0])

    @cached_property
    def name(self) -> str:
        """The folder's name and a hash of its files' names and sizes."""
        files = sorted((file.name, file.stat().st_size) for file in self._folder.iterdir() if file.is_file())
        mark = hashlib.sha256(repr((files, self.spec.partition("#")[2])).encode()).hexdigest()[:8]
        return f"hf:{self._folder.resolve().name}#{mark}"

    @cached_property
    def _model(self) -> LocalModel:
        try:
            return LocalModel(self.spec)
        except ImportError as missing:
            raise MissingExtraError(missing.name or "transformers", "train") from missing

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """All requests in batches of like length."""
        completions = [Completion("", error="not computed")] * len(requests)
        with self._lock:
            for place, reply in self._model.answer([chat_body(request, self.name) for request in requests]):
                if isinstance(reply, str):
                    completions[place] = Completion("", error=reply)
                    continue
                usage = Usage(reply.prompt_tokens, reply.completion_tokens, seconds=reply.seconds)
                alternatives = tuple(
                    {top["token"]: top["logprob"] for top in (*entry["top_logprobs"], entry)}
                    for entry in reply.logprobs
                )
                completions[place] = Completion(reply.text, usage, cut=reply.cut, logprobs=alternatives)
        return completions
