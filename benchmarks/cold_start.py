"""The CPU seconds of a process that asks one question and ends, beside those of Python and NumPy alone; prints JSON.

usage: python benchmarks/cold_start.py BASE [QUESTION]          such as .demo/hpo.kb after `clew embed .demo/hpo.kb`
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence

from clew.cli.demo import QUESTIONS

RUNS = 9


def main() -> None:
    """Every command in turn, so that other work on the machine slows all of them alike; the first run only warms up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", metavar="BASE")
    parser.add_argument("question", metavar="QUESTION", nargs="?", default=QUESTIONS[0])
    given = parser.parse_args()
    commands = {
        "python -c pass": ("-c", "pass"),
        "import clew": ("-c", "import clew"),
        "import numpy": ("-c", "import numpy"),
        "clew ask": ("-m", "clew", "ask", given.base, given.question),
        "clew ask --json": ("-m", "clew", "ask", given.base, given.question, "--json"),
    }
    runs = [{name: cpu_seconds(command) for name, command in commands.items()} for _ in range(RUNS + 1)][1:]
    found = {name: sorted(run[name] for run in runs) for name in commands}
    shown = {
        name: {"median": statistics.median(many), "least": many[0], "most": many[-1]} for name, many in found.items()
    }
    print(json.dumps({"runs": RUNS, "cpu_seconds": shown}, indent=1))


def cpu_seconds(arguments: Sequence[str]) -> float:
    """User and system time of one process; its modules are compiled ahead, as pip does."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 3)


if __name__ == "__main__":
    main()
