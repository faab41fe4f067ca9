"""`clew mcp`: a base's tools for agents, over standard input and output."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from clew.core.errors import MissingExtraError


def mcp(
    bases: Annotated[list[Path], typer.Argument(metavar="KB…", help="Folders of knowledge bases.")],
) -> None:
    """Offer ask, find, show, neighbors and subgraph to an agent (Model Context Protocol, stdio)."""
    try:
        from clew.web.asking import Asker
        from clew.web.mcp import McpServer
        from clew.web.metrics import Metrics
        from clew.web.runs import Runs
        from clew.web.serving import Served
        from clew.web.settings import ServerSettings, named_bases
    except ImportError as missing:
        raise MissingExtraError(missing.name or "fastapi", "web") from None
    served = Served(ServerSettings(named_bases(bases)))
    for base in served.bases.values():
        base.tools()
    server = McpServer(Asker(served, Runs(), Metrics()), served.bases)
    for line in sys.stdin:
        reply = server.handle(line)
        if reply is not None:
            sys.stdout.write(json.dumps(reply, ensure_ascii=False) + "\n")
            sys.stdout.flush()
