"""The long run: `make campaign`. Stopped and started again, it goes on where it was.

    python tests/campaign/run.py --out .campaign [--hours 8] [--only kills,flips]

It writes `state.json`, from which it goes on, and `report.md`. Each failure has a seed: `--only NAME --seed N` tries
that one alone and prints what went wrong.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from campaigns import CAMPAIGNS, Campaign  # noqa: E402 - found by the paths above
from commands import Writers  # noqa: E402

FIRST_SEED = 1_000
"""Those below are in the short run."""
SLICE = 20.0
"""Seconds for which one campaign goes on before the next has its turn."""
KEPT = 50
"""Failures of a campaign that are kept with their words."""


@dataclass
class Standing:
    """How far a campaign is."""

    tries: int = 0
    next_seed: int = FIRST_SEED
    failed: int = 0
    seconds: float = 0.0
    failures: list[dict[str, object]] = field(default_factory=list)


def main() -> None:
    """Go on until every campaign is done or the time is over."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--out", type=Path, default=Path(".campaign"))
    asked.add_argument("--hours", type=float, default=1e9)
    asked.add_argument("--only", default="")
    asked.add_argument("--seed", type=int)
    given = asked.parse_args()
    chosen = [one for one in CAMPAIGNS if not given.only or one.name in given.only.split(",")]
    given.out.mkdir(parents=True, exist_ok=True)
    os.environ["CLEW_CACHE"] = str((given.out / "cache").resolve())
    with tempfile.TemporaryDirectory(prefix="clew-campaign-") as place:
        writers = Writers(Path(place) / "bases")
        if given.seed is not None:
            for one in chosen:
                print(one.name, given.seed, one.once(writers, given.seed, Path(place)) or "nothing went wrong")
            return
        go_on(chosen, writers, Path(place), given.out, time.monotonic() + given.hours * 3600)


def go_on(chosen: list[Campaign], writers: Writers, place: Path, out: Path, end: float) -> None:
    """Give each turn to the campaign that is least far, and write down where they are."""
    standings = read_state(out / "state.json")
    while time.monotonic() < end:
        waiting = [one for one in chosen if standings.setdefault(one.name, Standing()).tries < one.long]
        if not waiting:
            break
        least = min(waiting, key=lambda one: standings[one.name].tries / one.long)
        turn(least, standings[least.name], writers, place, min(end, time.monotonic() + SLICE))
        write_state(out / "state.json", standings)
        (out / "report.md").write_text(report(standings), "utf-8")
    print(report(standings))


def turn(campaign: Campaign, standing: Standing, writers: Writers, place: Path, end: float) -> None:
    """Try seed after seed until the turn is over."""
    while time.monotonic() < end and standing.tries < campaign.long:
        begun = time.monotonic()
        wrong = campaign.once(writers, standing.next_seed, place)
        standing.seconds += time.monotonic() - begun
        standing.tries += campaign.tries
        if wrong:
            standing.failed += 1
            if len(standing.failures) < KEPT:
                standing.failures.append({"seed": standing.next_seed, "wrong": wrong})
        standing.next_seed += 1


def read_state(file: Path) -> dict[str, Standing]:
    """Where an earlier run was."""
    return {name: Standing(**told) for name, told in json.loads(file.read_text()).items()} if file.exists() else {}


def write_state(file: Path, standings: dict[str, Standing]) -> None:
    """Written beside and renamed: a kill loses one turn at most."""
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps({name: asdict(one) for name, one in standings.items()}, indent=1), "utf-8")
    draft.replace(file)


def report(standings: dict[str, Standing]) -> str:
    """The table of all campaigns, then what went wrong, each with the seed that shows it again."""
    lines = [
        "| campaign | what is tried | tries | of | failures | seconds |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for one in CAMPAIGNS:
        at = standings.get(one.name, Standing())
        lines.append(f"| {one.name} | {one.what} | {at.tries:,} | {one.long:,} | {at.failed:,} | {at.seconds:,.0f} |")
    for name, at in standings.items():
        for failure in at.failures:
            words = "; ".join(map(str, failure["wrong"]))[:500]  # type: ignore[call-overload]
            lines += ["", f"- {name}, seed {failure['seed']}: {words}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
