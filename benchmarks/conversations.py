"""How well follow-up questions are answered without a model: conversations of three turns over bases from packages.

usage: python benchmarks/conversations.py FOLDER [--show]

FOLDER holds for every base of benchmarks/data/real_bases a folder of its name with nodes.jsonl and edges.tsv, as its
make.py writes them. A turn is right where exactly the gold answers match, the value is the gold one, nothing is put
forward where there is no answer, or, for "why", where the reasons of the last answer are told.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import clew
from clew.answering.conversation import Conversation
from clew.lab.evaluation.judging import same_value

DATA = Path(__file__).parent / "data"


def is_right(turn: dict[str, Any], conversation: Conversation) -> bool:
    """Whether the last turn of a conversation was answered as its gold says."""
    answer = conversation.turns[-1].answer
    if turn["kind"] == "why":
        before = conversation.turns[-2].answer
        return answer.candidates == before.candidates and bool(answer.text) and answer.text != before.text
    if "value" in turn:
        return same_value(answer.value, turn["value"])
    found = {ref.key for ref in conversation.tools.kb.refs(conversation.turns[-1].nodes.array)}
    return answer.value in (None, False) and found == set(turn["answers"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", action="store_true", help="print what was wrong")
    given = parser.parse_args()
    told: dict[str, list[bool]] = defaultdict(list)
    given_first: dict[str, list[bool]] = defaultdict(list)
    lines = [
        line for file in sorted((DATA / "conversations").glob("*.jsonl")) for line in file.read_text().splitlines()
    ]
    by_base: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        one = json.loads(line)
        by_base[one["base"]].append(one)
    with tempfile.TemporaryDirectory() as target:
        for name, conversations in by_base.items():
            schema = DATA / "real_bases" / name / "schema.toml"
            sources = [given.folder / name / "nodes.jsonl", given.folder / name / "edges.tsv"]
            built = Path(target) / f"{name}.kb"
            clew.build(sources, built, schema=schema if schema.is_file() else None)
            base = clew.open(built)
            for one in conversations:
                conversation, all_right = base.conversation(), True
                for turn in one["turns"]:
                    answer = conversation.ask(turn["question"])
                    right = is_right(turn, conversation)
                    told[turn["kind"]].append(right)
                    if turn["kind"] != "ask" and all_right:
                        given_first[turn["kind"]].append(right)
                    if given.show and not right:
                        print(json.dumps({"id": one["id"], **turn, "said": answer.text, "sure": answer.certainty}))
                    all_right = all_right and right
    for kind, rows in (*sorted(told.items()), ("later", [r for k, some in told.items() if k != "ask" for r in some])):
        after = given_first.get(kind, [r for some in given_first.values() for r in some] if kind == "later" else [])
        shown = {"kind": kind, "n": len(rows), "right": sum(rows), "after right turns": f"{sum(after)}/{len(after)}"}
        print(json.dumps(shown))


if __name__ == "__main__":
    main()
