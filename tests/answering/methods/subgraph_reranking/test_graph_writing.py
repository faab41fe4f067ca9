"""A text written by a model is used only where it names every entity and no stranger."""

import pytest

from clew.answering.exploring import between
from clew.answering.methods.subgraph_reranking.graph_to_text import GraphWriter, linearize, rates
from clew.answering.methods.subgraph_reranking.subgraph import SubgraphExtractor
from clew.core.errors import InputError
from clew.core.trace import recording
from clew.models.scripted import ScriptedModel
from clew.store.building import build
from clew.store.open_base import OpenBase

GOOD = "BBS2 is associated with Bardet-Biedl syndrome, which has the phenotype Polydactyly, an Abnormal finger."
DROPS = "BBS2 is associated with Bardet-Biedl syndrome."
INVENTS = GOOD + " It was described by Georges Bardet in 1920."


@pytest.mark.parametrize(("reply", "faithful"), [(GOOD, True), (DROPS, False), (INVENTS, False)])
def test_a_text_that_drops_or_invents_an_entity_is_replaced_and_the_trace_says_so(kb, reply, faithful):
    [subgraph] = SubgraphExtractor(kb).extract([kb.find("BBS2")], [kb.find("P4")])
    with recording() as recorder:
        [written] = GraphWriter(ScriptedModel.saying(reply), kb).write([subgraph])
    assert written.check.faithful == faithful
    assert written.text == (reply if faithful else linearize(kb, subgraph))
    assert len(recorder.fallbacks) == (not faithful)


def test_the_check_names_what_is_missing_and_what_is_strange(kb):
    [subgraph] = SubgraphExtractor(kb).extract([kb.find("BBS2")], [kb.find("P4")])
    writer = GraphWriter(ScriptedModel.saying(DROPS, INVENTS, GOOD), kb)
    dropped, invented, good = (writer.write([subgraph])[0].check for _ in range(3))
    assert dropped.missing == ("Abnormal finger", "Polydactyly")
    assert not dropped.candidate
    assert dropped.question_entities == (1, 1)
    assert set(invented.strangers) == {"Georges Bardet", "1920"}
    table = rates([dropped, invented, good])
    assert table.coverage == pytest.approx(1 - 2 / 12)
    assert table.candidates == pytest.approx(2 / 3)
    assert table.hallucinated == pytest.approx(1 / 3)
    assert table.used == pytest.approx(1 / 3)


def test_nothing_is_asked_about_entities_without_a_path(kb):
    model = ScriptedModel.saying(GOOD)
    [subgraph] = SubgraphExtractor(kb).extract([], [kb.find("P4")])
    [written] = GraphWriter(model, kb).write([subgraph])
    assert (written.text, model.asked) == ("Abnormal finger", [])


def test_a_base_tells_a_subgraph_in_sentences_where_it_is_asked_to(tmp_path, tiny_tables):
    build(tiny_tables, tmp_path / "tiny.kb")
    tools = OpenBase.open(tmp_path / "tiny.kb", embedder="hash")
    shown = between(tools.with_model(ScriptedModel.saying(GOOD)), ["BBS2", "Abnormal finger"], write=True)
    assert shown.to_dict()["written"]["text"] == GOOD
    with pytest.raises(InputError, match="--model"):
        between(tools, ["BBS2", "Abnormal finger"], write=True)
    assert "written" not in between(tools, ["BBS2", "Abnormal finger"]).to_dict()
