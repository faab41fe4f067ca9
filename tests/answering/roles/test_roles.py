"""The five roles, with a scripted model and without one."""

import json
from dataclasses import replace

import numpy as np
import pytest

from clew.answering.roles.choose import ModelChooser, ScoredChooser, read_pair
from clew.answering.roles.parse import ModelParser
from clew.answering.roles.read import BestSpan, ModelReader
from clew.answering.roles.score import FusedScorer, ModelScorer, read_score, read_yes_no
from clew.answering.roles.write import ModelWriter
from clew.core import trace
from clew.core.errors import InputError, PendingError, ReplyError
from clew.core.query import Attribute, Compare, Edge, Named, Value
from clew.core.roles import Choice, Claim, Draft, Reading, Source
from clew.core.schema import NodeType, Relation, Schema
from clew.models.budget import Budget, Ledger
from clew.models.embedding.opening import HashEmbedder
from clew.models.protocol import Completion, Request
from clew.models.scripted import ScriptedModel
from clew.models.structured import Ask, Prompt, ask
from clew.models.tokens import chunk_by_tokens, count_tokens, cut_end, cut_to_question
from clew.models.wrappers import Budgeted

SCHEMA = Schema(
    node_types=(NodeType("movie", 10), NodeType("person", 20), NodeType("genre", 3)),
    relations=(
        Relation("directed_by", "movie", "person", 10),
        Relation("starred_actors", "movie", "person", 30),
        Relation("has_genre", "movie", "genre", 12),
    ),
    attribute_types={"year": "integer"},
)


def last(request: Request) -> str:
    return request.messages[-1].content


def parse_reply(**changes) -> str:
    reply = {
        "answer": "?x",
        "variables": [{"name": "?x", "type": "person"}, {"name": "?y", "type": "movie"}],
        "triplets": [
            {"head": "?y", "relation": "starred_actors", "tail": "Tom Hanks"},
            {"head": "?y", "relation": "directed_by", "tail": "?x"},
        ],
        "absent": [],
        "conditions": [],
    }
    return json.dumps({**reply, **changes})


class TestParsing:
    def test_a_reply_becomes_a_query(self):
        said = parse_reply(conditions=[{"variable": "?y", "attribute": "year", "comparison": ">=", "value": 1999}])
        model = ScriptedModel.saying(f"Sure! Here it is:\n```json\n{said}\n```\nHope that helps.")
        parse = ModelParser(model).parse("who directed the movies with Tom Hanks since 1999?", SCHEMA)
        pattern = parse.interpretation.query.pattern
        assert parse.interpretation.variable == "x"
        assert pattern.types == {"x": "person", "y": "movie"}
        assert pattern.edges == (
            Edge("y", "starred_actors", Named("Tom Hanks", "person")),
            Edge("y", "directed_by", "x"),
        )
        assert pattern.where == (Compare(Attribute("y", "year"), ">=", Value(1999)),)
        assert "movie -> directed_by -> person" in last(model.asked[0])
        assert parse.problem is None

    def test_text_is_not_compared_by_size(self):
        schema = replace(SCHEMA, attribute_types={"plot": "text"})
        said = parse_reply(conditions=[{"variable": "?y", "attribute": "plot", "comparison": ">=", "value": 3}])
        model = ScriptedModel.saying(said)
        parse = ModelParser(model).parse("who directed the movies with Tom Hanks?", schema)
        assert parse.interpretation.query.pattern.where == ()
        assert "cannot be compared" in parse.rejected[0].reason
        assert '"comparison": "contains"' in last(model.asked[0])

    def test_an_edge_written_backwards_is_turned_round(self):
        said = parse_reply(triplets=[{"head": "?x", "relation": "Directed By", "tail": "?y"}])
        parse = ModelParser(ScriptedModel.saying(said)).parse("directors?", SCHEMA)
        pattern = parse.interpretation.query.pattern
        assert pattern.edges == (Edge("y", "directed_by", "x"),)
        assert pattern.types == {"x": "person", "y": "movie"}

    def test_what_the_schema_does_not_know_is_said_back_and_then_rejected(self):
        wrong = [
            {"head": "?y", "relation": "produced_by", "tail": "?x"},
            {"head": "?y", "relation": "has_genre", "tail": "Drama"},
        ]
        model = ScriptedModel.saying(parse_reply(triplets=wrong))
        parse = ModelParser(model).parse("who produced dramas?", SCHEMA)
        assert len(model.asked) == 2
        assert "there is no relation 'produced_by'" in last(model.asked[1])
        assert [rejected.reason for rejected in parse.rejected] == ["there is no relation 'produced_by'"]
        assert {edge.relation for edge in parse.interpretation.query.pattern.edges} == {None, "has_genre"}

    def test_a_second_reply_that_is_right_is_taken(self):
        model = ScriptedModel.saying("I do not know", parse_reply())
        parse = ModelParser(model).parse("?", SCHEMA)
        assert len(parse.interpretation.query.pattern.edges) == 2
        assert parse.rejected == ()

    def test_absent_edges_are_negated(self):
        absent = [{"head": "?y", "relation": "has_genre", "tail": "Drama"}]
        query = ModelParser(ScriptedModel.saying(parse_reply(absent=absent))).parse("?", SCHEMA).interpretation.query
        assert (len(query.pattern.edges), len(query.pattern.where)) == (2, 1)

    def test_the_fallback_parser_stands_in_and_the_trace_says_so(self):
        class Linker:
            def parse(self, question, schema):
                return ModelParser(ScriptedModel.saying(parse_reply())).parse(question, schema)

        with trace.recording() as recorder:
            parse = ModelParser(ScriptedModel.saying("no"), fallback=Linker()).parse("q", SCHEMA)
        assert len(parse.interpretation.query.pattern.edges) == 2
        assert "JSON" in (parse.problem or "")
        assert [(f.step, f.instead) for f in recorder.fallbacks] == [("parse", "parsed by Linker")]

    def test_a_schema_too_large_for_the_context_is_shown_in_part(self):
        many = tuple(Relation(f"relation_{n}", "movie", "person", 1) for n in range(2000))
        schema = Schema(SCHEMA.node_types, (*many, Relation("directed_by", "movie", "person", 1)))
        model = ScriptedModel.saying(parse_reply(triplets=[], conditions=[]))
        with trace.recording() as recorder:
            ModelParser(model).parse("which person directed it", schema)
        assert count_tokens(last(model.asked[0])) < model.context_tokens * 0.7
        assert "directed_by" in last(model.asked[0])
        assert "2001 relations" in recorder.fallbacks[0].reason


