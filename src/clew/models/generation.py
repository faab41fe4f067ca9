"""Several replies to one request from a local model, by sampling or diverse beam search.

Vijayakumar et al.: Diverse Beam Search for Improved Description of Complex Scenes, 2018. The transformers library
no longer has it. This search only needs log-probabilities of the next token, not the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.models.batch_runner import LocalModel, end_tokens
from clew.models.protocol import Beams, Completion, Request, Usage

LogProbs = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class NextTokens:
    """Log-probabilities of the next token, one row per beam. Tokens too unlikely for any beam may be missing."""

    tokens: NDArray[np.int64]
    """Token ids in ascending order."""
    log_probs: LogProbs


Advance = Callable[[Sequence[int], Sequence[int]], NextTokens]
"""Takes the parent of each live beam among the previous beams, and its last token. Returns the next tokens."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A reply as tokens without the end token, and its log-probability."""

    tokens: tuple[int, ...]
    score: float

    @property
    def mean(self) -> float:
        """Mean per token including the end token, so that long replies have no disadvantage."""
        return self.score / (len(self.tokens) + 1)


def diverse_beams(
    first: NextTokens, advance: Advance, beams: Beams, ends: frozenset[int], most_tokens: int
) -> list[Hypothesis]:
    """Return the best distinct replies, best first. `first` has one row.

    At every step the groups choose in turn, and a token costs `penalty` for each beam of an earlier group that has just
    taken it. The penalty affects the choice of beams, but not the score of a reply.
    """
    each = max(1, beams.width // max(1, beams.groups))
    live: list[list[tuple[Hypothesis, int]]] = [[(Hypothesis((), 0.0), 0)] for _ in range(max(1, beams.groups))]
    finished: list[dict[tuple[int, ...], Hypothesis]] = [{} for _ in live]
    rows = first
    for length in range(1, most_tokens + 1):
        taken = np.zeros(len(rows.tokens))
        grown: list[list[tuple[Hypothesis, int]]] = []
        for group, own in enumerate(live):
            chosen = _grown(own, rows, beams.penalty * taken, ends, each, finished[group])
            for hypothesis, _ in chosen:
                taken[np.searchsorted(rows.tokens, hypothesis.tokens[-1])] += 1
            grown.append(chosen if len(finished[group]) < each else [])
        live = grown
        flat = [pair for own in live for pair in own]
        if not flat or length == most_tokens:
            break
        rows = advance([parent for _, parent in flat], [hypothesis.tokens[-1] for hypothesis, _ in flat])
        places = count()
        live = [[(hypothesis, next(places)) for hypothesis, _ in own] for own in live]
    found: dict[tuple[int, ...], Hypothesis] = {}
    for group, own in enumerate(live):
        for hypothesis in (*finished[group].values(), *(one for one, _ in own)):
            found.setdefault(hypothesis.tokens, hypothesis)
    return sorted(found.values(), key=lambda one: (-one.mean, one.tokens))[: beams.width]


def _grown(
    own: Sequence[tuple[Hypothesis, int]],
    rows: NextTokens,
    penalty: LogProbs,
    ends: frozenset[int],
    each: int,
    finished: dict[tuple[int, ...], Hypothesis],
) -> list[tuple[Hypothesis, int]]:
    """Return the best continuations of a group, and add ended replies to `finished`."""
    if not own:
        return []
    plain = np.stack([hypothesis.score + rows.log_probs[place] for hypothesis, place in own])
    judged = (plain - penalty).ravel()
    most = min(len(judged), each + len(ends) * len(own))
    best = np.argpartition(-judged, most - 1)[:most]
    chosen = []
    for flat in best[np.lexsort((best, -judged[best]))].tolist():
        row, column = divmod(flat, len(rows.tokens))
        parent, place = own[row]
        token, score = int(rows.tokens[column]), float(plain[row, column])
        if token in ends:
            if parent.tokens:  # skip empty replies
                finished.setdefault(parent.tokens, Hypothesis(parent.tokens, score))
        elif np.isfinite(score):
            chosen.append((Hypothesis((*parent.tokens, token), score), place))
        if len(chosen) == each:
            break
    return chosen


def several_replies(local: LocalModel, request: Request) -> Completion:
    """Return up to `n` replies of a loaded model: distinct replies by beam search if requested, else samples."""
    import torch

    begun = time.perf_counter()
    text = local.prompt([{"role": one.role, "content": one.content} for one in request.messages])
    prompt = local.tokenizer(text, add_special_tokens=local.is_seq2seq, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        ids = prompt.to(local.device)
        found = _searched(local, ids, request) if request.beams else _sampled(local, ids, request)
    decoded = (local.tokenizer.decode(tokens, skip_special_tokens=True).strip() for tokens in found)
    texts = [text for text in decoded if text]
    if request.beams:  # different tokens may decode to equal texts. Samples keep repetitions
        texts = list(dict.fromkeys(texts))
    texts = texts[: request.n]
    usage = Usage(int(prompt.shape[1]), sum(map(len, found)), seconds=time.perf_counter() - begun)
    if not texts:
        return Completion("", usage, error="the model's reply is empty")
    return Completion(texts[0], usage, others=tuple(texts[1:]))


def _sampled(local: LocalModel, ids: Any, request: Request) -> list[list[int]]:
    import torch

    torch.manual_seed(request.seed or 0)
    rows = ids.repeat(request.n, 1)
    read: dict[str, Any] = {}
    if not local.is_seq2seq:  # process the prompt once for all samples, except its last token
        read["past_key_values"] = local.model(input_ids=ids[:, :-1], use_cache=True).past_key_values
        read["past_key_values"].batch_repeat_interleave(request.n)
    written = local.model.generate(
        input_ids=rows,
        attention_mask=torch.ones_like(rows),
        do_sample=True,
        temperature=request.temperature or 1.0,
        max_new_tokens=request.max_tokens,
        pad_token_id=local.tokenizer.pad_token_id,
        **read,
    )
    before = 1 if local.is_seq2seq else ids.shape[1]
    return [list(row[before:].tolist()) for row in written]


def _searched(local: LocalModel, ids: Any, request: Request) -> list[list[int]]:
    import torch

    assert request.beams is not None
    model = local.model
    fixed: dict[str, Any] = {}
    if local.is_seq2seq:
        fixed["encoder_outputs"] = model.get_encoder()(input_ids=ids)
        ids = torch.tensor([[model.config.decoder_start_token_id]], device=local.device)
    name = "decoder_input_ids" if local.is_seq2seq else "input_ids"
    state = model(**{name: ids}, use_cache=True, **fixed)
    cache = state.past_key_values

    def advance(parents: Sequence[int], tokens: Sequence[int]) -> NextTokens:
        nonlocal cache
        cache.reorder_cache(torch.tensor(parents, device=local.device))
        more = {}
        if local.is_seq2seq:
            more["encoder_outputs"] = (fixed["encoder_outputs"][0][:1].expand(len(parents), -1, -1),)
        fed = torch.tensor(tokens, device=local.device).reshape(-1, 1)
        state = model(**{name: fed}, past_key_values=cache, use_cache=True, **more)
        cache = state.past_key_values
        return _next_tokens(state.logits[:, -1], most)

    kept = frozenset(end_tokens(model, local.tokenizer))
    most = (2 + len(kept)) * request.beams.width  # continuations, penalised continuations, and end tokens
    first = _next_tokens(state.logits[:1, -1], most)
    hypotheses = diverse_beams(first, advance, request.beams, kept, request.max_tokens)
    return [list(one.tokens) for one in hypotheses]


def _next_tokens(logits: Any, most: int) -> NextTokens:
    """Return the tokens among the `most` likely of any row, selected on the model's device."""
    import torch

    log_probs = torch.log_softmax(logits.float(), dim=-1)
    tokens = torch.unique(torch.topk(log_probs, min(most, log_probs.shape[-1]), dim=-1).indices)
    return NextTokens(tokens.cpu().numpy(), log_probs[:, tokens].cpu().numpy())
