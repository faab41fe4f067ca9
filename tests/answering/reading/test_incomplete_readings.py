"""A reading that leaves out a part of the question is not put forward as found."""

import clew


def test_an_attribute_that_the_reading_leaves_out_makes_the_answer_unsure(tmp_path):
    file = tmp_path / "towers.csv"
    rows = ["Eiffel Tower,300,48.86,2.29", "Fernsehturm,368,52.52,13.41", "Torre de Belém,30,38.69,-9.22"]
    file.write_text("\n".join(["name,height,latitude,longitude", *rows]) + "\n", "utf-8")
    clew.build([file], tmp_path / "towers.kb")
    base = clew.open(tmp_path / "towers.kb")
    whole, part = (
        base.ask(f"What {asked} of the Eiffel Tower?") for asked in ("is the height", "are the latitude and longitude")
    )
    assert whole.value == 300
    assert len(part.columns) > 2 or part.state != "found"
