"""Questions over invented schemas in nine languages, names known: how many get the right plan, language by language.

    python benchmarks/languages_development.py SCHEMA_QUESTIONS [--only de ja]

What reads other languages is developed on these, never on data/languages/metaqa.jsonl. A line of
data/languages/development.jsonl has eight translations of a line of SCHEMA_QUESTIONS/questions.jsonl, or a question of
its own with its query. The reader was trained on these schemas in English.
"""

import argparse
import json
import tempfile
from pathlib import Path

from clew.answering.reading.encoders import SHIPPED, Encoders
from clew.answering.reading.other_languages import ForeignEncoders
from clew.lab.training.reader.examples import SchemaExamples, read_sources
from clew.lab.training.reader.fitting import measure
from clew.models.embedding.multilingual import MultilingualEmbedder
from clew.models.embedding.opening import CachedEmbedder

parser = argparse.ArgumentParser()
parser.add_argument("schema_questions", type=Path)
parser.add_argument("--only", nargs="*", default=("en", "de", "es", "fr", "it", "pt", "ja", "ar", "hi"))
DEVELOPMENT = Path(__file__).parent / "data" / "languages" / "development.jsonl"


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def examples(source: Path, code: str) -> list[SchemaExamples]:
    english = lines(source / "questions.jsonl")
    rows = [{**english[row["line"]], **row} if "line" in row else row for row in lines(DEVELOPMENT)]
    told = [json.dumps({**row, "question": row.get(code, row["question"])}) for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "schemas.jsonl").write_bytes((source / "schemas.jsonl").read_bytes())
        (Path(folder) / "questions.jsonl").write_text("\n".join(told), "utf-8")
        return read_sources([Path(folder)])


def main() -> None:
    given, embedder = parser.parse_args(), CachedEmbedder(MultilingualEmbedder())
    for code in given.only:
        totals = {"right": 0.0, "proposed": 0.0, "questions": 0.0}
        for schema in examples(given.schema_questions, code):
            foreign = ForeignEncoders(SHIPPED, code, embedder, schema.vocabulary.words)
            found = measure([schema], Encoders(SHIPPED) if code == "en" else foreign)
            for name in totals:
                totals[name] += found["questions"] * (1 if name == "questions" else found[name])
        print(code, {name: round(total) for name, total in totals.items()}, flush=True)


main()
