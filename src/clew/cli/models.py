"""`clew models`, `batch run` and `batch status`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from clew.cli.options import AsJson
from clew.cli.output import out, print_json, print_table, progress_bar, say
from clew.core.errors import InputError
from clew.core.trace import concurrently
from clew.models import batch_runner
from clew.models.batch import answer_batch
from clew.models.batch_runner import read_lines, waiting
from clew.models.opening import configured, open_model, probe
from clew.models.protocol import Capabilities
from clew.models.settings import NamedModel, Settings


def models(
    spec: Annotated[
        list[str] | None, typer.Argument(metavar="MODEL…", help="Only these; a name or what --model takes.")
    ] = None,
    try_out: Annotated[
        bool, typer.Option("--try", help="Find out what each can do, with one short request that may cost something.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the language models that are configured or run on this machine, and see whether they answer.

    Nothing is spent, unless with --try.
    """
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
        say(
            "no models: start Ollama or LM Studio, set OPENAI_API_KEY, "
            f"or name a server's models in {settings.config_file} (docs/models.md)"
        )


def _in_words(known: Capabilities | None) -> str:
    """What a model can do, in a few words."""
    if known is None:
        return ""
    able = {"JSON schema": known.json_schema, "logprobs": known.logprobs, "reasoning": known.reasoning}
    size = [] if known.size == "unknown" else [known.size]
    return ", ".join([*size, f"{known.context_tokens:,} tokens", *(name for name, can in able.items() if can)])


Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of `--model batch:DIR`.", show_default=False)]


def run(
    folder: Folder,
    model: Annotated[
        str, typer.Option("--model", help="What answers: hf:FOLDER, gguf:FILE, http://…#NAME, openai:NAME.")
    ],
    as_json: AsJson = False,
) -> None:
    """Answer the requests that wait in a folder with a model of your own, on a GPU where there is one."""
    if not (folder / "requests.jsonl").is_file():
        raise InputError(f"{folder} holds no requests.jsonl: run with --model batch:{folder} first")
    if model.startswith("hf:"):
        added = batch_runner.run(folder, model)
    else:
        opened = None if model.startswith("batch:") else open_model(model)
        if opened is None:
            raise InputError(f"--model {model}: expected a model that answers, such as http://127.0.0.1:8080/v1#qwen")
        with progress_bar("replies") as move:
            added = answer_batch(folder, opened, on_reply=move)
    left = len(waiting(folder))
    if as_json:
        print_json({"added": added, "waiting": left})
    else:
        out.print(f"{added:,} replies added, {left:,} requests wait")


def status(folder: Folder, as_json: AsJson = False) -> None:
    """Say how many requests wait in a folder and how many replies it holds."""
    if not folder.is_dir():
        raise InputError(f"no folder {folder}")
    left, replies = len(waiting(folder)), len({line["custom_id"] for line in read_lines(folder / "replies.jsonl")})
    if as_json:
        print_json({"waiting": left, "replies": replies})
    else:
        out.print(f"{left:,} requests wait, {replies:,} replies are there")