class TestChoosing:
    PAIR = Choice("who directed it?", ("starred", "directed"), kind="relation")

    def test_a_model_that_prefers_a_position_is_not_believed(self):
        [chosen] = ModelChooser(ScriptedModel.saying('{"choice": "A"}')).choose([self.PAIR])
        assert (chosen.kept, chosen.sure) == ((0,), 0.5)

    def test_a_model_that_prefers_an_option_is(self):
        def reply(request: Request) -> str:
            return '{"choice": "A"}' if "A: directed" in last(request) else '{"choice": "B"}'

        [chosen] = ModelChooser(ScriptedModel(reply)).choose([self.PAIR])
        assert (chosen.kept, chosen.sure) == ((1,), 1.0)

    def test_the_probability_of_the_letter_is_used_where_there_is_one(self):
        logprobs = ({'{"': 0.0}, {"choice": 0.0}, {"A": np.log(0.6), "B": np.log(0.4)}, {'"}': 0.0})
        assert read_pair(Completion('{"choice": "A"}', logprobs=logprobs)) == pytest.approx(0.6)

    def test_a_list_is_chosen_from_and_filled_up_in_its_order(self):
        choice = Choice("q", ("a", "b", "c", "d"), keep=3)
        model = ScriptedModel.saying('{"best": [3, 3]}')
        assert ModelChooser(model).choose([choice])[0].kept == (2, 0, 1)
        assert model.asked[0].schema["properties"]["best"]["items"]["enum"] == [1, 2, 3, 4]

    def test_a_long_list_is_chunked_and_the_winners_meet(self):
        options = tuple(f"option {n}" for n in range(100))

        def reply(request: Request) -> str:
            shown = [line for line in last(request).splitlines() if ". option" in line]
            wanted = [line.split(".")[0] for line in shown if line.endswith(" 77")]
            return json.dumps({"best": [int(wanted[0]) if wanted else 1]})

        model = ScriptedModel(reply)
        [chosen] = ModelChooser(model, most_options=30).choose([Choice("q", options, keep=2)])
        assert chosen.kept[0] == 77
        assert len(model.asked) == 5

    def test_one_bad_reply_spoils_no_other(self):
        def reply(request: Request) -> str:
            return "nonsense" if "bad" in request.messages[1].content else '{"best": [2]}'

        choices = [Choice(name, ("a", "b", "c")) for name in ("good", "bad", "fine")]
        with trace.recording() as recorder:
            chosen = ModelChooser(ScriptedModel(reply)).choose(choices)
        assert [one.kept for one in chosen] == [(1,), (0,), (1,)]
        assert [one.problem is None for one in chosen] == [True, False, True]
        assert len(recorder.fallbacks) == 1

    def test_nothing_to_choose_is_not_asked(self):
        model = ScriptedModel.saying("never")
        chosen = ModelChooser(model).choose([Choice("q", ()), Choice("q", ("a",)), Choice("q", ("a", "b"), keep=0)])
        assert [one.kept for one in chosen] == [(), (0,), ()]
        assert model.asked == []

    def test_without_a_model_the_likest_option_wins(self):
        chooser = ScoredChooser(FusedScorer(HashEmbedder()))
        assert chooser.choose([self.PAIR])[0].kept == (1,)


