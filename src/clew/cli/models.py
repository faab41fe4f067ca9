"""`clew models`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from clew.cli.options import AsJson
from clew.cli.output import print_json, print_table, say
from clew.core.trace import concurrently
from clew.models.opening import configured, probe
from clew.models.settings import NamedModel, Settings


def models(
    spec: Annotated[
        list[str] | None, typer.Argument(metavar="MODEL…", help="Only these; a name or what --model takes.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the language models that are configured, and see whether they answer; nothing is spent."""
    settings = Settings.load()
    wanted = configured(settings)
    if spec:
        wanted = {one: settings.models.get(one, NamedModel(one)) for one in spec}
    probes = concurrently(lambda item: probe(item[0], item[1], settings), list(wanted.items()))
    if as_json:
        print_json([asdict(one) for one in probes])
        return
    if probes:
        rows = [(one.name, one.spec, "ready" if one.ready else "not ready", one.detail) for one in probes]
        print_table("", ("name", "model", "state", "detail"), rows)
    else:
        say(f"no models are configured: set OPENAI_API_KEY, or name models in {settings.config_file}")
