"""`clew models`, `batch`, `doctor` and `completion`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from clew.cli.options import AsJson
from clew.cli.output import err, out, print_json, print_table, progress_bar, tell
from clew.core.errors import InputError

if TYPE_CHECKING:
    from clew.cli.diagnosis import Diagnosis
    from clew.models.protocol import Capabilities


def models(
    spec: Annotated[
        list[str] | None, Argument(metavar="MODEL…", help="Check only these models, by name or as for --model.")
    ] = None,
    try_out: Annotated[
        bool, Option("--try", help="Detect capabilities by one short request each, which may cost money.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the language models that are configured or run on this machine, and check whether they reply.

    This is free without --try.
    """
    from clew.core.trace import concurrently
    from clew.models.opening import configured, probe
    from clew.models.settings import NamedModel, Settings

    settings = Settings.load()
    wanted = configured(settings)
    if spec:
        wanted = {one: settings.models.get(one, NamedModel(one)) for one in spec}
    probes = concurrently(lambda item: probe(*item, settings, try_out=try_out), list(wanted.items()))
    if as_json:
        print_json([asdict(one) for one in probes])
        return
    if probes:
        rows = [
            (one.name, one.spec, "ready" if one.ready else "not ready", one.detail, _in_words(one.capabilities))
            for one in probes
        ]
        print_table("", ("name", "model", "state", "detail", "known"), rows)
    else:
        err.line(
            "no models: start Ollama or LM Studio, set OPENAI_API_KEY, "
            f"or name a server's models in {settings.config_file} (docs/guides/models.md)"
        )


def _in_words(known: Capabilities | None) -> str:
    if known is None:
        return ""
    able = {"JSON schema": known.json_schema, "logprobs": known.logprobs, "reasoning": known.reasoning}
    size = [] if known.size == "unknown" else [known.size]
    return ", ".join([*size, f"{known.context_tokens:,} tokens", *(name for name, can in able.items() if can)])


Folder = Annotated[Path, Argument(metavar="DIR", help="The folder of `--model batch:DIR`.", show_default=False)]


def run(
    folder: Folder,
    model: Annotated[str, Option("--model", help="Model to use: hf:FOLDER, gguf:FILE, http://…#NAME, openai:NAME.")],
    as_json: AsJson = False,
) -> None:
    """Answer the pending requests of a folder with a model of your choice, on a GPU if available."""
    from clew.models import batch_runner
    from clew.models.batch import answer_batch
    from clew.models.opening import open_model

    if not (folder / "requests.jsonl").is_file():
        raise InputError(f"{folder} contains no requests.jsonl: run with --model batch:{folder} first")
    if model.startswith("hf:"):
        added = batch_runner.run(folder, model)
    else:
        opened = None if model.startswith("batch:") else open_model(model)
        if opened is None:
            raise InputError(f"--model {model}: expected a model that answers, such as http://127.0.0.1:8080/v1#qwen")
        with progress_bar("replies") as move:
            added = answer_batch(folder, opened, on_reply=move)
    left = len(batch_runner.waiting(folder))
    tell(as_json, {"added": added, "waiting": left}, f"{added:,} replies added, {left:,} requests wait")


def status(folder: Folder, as_json: AsJson = False) -> None:
    """Count the pending requests and the replies in a folder."""
    from clew.models.batch_runner import read_lines, waiting

    if not folder.is_dir():
        raise InputError(f"no folder {folder}")
    left, replies = len(waiting(folder)), len({line["custom_id"] for line in read_lines(folder / "replies.jsonl")})
    tell(as_json, {"waiting": left, "replies": replies}, f"{left:,} requests wait, {replies:,} replies are there")


def doctor(as_json: AsJson = False) -> None:
    """Show versions, extras, models, caches and permissions, and which data leave this machine.

    The exit status is 1 if there are problems, else 0.
    """
    from clew.cli.diagnosis import diagnose

    found = diagnose()
    if as_json:
        extras = [{**asdict(extra), "install": extra.install} for extra in found.extras]
        print_json({**asdict(found), "extras": extras, "offline": found.offline})
    else:
        show(found)
    if found.problems:
        raise typer.Exit(1)


def show(found: Diagnosis) -> None:
    """Print the diagnosis."""
    out.line(f"clew {found.clew}, Python {found.python}, {found.platform}")
    out.line(", ".join(f"{name} {have or 'MISSING'}" for name, have in found.packages.items()))
    rows = [(one.name, "there" if not one.missing else one.install, one.gives) for one in found.extras]
    print_table("Extras", ("extra", "state", "gives"), rows)
    out.line(f"language models: {', '.join(found.models) or 'none, and none is needed'}")
    out.line(f"embedder that ships: {found.embedder or 'does not work'}")
    if found.caches:
        print_table("Kept", ("what", "MB", "where"), [(k.what, round(k.bytes / 1e6, 1), k.path) for k in found.caches])
    leaving = "; ".join(found.leaves)
    out.line(f"leaves this machine when used: {leaving}" if leaving else "nothing leaves this machine")
    for problem in found.problems:
        out.line(f"PROBLEM: {problem}")
    if not found.problems:
        out.line("all is well")


PLACES = {
    "bash": "clew completion bash >> ~/.bashrc",
    "zsh": "clew completion zsh >> ~/.zshrc",
    "fish": "clew completion fish > ~/.config/fish/completions/clew.fish",
}
"""Command that installs the script of each shell."""


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Argument(help="Name of the shell.")]) -> None:
    """Print a completion script, such as `clew completion bash >> ~/.bashrc`."""
    typer.echo(f"# {PLACES[shell]}")
    typer.echo(get_completion_script(prog_name="clew", complete_var="_CLEW_COMPLETE", shell=shell))