class TestScoring:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ('{"score": 0.85}', 0.85),
            ('{"score": 1}', 1.0),
            ("1", 1.0),
            ("0", 0.0),
            (".85", 0.85),
            ("Score: 0.85.", 0.85),
            ('{"score": .5}', 0.5),
        ],
    )
    def test_scores_are_read_as_models_say_them(self, text, value):
        assert read_score(Completion(text)) == value

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "high",
            "85",
            "8/10",
            "85%",
            "1%",
            "-0.5",
            "0.3 or 0.9",
            '{"score": true}',
            '{"score": NaN}',
            '{"score": 7}',
        ],
    )
    def test_what_is_no_score_is_refused(self, text):
        with pytest.raises(ReplyError):
            read_score(Completion(text))

    def test_one_unreadable_candidate_costs_only_its_own_score(self):
        model = ScriptedModel(lambda request: "hm" if "Bad" in request.messages[1].content else '{"score": 0.5}')
        scores = ModelScorer(model).score([Claim("q", name) for name in ("Good", "Bad", "Fine")])
        assert scores == [0.5, None, 0.5]

    def test_the_likelihood_of_yes_is_a_score(self):
        logprobs = ({"Yes": np.log(0.6), "yes": np.log(0.1), "No": np.log(0.3)},)
        assert read_yes_no(Completion("Yes", logprobs=logprobs)) == pytest.approx(0.7)
        assert read_yes_no(Completion(" No, it is not")) == 0.0
        with pytest.raises(ReplyError):
            read_yes_no(Completion("Nobody knows"))

    def test_a_long_document_is_cut_to_what_the_question_needs(self):
        document = (
            "Intro sentence. " + "Filler about nothing. " * 3000 + "It was directed by Ridley Scott. " + "More. " * 50
        )
        model = ScriptedModel.saying('{"score": 1}')
        ModelScorer(model, document_tokens=100).score([Claim("Who directed it? Ridley Scott?", "Alien", document)])
        shown = last(model.asked[0])
        assert "Ridley Scott. " in shown + " "
        assert "Intro sentence." in shown
        assert count_tokens(shown) < 220

    def test_without_a_model_the_better_candidate_scores_higher_and_all_lie_between_0_and_1(self):
        claims = [
            Claim(
                "which movie is about a ship in space", "Alien", "The crew of a ship in deep space meets a creature."
            ),
            Claim("which movie is about a ship in space", "Casablanca", "A cafe owner in Morocco helps a couple."),
        ]
        first, second = FusedScorer(HashEmbedder()).score(claims)
        assert 0 < second < first < 1
        assert FusedScorer(HashEmbedder()).score([]) == []

    def test_a_spent_budget_leaves_claims_without_a_score(self):
        ledger = Ledger(Budget(calls=2))
        model = Budgeted(ScriptedModel.saying('{"score": 0.5}'), ledger)
        with trace.recording() as recorder:
            scores = ModelScorer(model).score([Claim("q", str(n)) for n in range(5)])
        assert scores == [0.5, 0.5, None, None, None]
        assert all("is spent" in f.reason for f in recorder.fallbacks)
        assert ledger.refused == 3


class TestWriting:
    def test_the_next_evidence_is_written_or_enough_is_said(self):
        def reply(request: Request) -> str:
            enough = "Alien was directed by" in request.messages[1].content
            return json.dumps({"enough": enough, "next": "" if enough else "The director of Alien is"})

        drafts = [Draft("who directed Alien?"), Draft("who directed Alien?", ("Alien was directed by Ridley Scott.",))]
        assert [one.texts for one in ModelWriter(ScriptedModel(reply)).next_evidence(drafts)] == [
            ("The director of Alien is",),
            (),
        ]

    def test_the_uncovered_part_stands_in(self):
        with trace.recording() as recorder:
            [written] = ModelWriter(ScriptedModel.saying("…")).next_evidence(
                [Draft("Which river flows through the birthplace of Max Bruch?", ("Max Bruch was born in Cologne.",))]
            )
        assert written.texts == ("river flows birthplace Cologne",)
        assert recorder.fallbacks[0].step == "write"

    def test_answers_are_different_and_ordered(self):
        said = ScriptedModel.saying(json.dumps({"answers": ["Paris", "paris ", 1789]}))
        [written] = ModelWriter(said).answers(["capital?"], 10)
        assert written.texts == ("Paris", "1789")


