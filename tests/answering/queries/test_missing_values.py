"""NaN is missing, not a value."""

import pyarrow as pa
import pyarrow.parquet as pq

import clew


def test_a_value_that_is_no_number_is_not_an_answer(tmp_path):
    table = pa.table({"name": ["Alpha", "Beta"], "mass": [float("nan"), 2.5]})
    pq.write_table(table, tmp_path / "rocks.parquet")
    clew.build([tmp_path / "rocks.parquet"], tmp_path / "rocks.kb")
    base = clew.open(tmp_path / "rocks.kb")
    assert base.ask("What is the mass of Beta?").value == 2.5
    answer = base.ask("What is the mass of Alpha?")
    assert answer.state == "not_found"
    assert "nan" not in answer.text.lower()
