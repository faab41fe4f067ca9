"""Every prompt of Knowledge Graph Prompting and of its baselines, as it is sent; the questions are the paper's."""

import pytest

from clew.answering.methods.knowledge_graph_prompting.baselines import next_thought
from clew.answering.roles.read import ModelReader
from clew.answering.roles.write import ModelWriter
from clew.core.roles import Draft, Reading, Source
from prompts_sent import Sends, matches_golden

AVENT = "Anthony Avent played basketball for a High School that is located in a city approximately 8 mi west of where?"
SCHOOL = "Prior to Seton Hall, Avent played at Malcolm X Shabazz High School in Newark, New Jersey."
NEWARK = "Newark is the second largest city in the area, located approximately 8 mi west of lower Manhattan."
CASES = {
    "next_evidence": (  # Listing 1, the instruction of the traverser
        '{"enough": false, "next": "Newark lies west of lower Manhattan."}',
        lambda model: ModelWriter(model).next_evidence([Draft(AVENT, (SCHOOL,))])[0].texts,
        ("Newark lies west of lower Manhattan.",),
    ),
    "no_context": (  # Listing 2
        '{"answers": ["lower Manhattan"]}',
        lambda model: ModelWriter(model).answers([AVENT], 1)[0].texts,
        ("lower Manhattan",),
    ),
    "contexts": (  # Listing 3
        '{"answer": "lower Manhattan", "passages": [2]}',
        lambda model: ModelReader(model, 6).read([Reading(AVENT, (Source(SCHOOL), Source(NEWARK)))])[0].text,
        "lower Manhattan",
    ),
    "pairs": (  # Listing 4
        '{"answer": "lower Manhattan", "passages": [1]}',
        lambda model: ModelReader(model, 6).read([Reading(AVENT, (Source(f"{SCHOOL}\n{NEWARK}"),))])[0].text,
        "lower Manhattan",
    ),
    "chain_of_thought": (  # IRCoT's reasoning step
        "Newark is located 8 mi west of lower Manhattan. So the answer is: lower Manhattan.",
        lambda model: next_thought(model, AVENT, [Source(SCHOOL, "Anthony J. Avent")], ["Avent played in Newark."]),
        "Newark is located 8 mi west of lower Manhattan.",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_sent_and_how_its_reply_is_read(name):
    reply, send, expected = CASES[name]
    model = Sends(reply)
    assert send(model) == expected
    assert matches_golden(f"passages/{name}", model.sent)
