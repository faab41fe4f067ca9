"""The method `agent`: a scripted model explores a small base, and model replies are not trusted."""

import json

import pytest

import clew
from clew.core.errors import InputError
from clew.models.scripted import ScriptedModel
from clew.models.tokens import count_request_tokens, count_tokens
from prompts_sent import matches_golden, shown

CITIES = [("Riga", 605), ("Vilnius", 581), ("Kaunas", 305), ("Tartu", 91), ("Tallinn", 445)]
COUNTRIES = {"Riga": "Latvia", "Vilnius": "Lithuania", "Kaunas": "Lithuania", "Tartu": "Estonia", "Tallinn": "Estonia"}
QUESTION = "Which cities of Lithuania have a castle?"
IN_LITHUANIA = 'find c where (c: city) -[located_in]-> "Lithuania": country'


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cities") / "cities.kb"
    nodes = [
        {"key": f"c{number}", "name": name, "type": "city", "population": people, "text": f"{name} has a castle."}
        for number, (name, people) in enumerate(CITIES)
    ]
    nodes += [{"key": name, "name": name, "type": "country"} for name in sorted(set(COUNTRIES.values()))]
    edges = [
        {"head": f"c{number}", "relation": "located_in", "tail": COUNTRIES[name]}
        for number, (name, _) in enumerate(CITIES)
    ]
    clew.build(clew.from_tables(nodes, edges), folder)
    return folder


def step(tool, **given):
    return json.dumps({"thinking": "", "tool": tool, "text": "", "only": "", "query": "", "keys": [], **given})


def ask(base, *replies, question=QUESTION, **options):
    model = ScriptedModel.saying(*replies)
    return clew.open(base, model=model).ask(question, method="agent", **options), model.asked


def names(answer):
    return [one.node.name for one in answer.matches]


def tokens(asked, replies):
    return sum(map(count_request_tokens, asked)) + sum(map(count_tokens, replies))


def test_a_query_of_the_model_gives_its_whole_result_with_a_certificate(base):
    answer, asked = ask(base, step("search", text="castle"), step("answer", query=IN_LITHUANIA))
    assert (names(answer), answer.state, len(asked)) == (["Vilnius", "Kaunas"], "found", 2)
    by_query = clew.open(base).query(IN_LITHUANIA)
    assert answer.query == by_query.query
    assert answer.candidates == by_query.candidates
    assert "has a castle" in asked[1].messages[-1].content


def test_a_query_may_give_a_number_or_a_truth_value(base):
    for query, value in (
        ("find count(distinct c) where (c: city) and c.population > 400", 3),
        ('find exists(*) where (c: city) and c is "Riga": city and c.population < 1', False),
    ):
        answer, _ = ask(base, step("answer", query=query))
        assert (answer.value, answer.state) == (value, "found")


def test_nodes_that_were_shown_may_be_the_answer_with_their_facts(base):
    replies = step("show", text="[Lithuania]"), step("answer", keys=["[c1]"], text="Vilnius has a castle.")
    answer, _ = ask(base, *replies)
    assert names(answer) == ["Vilnius"]
    assert [piece.in_words() for piece in answer.matches[0].evidence] == [
        "Vilnius —located_in→ Lithuania",
        "“Vilnius has a castle.”",
    ]
    assert answer.text == "Vilnius has a castle. [1]"


def test_a_sentence_that_the_evidence_does_not_say_is_left_out(base):
    keys = {"keys": ["c1"], "text": "Napoleon founded a navy at Vilnius in 1812."}
    answer, _ = ask(base, step("search", text="Vilnius"), step("answer", **keys))
    assert names(answer) == ["Vilnius"]
    assert (answer.text, answer.state) == (None, "maybe")
    assert "Napoleon" in answer.notes[0]


def test_none_is_not_found(base):
    answer, _ = ask(base, step("search", text="airport"), step("none", text="airports"))
    assert (answer.state, answer.matches) == ("not_found", ())
    assert answer.notes == ("not in the base: airports",)


@pytest.mark.parametrize(
    ("reply", "remark"),
    [
        ("no JSON at all", "holds no JSON object"),
        (step("delete_everything"), "tool: Input should be"),
        (step("answer"), "needs a query, or keys"),
        (step("answer", keys=["c1"]), "no result has shown c1"),
        (step("answer", keys=["never", "c1"] * 200), "no result has shown never"),
        (step("answer", query='find c where (c: city) -[located_in]-> "Mordor": country'), "Mordor"),
        (step("answer", query="find c where (c: city) and c.population > 9000"), "0 rows"),
        (step("query", query="find find find"), "cannot read the query"),
        (step("query", query="find x where (x: dragon)"), "no node type 'dragon'"),
        (step("search", text="castle", only="dragon"), "no node type 'dragon'"),
        (step("search", text="x" * 10_001), "Error"),
        (step("show", text="nobody"), "no node has the key or the name"),
        (step("show", text="Riga", only="eats"), "eats"),
        (step("search"), "the text is empty"),
    ],
)
def test_a_wrong_step_is_told_to_the_model_which_may_go_on(base, reply, remark):
    answer, asked = ask(base, reply, step("answer", query=IN_LITHUANIA))
    assert names(answer) == ["Vilnius", "Kaunas"]
    assert remark in asked[1].messages[-1].content
    assert count_request_tokens(asked[1]) < count_request_tokens(asked[0]) + 1_300


