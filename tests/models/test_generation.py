"""Several replies to one request: diverse beam search as a pure function, and with real networks where torch is."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.answering.roles.write import ModelWriter, different, read_brief
from clew.core.errors import InputError
from clew.models.generation import Hypothesis, NextTokens, diverse_beams
from clew.models.openai_chat import chat_body, read_chat_reply
from clew.models.protocol import Beams, Capabilities, Completion, Message, Request
from clew.models.reply_store import ReplyStore, canonical, digest
from clew.models.scripted import ScriptedModel

END = 0


def language(seed: int, words: int):
    """Log-probabilities of the next token after any tokens, made up but always the same."""

    def after(tokens):
        rng = np.random.default_rng([seed, *tokens])
        chances = rng.dirichlet(np.ones(words))
        return np.log(chances)

    return after


def search(after, beams: Beams, most: int, likely: int | None = None):
    """With `likely`, each row names only so many of its tokens, as a model on a GPU does."""
    kept = [()]

    def following():
        rows = np.stack([after(own) for own in kept])
        tokens = np.unique(np.argsort(-rows, axis=1)[:, :likely])
        return NextTokens(tokens, rows[:, tokens])

    def advance(parents, tokens):
        nonlocal kept
        kept = [(*kept[parent], token) for parent, token in zip(parents, tokens, strict=True)]
        return following()

    return diverse_beams(following(), advance, beams, frozenset({END}), most)


def everything(after, words: int, most: int):
    """Every reply of at most so many tokens, ended or cut off, by brute force."""
    found = []
    for length in range(1, most + 1):
        for tokens in itertools.product(range(1, words), repeat=length):
            score = sum(after(tokens[:place])[token] for place, token in enumerate(tokens))
            if length < most:
                found.append(Hypothesis(tokens, score + after(tokens)[END]))
            else:
                found.append(Hypothesis(tokens, score))
    return sorted(found, key=lambda one: (-one.mean, one.tokens))


@given(st.integers(0, 10_000))
def test_beams_wide_enough_find_every_reply_in_order(seed):
    after = language(seed, 4)
    found = search(after, Beams(width=200), 3)
    expected = everything(after, 4, 3)
    assert [one.tokens for one in found] == [one.tokens for one in expected][:200]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected][:200])


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 3), st.floats(0, 5))
def test_every_score_is_that_of_the_reply_whatever_the_penalty(seed, groups, each, penalty):
    after = language(seed, 6)
    found = search(after, Beams(groups * each, groups, penalty), 4)
    assert len({one.tokens for one in found}) == len(found) <= groups * each
    for one in found:
        score = sum(after(one.tokens[:place])[token] for place, token in enumerate(one.tokens))
        ended = score + after(one.tokens)[END]
        assert math.isclose(one.score, score) or math.isclose(one.score, ended)


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 3), st.floats(0, 5))
def test_the_likely_tokens_are_enough(seed, groups, each, penalty):
    after = language(seed, 40)
    beams = Beams(groups * each, groups, penalty)
    assert search(after, beams, 4, 3 * beams.width) == search(after, beams, 4)


def test_a_high_penalty_makes_every_group_begin_differently():
    after = language(3, 9)
    alike = {one.tokens[:1] for one in search(after, Beams(6, 6, 0.0), 3)}
    apart = {one.tokens[:1] for one in search(after, Beams(6, 6, 100.0), 3)}
    assert len(alike) == 1
    assert len(apart) == 6


REQUEST = Request((Message("user", "Capital of Norway?"),), n=3, temperature=0.8)


def test_an_endpoint_is_asked_for_n_replies_and_all_are_kept(tmp_path):
    assert chat_body(REQUEST, "m")["n"] == 3
    choices = [{"index": n, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
               for n, text in enumerate(["Oslo", "Bergen", "Oslo"])]  # fmt: skip
    reply = read_chat_reply({"choices": choices, "usage": {"prompt_tokens": 3, "completion_tokens": 4}})
    assert (reply.text, reply.others) == ("Oslo", ("Bergen", "Oslo"))
    store = ReplyStore(tmp_path / "replies.sqlite")
    store.put("key", reply)
    assert store.get(["key"])["key"].others == ("Bergen", "Oslo")


def test_a_request_for_one_reply_has_the_key_it_always_had():
    plain = Request((Message("user", "Capital of Norway?"),))
    assert "beams" not in canonical(plain, "m")
    assert digest(plain, "m") != digest(Request(plain.messages, n=2), "m")
    assert digest(plain, "m") != digest(Request(plain.messages, beams=Beams()), "m")


class SeveralAtOnce:
    """A server that gives as many replies as it is asked for."""

    name, context_tokens, capabilities = "several", 8192, Capabilities()

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    def complete(self, requests):
        return [Completion(self.texts[0], others=self.texts[1 : request.n]) for request in requests]


def test_samples_are_ordered_by_how_often_they_came_whoever_gives_them():
    many = SeveralAtOnce("Bergen.", "Oslo", "oslo", "Trondheim")
    single = ScriptedModel(lambda request: "Oslo" if request.seed % 2 else f"Town {request.seed}")
    assert ModelWriter(many, "samples").answers(["Capital of Norway?"], 4)[0].texts == ("Oslo", "Bergen", "Trondheim")
    assert ModelWriter(single, "samples").answers(["Capital of Norway?"], 4)[0].texts == ("Oslo", "Town 0", "Town 2")
    assert read_brief(Completion("“Oslo”.\nBecause it is.", others=("", "Bergen"))) == ("Oslo", "Bergen")
    assert different(["a", "B", "b"], 1, by_frequency=True) == ("B",)


def test_beams_are_refused_where_a_model_has_none():
    with pytest.raises(InputError, match="hf:FOLDER"):
        ModelWriter(ScriptedModel.saying("x"), "beams")


@pytest.fixture(scope="module", params=["causal", "seq2seq"])
def network(request, tmp_path_factory):
    """A tiny network with weights nobody trained, saved as transformers saves them."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = tmp_path_factory.mktemp(request.param)
    words = {word: place for place, word in enumerate(["</s>", "<pad>", "<unk>", *(f"w{n}" for n in range(17))])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    kept = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="</s>", pad_token="<pad>", unk_token="<unk>"
    )
    kept.save_pretrained(folder)
    torch.manual_seed(5)
    if request.param == "causal":
        config = transformers.GPTNeoXConfig(
            vocab_size=20, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
            eos_token_id=0, bos_token_id=0, pad_token_id=1, initializer_range=1.0,
        )  # fmt: skip
        transformers.GPTNeoXForCausalLM(config).save_pretrained(folder)
    else:
        config = transformers.T5Config(
            vocab_size=20, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, decoder_start_token_id=1,
            eos_token_id=0, pad_token_id=1, initializer_factor=5.0,
        )  # fmt: skip
        transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def test_beams_with_a_cache_find_what_beams_without_one_find(network):
    import torch

    from clew.models.batch_runner import LocalModel
    from clew.models.generation import _searched

    local = LocalModel(str(network))
    ids = local.tokenizer("w1 w2 w3", return_tensors="pt")["input_ids"]
    beams = Beams(6, 3, 0.5)
    request = Request((Message("user", "w1 w2 w3"),), max_tokens=5, n=6, beams=beams)

    def after(tokens):
        with torch.inference_mode():
            if local.is_seq2seq:
                start = torch.tensor([[local.model.config.decoder_start_token_id, *tokens]])
                logits = local.model(input_ids=ids, decoder_input_ids=start).logits
            else:
                logits = local.model(input_ids=torch.cat((ids, torch.tensor([tokens], dtype=ids.dtype)), 1)).logits
        return torch.log_softmax(logits[0, -1].float(), -1).numpy()

    with torch.inference_mode():
        found = _searched(local, ids, request)
    assert [tuple(tokens) for tokens in found] == [one.tokens for one in search(after, beams, 5)]


