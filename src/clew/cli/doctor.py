"""`clew doctor` and `clew completion`: how this installation is, and how a shell completes its commands."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from clew.cli.options import AsJson
from clew.cli.output import out, print_json, print_table
from clew.diagnosis import Diagnosis, diagnose


def doctor(as_json: AsJson = False) -> None:
    """Show versions, extras, models, caches and permissions, and whether anything leaves this machine.

    The exit status is 0 where all is well, 1 where something does not work.
    """
    found = diagnose()
    if as_json:
        extras = [{**asdict(extra), "install": extra.install} for extra in found.extras]
        print_json({**asdict(found), "extras": extras, "offline": found.offline})
    else:
        show(found)
    if found.problems:
        raise typer.Exit(1)


def show(found: Diagnosis) -> None:
    """The diagnosis for people."""
    out.print(f"clew {found.clew}, Python {found.python}, {found.platform}", markup=False)
    out.print(", ".join(f"{name} {have or 'MISSING'}" for name, have in found.packages.items()), markup=False)
    rows = [(one.name, "there" if not one.missing else one.install, one.gives) for one in found.extras]
    print_table("Extras", ("extra", "state", "gives"), rows)
    shown = ", ".join(found.models) or "none, and none is needed"
    out.print(f"language models: {shown}", markup=False)
    out.print(f"embedder that ships: {found.embedder or 'does not work'}", markup=False)
    if found.caches:
        print_table("Kept", ("what", "MB", "where"), [(k.what, round(k.bytes / 1e6, 1), k.path) for k in found.caches])
    leaving = "; ".join(found.leaves)
    out.print(f"leaves this machine when used: {leaving}" if leaving else "nothing leaves this machine", markup=False)
    for problem in found.problems:
        out.print(f"PROBLEM: {problem}", markup=False)
    if not found.problems:
        out.print("all is well")


PLACES = {
    "bash": "clew completion bash >> ~/.bashrc",
    "zsh": "clew completion zsh >> ~/.zshrc",
    "fish": "clew completion fish > ~/.config/fish/completions/clew.fish",
}
"""Where the script goes."""


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="Which shell.")],
) -> None:
    """Print a completion script, such as `clew completion bash >> ~/.bashrc`."""
    typer.echo(f"# {PLACES[shell]}")
    typer.echo(get_completion_script(prog_name="clew", complete_var="_CLEW_COMPLETE", shell=shell))
