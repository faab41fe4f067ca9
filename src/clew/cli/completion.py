"""`clew completion`: what a shell needs to complete commands, options and values."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]

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