def test_a_model_in_this_process_gives_different_replies(network):
    from clew.models.local import HuggingFaceModel

    model = HuggingFaceModel(str(network))
    asked = (Message("user", "w1 w2 w3"),)
    searched, sampled, single = model.complete(
        [
            Request(asked, max_tokens=4, n=5, beams=Beams(5, 5, 100.0)),
            Request(asked, max_tokens=4, n=5, temperature=5.0),
            Request(asked, max_tokens=4),
        ]
    )
    for completion in (searched, sampled):
        assert completion.error is None
        assert len({completion.text, *completion.others}) > 1
    assert len({searched.text, *searched.others}) == 1 + len(searched.others)
    assert not single.others
    assert model.complete([Request(asked, max_tokens=4, n=5, temperature=5.0)])[0].others == sampled.others


def test_samples_are_drawn_as_if_each_had_read_the_prompt_and_come_as_often_as_they_were_drawn(network):
    import torch

    from clew.models.batch_runner import LocalModel
    from clew.models.generation import _sampled, several_replies

    local = LocalModel(str(network))
    request = Request((Message("user", "w1 w2 w3"),), max_tokens=4, n=6, temperature=2.0, seed=3)
    ids = local.tokenizer("w1 w2 w3", return_tensors="pt")["input_ids"]
    torch.manual_seed(3)
    plain = local.model.generate(
        input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=True, temperature=2.0,
        num_return_sequences=6, max_new_tokens=4, pad_token_id=1,
    )  # fmt: skip
    with torch.inference_mode():
        assert _sampled(local, ids, request) == plain[:, 1 if local.is_seq2seq else ids.shape[1] :].tolist()
    certain = several_replies(local, Request(request.messages, max_tokens=4, n=4, temperature=1e-4))
    assert certain.others == (certain.text,) * 3


def test_a_network_that_knows_nothing_writes_what_the_schema_allows(tmp_path):
    """Byte-level tokens and random weights: without the grammar not even a brace would come."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("llguidance")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    from clew.models.local import HuggingFaceModel

    letters = ["</s>", "<pad>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({letter: place for place, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    kept = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", pad_token="<pad>")
    kept.save_pretrained(tmp_path)
    torch.manual_seed(5)
    config = transformers.GPTNeoXConfig(
        vocab_size=len(letters), hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
        eos_token_id=0, bos_token_id=0, pad_token_id=1, initializer_range=1.0,
    )  # fmt: skip
    transformers.GPTNeoXForCausalLM(config).save_pretrained(tmp_path)
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "green"]}, "sure": {"type": "boolean"}},
        "required": ["colour", "sure"],
        "additionalProperties": False,
    }
    model = HuggingFaceModel(str(tmp_path))
    asked = (Message("user", "Which colour?"),)
    held, free = model.complete([Request(asked, schema=schema, max_tokens=60), Request(asked, max_tokens=20)])
    assert model.capabilities.json_schema
    assert json.loads(held.text)["colour"] in ("red", "green")
    assert isinstance(json.loads(held.text)["sure"], bool)
    assert "{" not in free.text
