"""Loaders read the official files of every data set, and say what is wrong with a broken one."""

import gzip
import json

import pytest

from clew.core.errors import InputError, NotFoundError, SourceError
from clew.lab.datasets.load import load_dataset
from clew.lab.datasets.questions import Dataset, ParagraphPool, Question


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, "utf-8")
    return path


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def test_plain_questions_take_keys_or_names_and_a_place_stands_in_for_a_missing_id(tmp_path):
    file = write(
        tmp_path / "mine.jsonl",
        lines(
            {"id": "a", "question": "Who?", "answers": ["X", 7], "type": "1-hop", "topics": ["T"]},
            {"query": "Where?", "answer_ids": [3], "note": "kept"},
        ),
    )
    dataset = load_dataset(str(file))
    assert dataset.name == "mine"
    assert [(q.id, q.text, q.answers) for q in dataset.questions] == [
        ("a", "Who?", ("X", "7")),
        ("2", "Where?", ("3",)),
    ]
    assert dataset.questions[0].topics == ("T",)
    assert dataset.questions[1].extra == {"note": "kept"}


def test_a_gzipped_file_is_found_without_its_suffix(tmp_path):
    (tmp_path / "q.jsonl.gz").write_bytes(gzip.compress(lines({"question": "Who?", "answers": "X"}).encode()))
    assert load_dataset(str(tmp_path / "q.jsonl")).questions[0].answers == ("X",)


def test_stark_reads_queries_splits_and_the_human_set(tmp_path):
    folder = tmp_path / "prime"
    write(folder / "stark_qa" / "stark_qa.csv", 'id,query,answer_ids\n3,"a, b",[5]\n9,c,"[1, 2]"\n')
    write(folder / "stark_qa" / "stark_qa_human_generated_eval.csv", "id,query,answer_ids\n0,h,[8]\n")
    write(folder / "split" / "val.index", "9\n")
    write(folder / "split" / "test-0.1.index", "3\n")
    val = load_dataset(f"stark:{folder}:val")
    assert (val.name, val.split, val.portion, val.kind, val.match) == ("stark-prime", "val", "full", "retrieval", "key")
    assert [(q.id, q.answers) for q in val.questions] == [("9", ("1", "2"))]
    assert load_dataset(f"stark:{folder}:human").portion == "human"
    assert load_dataset(f"stark:{folder}:test-0.1").portion == "10 % sample"
    assert len(load_dataset(f"stark:{folder}").questions) == 2
    with pytest.raises(NotFoundError, match=r"use test-0\.1, val, human"):
        load_dataset(f"stark:{folder}:dev")


def test_stark_refuses_answers_that_are_no_list_of_ids(tmp_path):
    write(tmp_path / "stark_qa" / "stark_qa.csv", "id,query,answer_ids\n3,a,[5]\n4,b,\"__import__('os')\"\n")
    with pytest.raises(SourceError, match="line 3: answer_ids"):
        load_dataset(f"stark:{tmp_path}")


def test_metaqa_brings_its_base_topics_and_types(tmp_path):
    write(tmp_path / "kb.txt", "Heat|directed_by|Michael Mann\nHeat|release_year|1995\n")
    write(tmp_path / "2-hop" / "vanilla" / "qa_dev.txt", "when did films by [Michael Mann] appear\t1995|1995|1999\n")
    write(tmp_path / "2-hop" / "qa_dev_qtype.txt", "director_to_movie_to_year\n")
    dataset = load_dataset(f"metaqa:{tmp_path}:2-hop-dev")
    question = dataset.questions[0]
    assert (question.answers, question.topics) == (("1995", "1999"), ("Michael Mann",))
    assert question.type == "director_to_movie_to_year"
    assert dataset.base is not None
    assert dataset.base.implicit_type == "movie"
    assert dataset.base.edges[0].table.to_pylist()[0] == {
        "head": "Heat",
        "relation": "directed_by",
        "tail": "Michael Mann",
    }
    with pytest.raises(InputError, match="2-hop-test"):
        load_dataset(f"metaqa:{tmp_path}:val")