class TestReading:
    READING = Reading(
        "Who directed Alien?",
        (
            Source("Alien is a 1979 film directed by Ridley Scott.", "Alien"),
            Source("Paris is a city.", "Paris"),
        ),
    )

    def test_an_answer_comes_with_its_citations(self):
        [read] = ModelReader(ScriptedModel.saying('{"answer": "Ridley Scott.", "passages": [1, 1]}'), 6).read(
            [self.READING]
        )
        assert (read.text, read.citations) == ("Ridley Scott", (0,))

    def test_citations_that_point_nowhere_are_said_back_then_dropped(self):
        model = ScriptedModel.saying('{"answer": "Ridley Scott", "passages": [1, 7]}')
        [read] = ModelReader(model, words=6).read([self.READING])
        assert (read.text, read.citations) == ("Ridley Scott", (0,))
        assert "there is no passage 7" in last(model.asked[1])

    @pytest.mark.parametrize("answer", ["", "Unknown.", "N/A"])
    def test_no_answer_is_no_answer(self, answer):
        model = ScriptedModel.saying(json.dumps({"answer": answer, "passages": []}))
        assert ModelReader(model, words=6).read([self.READING])[0].text is None

    def test_nothing_to_read_is_not_asked(self):
        model = ScriptedModel.saying("never")
        assert ModelReader(model, words=6).read([Reading("q", ())])[0].text is None
        assert model.asked == []

    def test_passages_are_cut_to_the_context_with_the_relevant_parts_kept(self):
        long = "Start. " + "Nothing here. " * 5000 + "The director was Ridley Scott. "
        reading = Reading("Who was the director?", (Source(long, "A"), Source("Short one.", "B")))
        model = ScriptedModel.saying('{"answer": "Ridley Scott", "passages": [1]}')
        model.context_tokens = 1000
        ModelReader(model, words=6).read([reading])
        shown = last(model.asked[0])
        assert count_tokens(shown) < 1000
        assert "The director was Ridley Scott." in shown
        assert "Short one." in shown

    def test_without_a_model_the_best_span_is_read(self):
        [read] = BestSpan().read([self.READING])
        assert (read.text, read.citations) == ("Ridley Scott", (0,))
        when = Reading("When was Alien released?", self.READING.sources)
        assert BestSpan().read([when])[0].text == "1979"
        [open_] = BestSpan().read([Reading("Is Alien a film?", self.READING.sources)])
        assert (open_.text, open_.citations[0]) == (None, 0)
        assert BestSpan().read([Reading("Quantum?", self.READING.sources)])[0].text is None


class TestAsking:
    def test_pending_passes_through(self):
        def reply(_: Request) -> str:
            raise PendingError("wait")

        with pytest.raises(PendingError):
            ModelScorer(ScriptedModel(reply)).score([Claim("q", "c")])

    def test_a_wrong_reply_is_shown_again_with_its_error_once(self):
        def read(completion: Completion) -> str:
            if completion.text != "right":
                raise ReplyError("not right")
            return completion.text

        model = ScriptedModel.saying("wrong", "right")
        [outcome] = ask(model, [Ask((), read)], role="test")
        assert outcome.value == "right"
        said, told = model.asked[1].messages
        assert (said.role, said.content) == ("assistant", "wrong")
        assert "not right" in told.content

    def test_a_prompt_with_a_missing_or_an_unused_hole_raises(self):
        prompt = Prompt("p", "", "Hello $name")
        assert prompt.fill(name="$you")[0].content == "Hello $you"
        with pytest.raises(InputError, match="missing: name"):
            prompt.fill()
        with pytest.raises(InputError, match="unused: other"):
            prompt.fill(name="you", other=1)


class TestCutting:
    def test_a_text_that_fits_stays(self):
        assert cut_to_question("Short text.", "question", 100) == "Short text."

    @pytest.mark.parametrize("tokens", [1, 5, 20, 60])
    def test_what_is_cut_fits(self, tokens):
        text = " ".join(f"Sentence number {n} speaks of {'whales' if n == 33 else 'things'}." for n in range(60))
        cut = cut_to_question(text, "Where are the whales?", tokens)
        assert count_tokens(cut) <= tokens + 3
        assert count_tokens(cut_end(text, tokens)) <= tokens
        assert tokens < 30 or "whales" in cut

    def test_chunks_hold_everything_once_in_order(self):
        items = [str(n) * (n % 7 + 1) for n in range(100)]
        chunks = list(chunk_by_tokens(items, 10, lambda item: item, most=5))
        assert [item for chunk in chunks for item in chunk] == items
        assert all(1 <= len(chunk) <= 5 for chunk in chunks)
