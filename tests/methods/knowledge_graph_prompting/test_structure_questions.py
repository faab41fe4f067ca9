"""Pages, tables and sections are found where the question says."""

from clew.methods.knowledge_graph_prompting.structure_questions import references, without_references


def test_references_are_read_with_their_numbers_orders_and_headings():
    def read(question):
        return [(r.kind, r.number, r.ordinal, r.heading) for r in references(question)]

    assert read("difference between page 1 and table 2") == [("page", "1", None, None), ("table", "2", None, None)]
    assert read("Compare pages 2, 3 and 5") == [("page", n, None, None) for n in ("2", "3", "5")]
    assert read("the last page and the second table") == [("page", None, 0, None), ("table", None, 2, None)]
    assert read('section "Salt works"') == [("section", None, None, "Salt works")]
    assert read("Which table tennis player turned the page?") == []


def test_what_only_says_where_to_look_is_taken_out_of_the_question():
    question = "In Table 2 of report.pdf, which year had the most alarms?"
    assert without_references(question, references(question)) == "which year had the most alarms?"