@pytest.mark.parametrize(("split", "base"), [("PQ-2H", "2H-kb"), ("PQL-3H", "PQL3-KB"), ("WC-P1", "WC2014")])
def test_pathquestion_finds_the_base_of_a_question_file(tmp_path, split, base):
    write(tmp_path / f"{base}.txt", "ann\t\tspouse\tbob\nbob\tnationality\tuk\n")
    write(tmp_path / f"{split}.txt", "nation of ann 's couple ?\tuk(uk/eu/)\tann#spouse#bob#nationality#uk#<end>#uk\n")
    dataset = load_dataset(f"pathquestion:{tmp_path}:{split}")
    question = dataset.questions[0]
    assert (question.answers, question.topics, question.type) == (("uk", "eu"), ("ann",), "spouse → nationality")
    assert dataset.base is not None
    assert dataset.base.edges[0].table.num_rows == 2


def test_webqsp_reads_the_official_form_and_json_lines(tmp_path):
    official = {
        "Questions": [
            {
                "QuestionId": "WebQTest-1",
                "RawQuestion": "who?",
                "ProcessedQuestion": "who",
                "Parses": [
                    {
                        "TopicEntityName": "Ann",
                        "TopicEntityMid": "m.1",
                        "InferentialChain": ["a.b"],
                        "Answers": [{"AnswerType": "Entity", "AnswerArgument": "m.2", "EntityName": "Bob"}],
                    },
                    {"Answers": [{"AnswerType": "Value", "AnswerArgument": "1995", "EntityName": None}]},
                ],
            }
        ]
    }
    write(tmp_path / "WebQSP.test.json", official)
    write(tmp_path / "dev.jsonl", lines({"id": "1", "question": "q", "answers": ["B"], "topic_entity": {"m.1": "Ann"}}))
    write(tmp_path / "triples.tsv", "Ann\tknows\tB\n")
    question = load_dataset(f"webqsp:{tmp_path}:WebQSP.test").questions[0]
    assert (question.answers, question.aliases) == (("m.2", "1995"), {"m.2": ("Bob",)})
    assert (question.topics, question.type) == (("Ann",), "1-hop")
    dataset = load_dataset(f"webqsp:{tmp_path}:dev")
    assert dataset.base is not None
    assert dataset.questions[0].topics == ("Ann",)


def test_freebase_question_files_in_their_official_forms(tmp_path):
    cwq = {
        "ID": "c1",
        "question": "q",
        "compositionality_type": "conjunction",
        "answers": [{"answer": "Bob", "answer_id": "m.2", "aliases": ["Robert"]}],
    }
    grail = {
        "qid": 7,
        "question": "q",
        "level": "zero-shot",
        "function": "none",
        "graph_query": {"nodes": [{"node_type": "entity", "friendly_name": "Ann"}]},
        "answer": [{"answer_type": "Entity", "answer_argument": "m.2", "entity_name": "Bob"}],
    }
    web = {
        "url": "http://www.freebase.com/view/en/justin_bieber",
        "targetValue": '(list (description "Jazmyn \\"J\\" Bieber") (description Jaxon))',
        "utterance": "who?",
    }
    question = load_dataset(f"cwq:{write(tmp_path / 'cwq.json', [cwq])}").questions[0]
    assert (question.answers, question.aliases["m.2"], question.type) == (("m.2",), ("Bob", "Robert"), "conjunction")
    question = load_dataset(f"grailqa:{write(tmp_path / 'grail.json', [grail])}").questions[0]
    assert (question.topics, question.aliases, question.type) == (("Ann",), {"m.2": ("Bob",)}, "zero-shot")
    question = load_dataset(f"webquestions:{write(tmp_path / 'web.json', [web])}").questions[0]
    assert (question.answers, question.topics) == (('Jazmyn "J" Bieber', "Jaxon"), ("justin bieber",))
    blind = write(tmp_path / "blind.json", [{"ID": "1", "question": "q"}])
    with pytest.raises(InputError, match="blind test set"):
        load_dataset(f"cwq:{blind}")


def test_mintaka_keeps_types_and_answers_that_are_no_entities(tmp_path):
    def record(id, gold):
        return {"id": id, "question": "q", "category": "books", "complexityType": "ordinal", "answer": gold}

    entity = {"answerType": "entity", "answer": [{"name": "Q1", "label": {"en": "Dawn", "de": "Dawn"}}], "mention": "D"}
    truth = {"answerType": "boolean", "answer": [True], "mention": "Yes"}
    unknown = {"answerType": "entity", "answer": None, "mention": "Nobody"}
    file = write(tmp_path / "mintaka_dev.json", [record("1", entity), record("2", truth), record("3", unknown)])
    questions = load_dataset(f"mintaka:{file}").questions
    assert [question.answers for question in questions] == [("Q1",), ("yes",), ("Nobody",)]
    assert [question.value for question in questions] == [None, True, None]
    assert questions[0].aliases == {"Q1": ("Dawn",)}
    assert load_dataset(f"mintaka:{tmp_path}:dev").split == "dev"


