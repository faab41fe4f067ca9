"""A language model is fine-tuned from lessons, written as `hf:` opens it, measured, and used."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.answering.methods.subgraph_reranking.graph_to_text import telling
from clew.answering.roles.write import ModelWriter, UncoveredPart, next_reply
from clew.core.errors import CorruptError, FormatError, InputError, NotFoundError, SourceError
from clew.core.roles import Draft
from clew.lab.datasets.load import load_dataset
from clew.lab.training import graph_to_text, traverser
from clew.lab.training.fine_tuning import Course
from clew.lab.training.graph_to_text import WrittenFacts, bleu, read_told
from clew.lab.training.language import (
    LORA,
    ChatExample,
    LanguageDescent,
    LanguageSettings,
    Lora,
    batches,
    open_language_model,
    tokenised,
)
from clew.models.embedding.opening import HashEmbedder
from clew.models.local import HuggingFaceModel
from clew.models.scripted import ScriptedModel
from clew.models.structured import ask

ADA = {"triples": [["Ada_Lovelace", "bornIn", '"Paris, Texas"']], "text": "Ada Lovelace was born in Paris, Texas."}
DUNE = {
    "_id": "dune",
    "question": "Where was the author of Dune born?",
    "answer": "Tacoma",
    "context": [
        ["Dune (novel)", ["Dune is a novel.", " It is by Frank Herbert."]],
        ["Frank Herbert", ["He was born in Tacoma.", " He wrote."]],
        ["Sand", ["Sand is a stuff."]],
    ],
    "supporting_facts": [["Frank Herbert", 0], ["Dune (novel)", 1]],
}
TEMPLATE = "{% for one in messages %}{{ one['role'] }}: {{ one['content'] }}\n{% endfor %}reply: "


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A tiny model with weights that nobody trained, and a tokenizer of its own."""
    for package in ("torch", "transformers"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'clew-kb[train]'")
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "start"
    pieces = ByteLevelBPETokenizer()
    lessons = graph_to_text.lessons_from([WrittenFacts((("a", "b", "c"),), ("a c",))])
    texts = [part["content"] for one in lessons for part in one.messages] + [json.dumps(ADA), json.dumps(DUNE)]
    pieces.train_from_iterator(texts, vocab_size=600, min_frequency=1, special_tokens=["<end>"], show_progress=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=pieces._tokenizer, eos_token="<end>", pad_token="<end>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.set_num_threads(1)  # for so little, more threads only wait for each other
    torch.manual_seed(0)
    shape = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    end = tokenizer.eos_token_id
    config = LlamaConfig(vocab_size=len(tokenizer), bos_token_id=None, eos_token_id=end, pad_token_id=end, **shape)
    model = LlamaForCausalLM(config)
    model.lm_head.weight.data *= 50  # the last layer is not trained, and has to be able to say something clearly
    model.save_pretrained(folder)
    return str(folder)


def quick(**settings):
    return LanguageSettings(**{"epochs": 10, "rate": 1e-2, "batch": 4, **settings})


def written(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return path


@pytest.mark.filterwarnings("ignore")
def test_graphs_are_told_by_a_model_that_was_trained_from_nothing(start, tmp_path):
    from safetensors.torch import load_file

    file = written(tmp_path / "told.jsonl", [ADA] * 20)
    out = tmp_path / "out"
    course = Course(start, out, "0/10", "CC0", quick(), lambda _: None)
    figures = graph_to_text.train_graph_to_text([file], course, [file])
    assert figures["left out, after: used"] == 1.0 > figures["left out, before: used"]
    assert figures["told.jsonl, after: bleu"] == pytest.approx(1.0)
    card = json.loads((out / "card.json").read_text())
    assert (card["usable"], card["licence"], card["figures"]["after"]["trained on"]["n"]) == (True, "CC0", 18)
    [fact] = read_told(file)[0].facts
    assert fact == ("Ada Lovelace", "born in", "Paris, Texas")
    [outcome] = ask(HuggingFaceModel(str(out)), [telling([fact])], role="write")
    assert outcome.value == ADA["text"]
    assert not [*out.glob("*.bin"), *out.glob("steps")]

    again = dict(HuggingFaceModel(str(out))._model.model.named_parameters())
    scale = course.tuning.alpha / course.tuning.rank
    kept = load_file(out / LORA)  # what travels is small: the start and the thin matrices are the same model
    for name, part in open_language_model(start).model.named_parameters():
        layer = name.removesuffix(".weight")
        thin = kept[f"{layer}.up"].float() @ kept[f"{layer}.down"].float() if f"{layer}.up" in kept else 0
        assert abs(part + scale * thin - again[name]).max() < 0.02, name

    weights = out / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    with pytest.raises(CorruptError, match="not those"):
        HuggingFaceModel(str(out)).complete([telling([fact]).request()])


@pytest.mark.filterwarnings("ignore")
def test_the_next_evidence_is_written_by_a_model_that_was_trained_from_nothing(start, tmp_path):
    trap = ["Birth", ["Where was the author of Dune born?"]]
    asked = DUNE | {"context": [*DUNE["context"], trap]}  # near to the words of the question, and no support
    file = written(tmp_path / "questions.jsonl", [asked | {"_id": str(number)} for number in range(6)])
    out = tmp_path / "out"
    course = Course(start, out, "0/6", tuning=quick(epochs=30), say=lambda _: None)
    figures = traverser.train_traverser([f"hotpotqa:{file}"], course)
    assert figures["left out, after: next_passage_first"] > figures["left out, before: next_passage_first"]
    writer = ModelWriter(HuggingFaceModel(str(out)))
    [one] = writer.next_evidence([Draft(DUNE["question"], ("Dune is a novel. It is by Frank Herbert.",))])
    assert one.texts == ("Frank Herbert: He was born in Tacoma.",)


def test_a_model_that_gained_nothing_is_not_used(start, tmp_path):
    file = written(tmp_path / "told.jsonl", [ADA] * 4)
    tuning = LanguageSettings(epochs=1, rate=1e-9)
    figures = graph_to_text.train_graph_to_text([file], Course(start, tmp_path / "out", "0/2", "", tuning, str))
    assert not figures["usable"]
    with pytest.raises(InputError, match="no better"):
        HuggingFaceModel(str(tmp_path / "out")).complete([telling([("a", "b", "c")]).request()])
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    (tmp_path / "out" / "card.json").write_text(json.dumps(card | {"format": 99}))
    with pytest.raises(FormatError, match="99"):
        HuggingFaceModel(str(tmp_path / "out")).complete([telling([("a", "b", "c")]).request()])


def test_a_run_that_was_stopped_ends_as_one_that_was_not(start, tmp_path):
    lessons = [ChatExample(({"role": "user", "content": f"number {n}"},), f"{n} is {n}") for n in range(20)]

    def trained(folder, **settings):
        local = open_language_model(start)
        told = tokenised(local, lessons, 100)
        tuning = LanguageSettings(**{"epochs": 3, "batch": 4, **settings})
        return LanguageDescent(local, told, tuning, folder, lambda _: None).run()

    class StopError(Exception):
        pass

    def stop_at(step):
        def say(text):
            if text.startswith(f"step {step} "):
                raise StopError

        return say

    whole, losses = trained(tmp_path / "whole")
    local = open_language_model(start)
    told = tokenised(local, lessons, 100)
    with pytest.raises(StopError):
        LanguageDescent(local, told, LanguageSettings(3, batch=4, keep_every=0), tmp_path / "parts", stop_at(9)).run()
    again, resumed = trained(tmp_path / "parts")
    assert len(losses) == len(resumed) == 15
    assert resumed == pytest.approx(losses, rel=1e-4)
    for name, part in whole.weights.items():
        assert abs(part - again.weights[name]).max() < 1e-5
    _, other = trained(tmp_path / "parts", seed=1)  # of another run: begun anew
    assert other != pytest.approx(losses, rel=1e-4)


def test_the_loss_counts_the_reply_alone(start, tmp_path):
    import torch

    local = open_language_model(start)
    lessons = [ChatExample(({"role": "user", "content": "a" * n},), "b" * (9 - n)) for n in (1, 5)]
    told = tokenised(local, lessons, 100)
    descent = LanguageDescent(local, told, LanguageSettings(), tmp_path, lambda _: None)
    by_hand = 0.0
    for one in told:
        logits = local.model(torch.tensor([one.prompt + one.reply])).logits[0].log_softmax(-1)
        by_hand -= sum(float(logits.detach()[len(one.prompt) - 1 + at, token]) for at, token in enumerate(one.reply))
    assert float(descent._loss(told).detach()) == pytest.approx(by_hand, rel=1e-4)


def test_thin_matrices_change_nothing_at_first(start):
    import torch

    local = open_language_model(start)
    ids = torch.tensor([[5, 6, 7]])
    before = local.model(ids).logits
    lora = Lora(local.model, 4, 8.0)
    assert torch.equal(local.model(ids).logits, before)
    torch.nn.init.ones_(lora.weights["model.layers.0.mlp.up_proj.up"])
    changed = local.model(ids).logits
    lora.merge()
    assert not torch.allclose(changed, before)
    assert torch.allclose(local.model(ids).logits, changed, atol=0.2)


def test_what_is_missing_is_said(start, tmp_path, run):
    with pytest.raises(NotFoundError, match="no folder"):
        open_language_model(str(tmp_path / "nowhere"))
    file = written(tmp_path / "told.jsonl", [ADA | {"text": "She was born there."}])
    with pytest.raises(InputError, match="keeps the spelling"):
        graph_to_text.lessons_from(read_told(file))
    with pytest.raises(SourceError, match="triples"):
        read_told(written(tmp_path / "wrong.jsonl", [{"text": "no facts"}]))
    single = DUNE | {"supporting_facts": [["Sand", 0]]}
    with pytest.raises(InputError, match="two supporting passages"):
        traverser.lacking_in(load_dataset(f"hotpotqa:{written(tmp_path / 'one.jsonl', [single])}"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    code, _, told = run("train", "graph_to_text", file, "--model", start, "--out", tmp_path / "full")
    assert (code, "mine.txt" in told) == (2, True)


def test_lessons_of_the_next_evidence_go_from_what_is_found_to_what_is_missing(tmp_path):
    [states] = traverser.lacking_in(load_dataset(f"hotpotqa:{written(tmp_path / 'q.jsonl', [DUNE])}")).values()
    seen = {tuple(one.title for one in state.found): state.says for state in states}
    assert seen == {
        ("Dune (novel)",): "Frank Herbert: He was born in Tacoma.",
        ("Frank Herbert",): "Dune (novel): It is by Frank Herbert.",
        ("Sand",): "Dune (novel): It is by Frank Herbert.",
        ("Dune (novel)", "Sand"): "Frank Herbert: He was born in Tacoma.",
        ("Dune (novel)", "Frank Herbert"): "",
    }
    lessons = traverser.lessons_from(states)
    assert json.loads(lessons[0].reply) == {"enough": False, "next": "Frank Herbert: He was born in Tacoma."}
    assert json.loads(lessons[-1].reply) == {"enough": True, "next": ""}
    sent = []

    def reply(request):
        sent.append(tuple({"role": one.role, "content": one.content} for one in request.messages))
        return lessons[len(sent) - 1].reply

    written_by = ModelWriter(ScriptedModel(reply)).next_evidence([one.draft for one in states])
    assert sent == [lesson.messages for lesson in lessons]  # what is learned is what is sent
    assert [one.texts[0] if one.texts else "" for one in written_by] == [one.says for one in states]


def test_writing_is_measured_by_the_passage_it_is_nearest_to(tmp_path):
    embedder = HashEmbedder()
    [states] = traverser.lacking_in(load_dataset(f"hotpotqa:{written(tmp_path / 'q.jsonl', [DUNE])}")).values()
    says = iter([one.says for one in states])
    right = ModelWriter(ScriptedModel(lambda _: next_reply(next(says))))
    assert traverser.measure(states, right, embedder) == {
        "next_passage_first": 1.0,
        "enough_said": 1.0,
        "stopped_early": 0.0,
    }
    assert traverser.measure(states, UncoveredPart(), embedder)["next_passage_first"] <= 1.0


@given(st.lists(st.integers(1, 500), max_size=300), st.integers(1, 40), st.integers(0, 9))
def test_every_lesson_is_in_one_batch(lengths, size, seed):
    found = batches(lengths, size, random.Random(seed))
    assert sorted(place for batch in found for place in batch) == list(range(len(lengths)))
    assert all(1 <= len(batch) <= size for batch in found)


def test_bleu_is_that_of_the_paper():
    assert bleu(["the cat is on the mat"], [["the cat is on the mat", "a cat sat"]]) == pytest.approx(1.0)
    assert bleu(["the the the the"], [["the cat is here"]]) == 0.0
    # 5/6 words, 3/5 pairs, 2/4 threes, 1/3 fours; as long as the reference
    told = bleu(["the cat sat on the mat"], [["the cat is on the mat"]])
    assert told == 0.0  # no run of four words is right
    longer = bleu(["a b c d e x"], [["a b c d e f"]])
    assert longer == pytest.approx((5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25)
    assert bleu(["a b c d"], [["a b c d e f"]]) == pytest.approx(2.718281828 ** (1 - 6 / 4))  # too short
