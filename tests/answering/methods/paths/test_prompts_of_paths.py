"""Every prompt of Think-on-Graph and of the thesis, as it is sent; the thesis' own examples are the questions."""

import pytest

from clew.answering.methods.paths import asking
from clew.answering.methods.paths.asking import Group, PathPair
from prompts_sent import GOLDEN, Sends, matches_golden

SERIES = "m.03_dwn is the mascot for the team that last won the world series when?"
ANTHEM = "The national anthem Afghan National Anthem is from the country which practices what religions?"
FACTS = ["Afghan National Anthem, government.national_anthem.country, Afghanistan"]
CASES = {
    "tog_relations": (
        '{"scores": {"1": 0.7, "2": 0.3}}',
        lambda model: asking.rate_relations(model, ANTHEM, [("Afghan National Anthem", ["country", "composer"])], 3),
        [[0.7, 0.3]],
    ),
    "tog_entities": (
        '{"scores": {"2": 1.0}}',
        lambda model: asking.rate_entities(model, ANTHEM, [("location.country.religions", ["Islam", "Hinduism"])]),
        [[0.0, 1.0]],
    ),
    "tog_enough": ('{"enough": false}', lambda model: asking.is_enough(model, ANTHEM, FACTS, False), False),
    "tog_enough_memory": ('{"enough": true}', lambda model: asking.is_enough(model, ANTHEM, FACTS, True), True),
    "tog_answer": ('{"answers": []}', lambda model: asking.answers_from(model, ANTHEM, FACTS, False), []),
    "tog_answer_memory": (
        '{"answers": ["Islam"]}',
        lambda model: asking.answers_from(model, ANTHEM, FACTS, True),
        ["Islam"],
    ),
    "top_relations_few_shot": (
        "A: [2, 0, 1]",
        lambda model: asking.pick_chains(model, ANTHEM, [["-> a", "-> b", "<- c -> d"]], [2], True),
        [[2, 0]],
    ),
    "top_relations_zero_shot": (
        "[1]",
        lambda model: asking.pick_chains(model, ANTHEM, [["-> a", "-> b"]], [1], False),
        [[1]],
    ),
    "top_entities": (
        "[0, 3]",
        lambda model: asking.pick_entities(
            model,
            "The movie featured Miley Cyrus and was produced by Tobin Armbrust?",
            [
                Group("[Entity] Miley Cyrus -> [Relation] film.actor.film", ("So Undercover", "The Last Song")),
                Group("[Entity] Tobin Armbrust -> [Relation] film.film.produced_by", ("Let Me In", "So Undercover")),
            ],
            3,
        ),
        [0, 3],
    ),
    "top_pair": (
        "Candidate A is too broad. Candidate B connects the mascot to teams.\n[B]",
        lambda model: asking.first_is_better(
            model,
            SERIES,
            [
                PathPair(
                    "-> GIVEN_TOPIC_ENTITY: m.03_dwn",
                    "-> sports.mascot.team <- common.webpage.topic",
                    "<- sports.sports_team.team_mascot <- award.award_nomination.award_nominee",
                )
            ],
        ),
        [False],
    ),
    "top_relevant": (
        "The candidate is too broad.\n[NOT RELEVANT]",
        lambda model: asking.first_is_better(
            model,
            SERIES,
            [
                PathPair(
                    "-> GIVEN_TOPIC_ENTITY: m.03_dwn <- sports.sports_team.team_mascot",
                    "",
                    "<- baseball.baseball_league.teams",
                )
            ],
        ),
        [True],
    ),
    "top_answered": (
        "Its ends are teams, not years.\n[NOT ANSWERED]",
        lambda model: asking.is_answered(model, SERIES, "m.03_dwn <- sports.sports_team.team_mascot = Giants"),
        False,
    ),
    "top_scores": (
        '{"scores": {"1": 0.1, "2": 0.8}}',
        lambda model: asking.rate_paths(model, SERIES, [["-> a", "<- b"]]),
        [[0.1, 0.8]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_sent_and_how_its_reply_is_read(name):
    reply, send, expected = CASES[name]
    model = Sends(reply)
    assert send(model) == expected
    assert matches_golden(f"paths/{name}", model.sent)


def test_every_prompt_file_is_sent_in_some_case():
    sent = "\n".join(file.read_text("utf-8") for file in (GOLDEN / "paths").iterdir())
    for prompt in vars(asking).values():
        if isinstance(prompt, asking.Prompt):
            assert prompt.user.partition("$")[0].strip() in sent, prompt.name


@pytest.mark.parametrize(
    "reply", ["", "[A, B]", "[7]", '{"scores": {"9": 1.0}}', '{"scores": {"1": 3}}', "perhaps [C]"]
)
def test_a_reply_that_cannot_be_read_is_asked_for_again_and_then_the_order_stands(reply):
    model = Sends(reply)
    assert asking.pick_chains(model, "q", [["-> a", "-> b"]], [1], False) == [[0]]
    assert asking.rate_paths(model, "q", [["-> a", "-> b"]]) == [[0.0, 0.0]]
    assert asking.first_is_better(model, "q", [PathPair("", "-> a", "-> b")]) == [True]
    assert len(model.sent) == 6