HOTPOT = {
    "_id": "1",
    "question": "q",
    "answer": "yes",
    "type": "bridge",
    "supporting_facts": [["A", 0], ["B", 1], ["A", 1]],
    "context": [["A", ["one.", " two."]], ["B", ["three.", "four."]], ["C", ["five."]]],
}


@pytest.mark.parametrize("name", ["hotpotqa", "2wiki"])
def test_paragraphs_are_pooled_into_one_corpus(tmp_path, name):
    other = HOTPOT | {"_id": "2", "context": [["A", ["another text."]], ["B", ["three.", "four."]]]}
    file = write(tmp_path / "dev.json", [HOTPOT, other])
    dataset = load_dataset(f"{name}:{file}")
    assert [(p.key, p.title) for p in dataset.paragraphs] == [("A", "A"), ("B", "B"), ("C", "C"), ("A #2", "A")]
    assert [question.passages for question in dataset.questions] == [("A", "B"), ("A #2", "B")]
    assert dataset.contexts["2"] == ("A #2", "B")
    assert dataset.questions[0].extra["supporting_facts"] == [("A", 0), ("B", 1), ("A", 1)]
    assert dataset.paragraphs[0].text == "one. two."
    bare = dataset.without_titles()
    assert [(p.key, p.title) for p in bare.paragraphs] == [(f"passage {n}", "") for n in (1, 2, 3, 4)]
    assert [question.passages for question in bare.questions] == [
        ("passage 1", "passage 2"),
        ("passage 4", "passage 2"),
    ]
    assert bare.contexts["2"] == ("passage 4", "passage 2")
    assert bare.portion == "full, without titles"


def test_the_column_form_of_hotpotqa_is_the_same_record(tmp_path):
    columns = HOTPOT | {
        "supporting_facts": {"title": ["A", "B", "A"], "sent_id": [0, 1, 1]},
        "context": {"title": ["A", "B", "C"], "sentences": [s for _, s in HOTPOT["context"]]},
    }
    plain = load_dataset(f"hotpotqa:{write(tmp_path / 'a.json', [HOTPOT])}")
    other = load_dataset(f"hotpotqa:{write(tmp_path / 'b.jsonl', lines(columns))}")
    assert plain.questions == other.questions
    assert plain.paragraphs == other.paragraphs


def test_musique_pools_paragraphs_and_leaves_unanswerable_questions_out(tmp_path):
    record = {
        "id": "3hop1__1_2_3",
        "question": "q",
        "answer": "G. Stanley Hall",
        "answer_aliases": ["Stanley Hall"],
        "paragraphs": [
            {"idx": 0, "title": "A", "paragraph_text": "one", "is_supporting": True},
            {"idx": 1, "title": "A", "paragraph_text": "two", "is_supporting": False},
        ],
    }
    file = write(tmp_path / "m.jsonl", lines(record, record | {"id": "x", "answerable": False}))
    dataset = load_dataset(f"musique:{file}")
    question = dataset.questions[0]
    assert (question.passages, question.type) == (("A",), "3-hop")
    assert question.answers == ("G. Stanley Hall", "Stanley Hall")
    assert len(dataset.questions) == 1
    assert [paragraph.key for paragraph in dataset.paragraphs] == ["A", "A #2"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("corpus.jsonl", lines({"title": "A", "text": "one"}, {"title": "A", "text": "two"})),
        ("corpus.json", [{"title": "A", "text": "one"}, {"title": "A", "text": ["two"]}]),
    ],
)
def test_a_corpus_with_gold_titles(tmp_path, name, content):
    write(tmp_path / name, content)
    write(tmp_path / "questions.jsonl", lines({"question": "q", "gold_titles": ["A"], "answer": "x"}))
    dataset = load_dataset(f"corpus:{tmp_path}")
    question = dataset.questions[0]
    assert (question.passages, question.aliases) == (("A",), {"A": ("A #2",)})  # either text of that title will do
    write(tmp_path / "questions.jsonl", lines({"question": "q", "gold_titles": ["Z"], "answer": "x"}))
    with pytest.raises(InputError, match="gold title 'Z'"):
        load_dataset(f"corpus:{tmp_path}")


