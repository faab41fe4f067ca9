"""`clew tune`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from clew.cli.options import AsJson, Base
from clew.cli.output import err, out, print_json, print_table, progress_bar, tell
from clew.core.errors import InputError

if TYPE_CHECKING:
    from clew.lab.evaluation.tuning import Tuning


def tune(
    base: Base,
    seconds: Annotated[float, Option("--seconds", min=1, help="Approximate time limit in seconds.")] = 300,
    questions: Annotated[
        str | None, Option("--questions", "-q", metavar="FILE", help="Questions with gold answers, as JSONL.")
    ] = None,
    seed: Annotated[int, Option("--seed", help="Random seed for synthetic questions and splits.")] = 0,
    dry_run: Annotated[bool, Option("--dry-run", help="Show the choice without saving it.")] = False,
    undo: Annotated[bool, Option("--undo", help="Remove the saved choice and restore `auto`.")] = False,
    as_json: AsJson = False,
) -> None:
    """Choose the best method and options for a base, using its confirmed questions and synthetic questions."""
    from clew.answering.methods.tuned import forget_tuned, keep_tuned, read_tuned
    from clew.lab.evaluation.tuning import questions_of
    from clew.lab.evaluation.tuning import tune as find_best
    from clew.store.open_base import OpenBase

    if undo and (dry_run or questions):
        raise InputError("--undo removes the saved choice: leave out --dry-run and --questions")
    tools = OpenBase.open(base)
    folder = tools.local.folder
    if undo:
        was = forget_tuned(folder)
        tell(as_json, {"base": str(base), "undone": was}, f"{base}: {'forgotten' if was else 'it was not tuned'}")
        return
    if read_tuned(folder) is not None:
        raise InputError(f"{base} is already tuned: run `clew tune {base} --undo` first")
    err.line("making questions")
    dataset = questions_of(tools, questions, seed)
    with progress_bar(f"tuning by {len(dataset.questions)} questions") as progress:
        found = find_best(tools, dataset, seconds, seed=seed, progress=progress)
    if found.is_better and not dry_run:
        keep_tuned(folder, found.tuned())
    show(str(base), found, kept=found.is_better and not dry_run, as_json=as_json)


def show(base: str, found: Tuning, *, kept: bool, as_json: bool) -> None:
    """Print the candidates and the gain."""
    rows = [(str(one), count, round(100 * mean, 1)) for one, count, mean in found.tried]
    gain = [round(100 * value, 1) for value in (found.after - found.before, found.gain.low, found.gain.high)]
    if as_json:
        tried = [{"candidate": name, "questions": count, found.metric: mean} for name, count, mean in rows]
        print_json(
            {
                "base": base,
                "chosen": str(found.chosen),
                "kept": kept,
                "before": round(100 * found.before, 1),
                "after": round(100 * found.after, 1),
                "gain": gain,
                "questions": found.judged,
                "metric": found.metric,
                "ran_out_of_time": found.ran_out,
                "tried": tried,
            }
        )
        return
    print_table("Tried", ("candidate", "questions", found.metric), rows)
    told = f"{100 * found.before:.1f} → {100 * found.after:.1f} {found.metric}, {gain[0]:+} [{gain[1]:+}, {gain[2]:+}]"
    out.line(f"{found.chosen}: {told} on {found.judged} questions that did not choose it")
    if found.ran_out:
        out.line("the time ended the choice: more --seconds try more")
    if kept:
        out.line(f"`auto` answers so from now on; `clew tune {base} --undo` takes it back")
    else:
        out.line("nothing was changed")
