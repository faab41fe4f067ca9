"""The reader is trained on schemas with questions, and written as it is opened."""

import json
import random

import numpy as np
import pytest

from clew.answering.reading.encoders import Encoders
from clew.answering.reading.query_tokens import CODES, WORDS, Terms
from clew.answering.reading.query_writer import QueryWriter, SchemaText
from clew.core.errors import SourceError
from clew.lab.training.reader.choice import answered_schemas, has_answered, read_answered
from clew.lab.training.reader.examples import normal, read_sources
from clew.lab.training.reader.fitting import word_tokens
from clew.lab.training.reader.writer import Readings, written_examples
from clew.models.embedding.onnx import DIMENSION

SCHEMAS = [("films", "Film", "Person", "directed_by", "cost"), ("books", "Book", "Author", "written_by", "pages")]


def questions(thing, maker, relation, attribute):
    dune, ann = [{"text": "Dune", "name": "Dune", "type": thing}], [{"text": "Ann", "name": "Ann Lee", "type": maker}]
    by = {"answer": "?x", "variables": {"?x": maker}, "triplets": [["Dune", relation, "?x"]]}
    of = {"answer": "?x", "variables": {"?x": thing}, "triplets": [["?x", relation, "Ann Lee"]]}
    yield "Dune is by whom?", dune, by
    yield "works of Ann", ann, of
    yield "how many works has Ann", ann, of | {"aggregate": "count"}
    yield "works of Ann above 300", ann, of | {"conditions": [["?x", attribute, ">", 300]]}
    yield f"{attribute} of Dune", dune, {"aggregate": ["value", "Dune", attribute]}
    yield "who sells Dune", dune, None


@pytest.fixture
def source(tmp_path):
    schemas, lines = [], []
    for name, thing, maker, relation, attribute in SCHEMAS:
        types = [{"name": thing, "attributes": [{"name": attribute, "kind": "number"}]}, {"name": maker}]
        schemas.append(
            {"schema": name, "types": types, "relations": [{"name": relation, "head": thing, "tail": maker}]}
        )
        for text, mentions, query in questions(thing, maker, relation, attribute):
            lines.append({"schema": name, "kind": "any", "question": text, "mentions": mentions, "query": query})
    (tmp_path / "schemas.jsonl").write_text("\n".join(map(json.dumps, schemas)))
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path


def test_a_query_becomes_the_plan_that_reads_it(source):
    films = read_sources([source])[1]
    (plan,) = films.examples[3].plans
    assert (plan.form, plan.requirements[0].operator, plan.requirements[0].quantity) == ("list", ">", 0)
    assert films.examples[3].asked == "works of A ( person ) above number 1 ( 300 )"
    assert normal(plan) != normal(films.examples[1].plans[0])
    assert films.examples[5].plans == []


def test_a_schema_that_stands_in_the_sources_twice_is_refused(source):
    with pytest.raises(SourceError, match="duplicate schema"):
        read_sources([source, source])


@pytest.fixture
def answered(tmp_path):
    """Return a source of questions whose plans were executed."""
    folder = tmp_path / "answered"
    folder.mkdir()
    options = [
        {"asked": "who is oldest", "text": "max age : person", "prior": -1.5, "shared": [0.0, 0.0], "is_right": False},
        {"asked": "who is A ( age )", "text": "A ← age ← person", "prior": -2, "shared": [0.5, 0], "is_right": True},
    ]
    plan = {"form": "max", "target": 0, "attribute": 0}
    line = {"schema": "people", "question": "who is oldest", "names": [], "plan": plan, "options": options}
    (folder / "options.jsonl").write_text(json.dumps(line) + "\n")
    kinds = {"node_types": [{"name": "person", "count": 9, "attributes": ["age"]}], "relations": []}
    vocabulary = {"schema": kinds | {"attribute_types": {"age": "integer"}}}
    (folder / "vocabularies.jsonl").write_text(json.dumps({"schema": "people", "vocabulary": vocabulary}) + "\n")
    return folder