def test_the_same_paragraph_is_one_and_another_text_gets_another_key():
    pool = ParagraphPool()
    keys = [pool.add("A #2", ["z"]).key, *(pool.add("A", [text]).key for text in ("x", "y", "x"))]
    assert keys == ["A #2", "A", "A #3", "A"]


def test_a_sample_is_labelled_repeatable_and_in_order():
    whole = Dataset("d", tuple(Question(str(n), "q", ("a",)) for n in range(100)), "graph")
    part = whole.sample(10, seed=3)
    assert part.portion == "10 of 100, seed 3"
    assert part.questions == whole.sample(10, seed=3).questions
    assert part.questions != whole.sample(10, seed=4).questions
    assert [int(q.id) for q in part.questions] == sorted(int(q.id) for q in part.questions)
    assert whole.sample(100).portion == "full"


@pytest.mark.parametrize(
    ("text", "topics", "marked"),
    [
        ("where are ike and tina turner 's children", ("Tina Turner",), "where are ike and [Tina Turner] 's children"),
        ("who directed [Heat]", ("Heat",), "who directed [Heat]"),
        ("who wrote it", ("It Ends",), "who wrote it [It Ends]"),
        ("the art of star wars", ("Art",), "the [Art] of star wars"),
        ("nothing is given", (), "nothing is given"),
    ],
)
def test_topics_are_marked_where_they_occur_else_at_the_end(text, topics, marked):
    dataset = Dataset("d", (Question("1", text, ("a",), topics=topics),), "graph").with_topics()
    assert dataset.questions[0].text == marked
    assert dataset.portion == "full, topics given"


def test_what_is_wrong_is_said_with_file_and_line(tmp_path):
    broken = write(tmp_path / "b.jsonl", lines({"question": "q", "answers": ["a"]}) + "{oops\n")
    with pytest.raises(SourceError, match=r"b\.jsonl, line 2: not JSON"):
        load_dataset(str(broken))
    missing = write(tmp_path / "m.jsonl", lines({"question": "q"}))
    with pytest.raises(SourceError, match=r"m\.jsonl, line 1: .*answers: missing"):
        load_dataset(str(missing))
    with pytest.raises(NotFoundError, match="NAME one of stark"):
        load_dataset("nothing:here")
    twice = write(tmp_path / "t.jsonl", lines(*[{"id": 1, "question": "q", "answers": ["a"]}] * 2))
    with pytest.raises(InputError, match="two questions have the id '1'"):
        load_dataset(str(twice))
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"question": "q"}' * 99)[:40])
    with pytest.raises(SourceError, match="cut or damaged"):
        load_dataset(str(tmp_path / "cut.jsonl"))


@pytest.mark.parametrize(
    ("name", "questions", "base", "paragraphs"),
    [
        ("stark:{}/stark/prime:val", 2241, None, 0),
        ("stark:{}/stark/mag:train", 7993, None, 0),
        ("metaqa:{}/metaqa:1-hop-dev", 9992, 133_582, 0),
        ("pathquestion:{}/pathquestion:PQ-2H", 1908, 1211, 0),
        ("pathquestion:{}/pathquestion:PQ-3H", 5198, 2839, 0),
        ("webqsp:{}/webqsp:questions_dev", 600, 33_200, 0),
        ("mintaka:{}/mintaka:dev", 2000, None, 0),
        ("hotpotqa:{}/hotpotqa/dev_distractor_200.jsonl", 200, None, 1971),
        ("2wiki:{}/2wiki/train_500.jsonl", 500, None, 3112),
        ("musique:{}/musique/musique_train.json", 100, None, 1890),
        ("jsonl:{}/stark_prime_mini/queries.jsonl", 440, None, 0),
    ],
)
def test_the_real_files_are_read_whole(data, name, questions, base, paragraphs):
    dataset = load_dataset(name.format(data))
    assert len(dataset.questions) == questions
    assert all(question.answers and question.text for question in dataset.questions)
    assert (dataset.base.edges[0].table.num_rows if dataset.base else None) == base
    assert len(dataset.paragraphs) == paragraphs
    if base and not name.startswith("webqsp"):
        table = dataset.base.edges[0].table
        entities = {*table["head"].to_pylist(), *table["tail"].to_pylist()}
        assert all(answer in entities for question in dataset.questions for answer in question.answers)