def test_a_name_that_is_spelled_otherwise_is_shown_once(base):
    misspelt = IN_LITHUANIA.replace("Lithuania", "Lithuainia")
    answer, asked = ask(base, step("answer", query=misspelt))
    assert (names(answer), len(asked)) == (["Vilnius", "Kaunas"], 2)
    assert "stands for Lithuania" in asked[1].messages[-1].content
    answer, asked = ask(base, step("query", query=misspelt), step("answer", query=misspelt))
    assert (names(answer), len(asked)) == (["Vilnius", "Kaunas"], 2)


def test_a_name_that_the_base_does_not_have_is_said_at_the_last_step(base):
    answer, _ = ask(base, step("answer", query=IN_LITHUANIA.replace("Lithuania", "Mordor")), steps=1)
    assert (answer.state, [one.text for one in answer.unknown]) == ("not_found", ["Mordor"])


def test_keys_that_were_not_shown_are_dropped_at_the_last_step(base):
    last = step("answer", keys=["c1", "c3", "nobody"])
    answer, asked = ask(base, step("show", text="Lithuania"), last, steps=2)
    assert (names(answer), len(asked)) == (["Vilnius"], 2)
    assert "This is the last step" in asked[1].messages[-1].content


@pytest.mark.parametrize("reply", [step("search", text="castle city"), step("show", text="Riga"), "?", "x" * 50_000])
@pytest.mark.parametrize(("steps", "limit"), [(6, 12_000), (3, 12_000), (50, 5_000), (50, 100)])
def test_a_model_that_never_answers_is_stopped(base, reply, steps, limit):
    answer, asked = ask(base, reply, steps=steps, tokens=limit)
    assert answer.state == "not_found"
    assert "stopped" in answer.notes[0]
    assert len(asked) <= steps
    assert tokens(asked, [reply[:1_500] for _ in asked]) <= limit


def test_what_a_stopped_model_has_found_last_is_a_possible_answer(base):
    answer, _ = ask(base, step("query", query=IN_LITHUANIA), step("search", text="castle"))
    assert (names(answer), answer.state) == (["Vilnius", "Kaunas"], "maybe")
    answer, _ = ask(base, step("query", query=IN_LITHUANIA), steps=1)
    assert (names(answer), answer.state) == (["Vilnius", "Kaunas"], "found")  # the last step must be an answer


def test_a_model_that_fails_is_a_fallback(base):
    opened = clew.open(base, model=ScriptedModel(lambda _: None))
    answer = opened.ask(QUESTION, method="agent")
    assert answer.state == "not_found"
    assert answer.fallbacks[0].step == "agent"


def test_wrong_options_and_a_missing_model_are_said(base):
    with pytest.raises(InputError, match="agent needs a language model"):
        clew.open(base).ask(QUESTION, method="agent")
    with pytest.raises(InputError, match="at least 1"):
        ask(base, step("none"), steps=0)


def test_each_step_is_in_the_trace(base):
    answer, _ = ask(base, step("search", text="castle"), step("answer", query=IN_LITHUANIA))
    steps = {span.name: span.details for span in answer.trace if span.name.startswith("step")}
    assert [details["step"] for details in steps.values()] == ["search: castle", f"answer: {IN_LITHUANIA}"]
    assert "has a castle" in steps["step 1"]["result"]


def test_the_prompt_is_as_written(base):
    _, asked = ask(base, step("show", text="Lithuania"), step("answer", query=IN_LITHUANIA))
    assert matches_golden("agent/explore", list(map(shown, asked)))


def test_the_command_line_asks_a_scripted_model(base, run, tmp_path):
    rules = [
        {"contains": "[c1] Vilnius", "reply": {"tool": "answer", "query": IN_LITHUANIA}},
        {"contains": QUESTION, "reply": {"tool": "show", "text": "Lithuania"}},
    ]
    script = tmp_path / "script.jsonl"
    script.write_text("".join(json.dumps(rule) + "\n" for rule in rules), "utf-8")
    code, out, err = run("ask", base, QUESTION, "-m", "agent", "--model", f"scripted:{script}", "--json")
    assert code == 0, err
    assert [one["name"] for one in json.loads(out)["answers"]] == ["Vilnius", "Kaunas"]
    code, _, err = run("ask", base, QUESTION, "-m", "agent")
    assert (code, "needs a language model" in err) == (2, True)


def test_a_batch_collects_one_prompt_in_each_round(base, run, tmp_path):
    replies, folder = [step("show", text="Lithuania"), step("answer", query=IN_LITHUANIA)], tmp_path / "batch"
    for reply in replies:
        code, _, err = run("ask", base, QUESTION, "-m", "agent", "--model", f"batch:{folder}")
        assert (code, "1 of 1 requests wait" in err) == (1, True)
        waiting = [json.loads(line) for line in (folder / "requests.jsonl").read_text("utf-8").splitlines()]
        body = {"choices": [{"message": {"content": reply}}]}
        line = {"custom_id": waiting[-1]["custom_id"], "response": {"status_code": 200, "body": body}}
        with (folder / "replies.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    code, out, _ = run("ask", base, QUESTION, "-m", "agent", "--model", f"batch:{folder}", "--json")
    assert (code, json.loads(out)["matches"]) == (0, 2)