def test_a_question_with_executed_plans_becomes_a_row(source, answered):
    assert (has_answered(source), has_answered(answered)) == (False, True)
    (question,) = read_answered([source, answered])
    row = question.row(word_tokens())
    assert [option.is_right for option in row.options] == [False, True]
    assert row.questions[0] != row.questions[1]
    (people,) = answered_schemas([source, answered], read_answered([answered]))
    assert people.examples[0].plan.form == "max"


@pytest.mark.filterwarnings("ignore")
def test_training_lowers_the_loss_and_writes_what_the_reader_opens(source, answered, tmp_path):
    for package in ("torch", "transformers", "onnx"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'clew-kb[train]'")
    import torch
    import transformers

    from clew.lab.training.networks import EncoderSize, exported_encoder
    from clew.lab.training.reader.choice import ChoiceSettings
    from clew.lab.training.reader.fitting import ReaderSettings, fit_reader, measure
    from clew.lab.training.reader.writer import WriterSettings

    words, teacher = ["[MASK]", "[SEP]", "[CLS]", "[UNK]", "[PAD]", "film", "by", "is", "who"], tmp_path / "teacher"
    shape = {"hidden_size": 36, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    transformers.BertModel(transformers.BertConfig(vocab_size=len(words), **shape)).save_pretrained(teacher)
    vocabulary = {word: place for place, word in enumerate(words)}
    transformers.BertTokenizerFast(vocab=vocabulary).save_pretrained(teacher)
    choice = ChoiceSettings(epochs=2, batch=4, teacher=str(teacher), teacher_epochs=1)
    writer = WriterSettings(epochs=6, batch=4, layers=1, inner=32, options=4, rate=3e-4, decoder_rate=1e-3)
    steps = {"epochs": 4, "choice": choice, "writer": writer, "batch": 4, "step": 4, "rate": 3e-4, "folds": 2}
    settings, schemas, out = (
        ReaderSettings(**steps, size=EncoderSize(1, 12, 64)),
        read_sources([source]),
        tmp_path / "out",
    )
    asked = read_answered([answered])
    bases = answered_schemas([answered], asked)
    figures = fit_reader(schemas, (bases, asked), out, settings, {"seed": 0}, lambda _: None)
    assert figures["loss"] < figures["first_loss"]
    assert figures["writer_loss"] < figures["first_writer_loss"]
    encoders = Encoders(out)
    text = SchemaText(schemas[0].vocabulary)
    read = QueryWriter(encoders).read("who is A ( film ) by", text, lambda: np.zeros(text.symbols.size))
    assert read.states.shape[1] == DIMENSION
    assert all(draft.score < 0 for draft in QueryWriter(encoders).write(read, Terms()))
    assert encoders.meaning(["who directed • film •"]).shape == (1, DIMENSION)
    options = ["A → directed by → person", "count : film"]
    told = encoders.choose(["who is A ( film ) by"] * 2, options, [-1.0, -2.0], [(0.0, 0.0)] * 2, 260)
    assert np.exp(told).sum() == pytest.approx(1, abs=1e-3)
    assert measure(schemas, Encoders(out))["questions"] == 10
    again = exported_encoder(torch, out / "meaning.onnx").eval()
    text = "who directed • film •"
    with torch.inference_mode():
        (states,) = again(torch.tensor(word_tokens()([text]))).last_hidden_state
    assert np.corrcoef(states.mean(0), encoders.meaning([text])[0])[0, 1] > 0.95


def test_examples_become_tokens_and_readings_keep_what_these_need(source):
    schemas = read_sources([source])
    examples = written_examples(schemas)
    assert examples
    readings = Readings([SchemaText(one.vocabulary) for one in schemas], random.Random(0))
    for example in examples:
        reading = readings.of(example)
        symbols = readings.texts[example.schema].symbols
        pointed = [reading.spans.codes[place - len(WORDS) - 1] for place in reading.targets if place > len(WORDS)]
        assert pointed == [token for token in example.tokens if token >= symbols.types]
        assert len(reading.ids) == max(reading.spans.ends) + 1
    assert any(example.tokens == (CODES["none"],) for example in examples)
