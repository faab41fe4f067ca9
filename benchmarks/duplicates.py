"""How many of the duplicates that are found are ones: `python benchmarks/duplicates.py HPO.kb` prints JSON.

Diseases of OMIM and of Orphanet that `clew dedup` takes for one thing; a hundred of them, drawn at random, were judged
one by one (data/duplicates/hpo_judged.tsv): `same`, or `narrower` where OMIM's entry is one genetic form of what
Orphanet describes as a whole under the same name.
"""

import csv
import json
import sys
import time
from collections import Counter
from pathlib import Path

from clew.store.curation.duplicates import find_duplicates
from clew.store.open_base import OpenBase

JUDGED = Path(__file__).parent / "data" / "duplicates" / "hpo_judged.tsv"


def main(folder: str) -> None:
    begun = time.perf_counter()
    pairs = find_duplicates(OpenBase.open(folder))
    seconds = time.perf_counter() - begun
    found = {(pair.first.key, pair.second.key) for pair in pairs}
    sources = Counter("/".join(sorted(key.partition(":")[0] for key in pair)) for pair in found)
    with JUDGED.open(encoding="utf-8") as lines:
        verdicts = {(row["first"], row["second"]): row["verdict"] for row in csv.DictReader(lines, delimiter="\t")}
    told = Counter(verdicts[pair] for pair in found & verdicts.keys())
    print(json.dumps({"pairs": len(pairs), "sources": sources, "judged": told, "seconds": round(seconds, 1)}))


if __name__ == "__main__":
    main(sys.argv[1])
