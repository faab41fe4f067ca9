"""`clew serve` and `clew mcp`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from clew.cli.options import AsJson, Groups, group_names
from clew.cli.output import err, print_json
from clew.core.addresses import is_postgres
from clew.core.errors import InputError, needing

if TYPE_CHECKING:  # optional dependencies
    from clew.server.team.provider import Provider
    from clew.server.team.team import Team

MOST_WORKERS = 8
"""Default limit of processes, since each takes about 100 MB."""


def serve(
    bases: Annotated[
        list[str] | None,
        Argument(metavar="KB…", help="Folders of knowledge bases, or postgresql://…#BASE.", show_default=False),
    ] = None,
    documents: Annotated[
        list[Path] | None, Option("--documents", metavar="FOLDER", help="Base that grows by uploads.")
    ] = None,
    model: Annotated[
        list[str] | None, Option("--model", metavar="[NAME=]SPEC", help="Model offered on the page.")
    ] = None,
    host: Annotated[str, Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option("--port", min=0, max=65535, help="Port. 0 picks a free port.")] = 8321,
    host_name: Annotated[list[str] | None, Option("--host-name", help="Host name of the server, repeatable.")] = None,
    token: Annotated[str | None, Option("--token", envvar="CLEW_TOKEN", help="Admin token with full access.")] = None,
    keys: Annotated[Path | None, Option("--keys", help="TOML file of tokens and their permissions.")] = None,
    users: Annotated[
        Path | None, Option("--users", metavar="FILE", help="File of user accounts, created at the first start.")
    ] = None,
    state: Annotated[
        str | None,
        Option(
            "--state",
            metavar="postgresql://…",
            help="Database for users, runs and bases created on the page, shared by several servers. "
            "Users sign in unless --token or --keys is given.",
        ),
    ] = None,
    oidc: Annotated[
        Path | None,
        Option(
            "--oidc", metavar="FILE", help="TOML file of an OIDC provider for sign-in. Requires --users or --state."
        ),
    ] = None,
    runs: Annotated[Path | None, Option("--runs", help="Folder for finished runs, to keep links valid.")] = None,
    made: Annotated[
        Path | None, Option("--bases", metavar="FOLDER", help="Folder for bases that admins create on the page.")
    ] = None,
    source: Annotated[
        list[str] | None,
        Option(
            "--source",
            metavar="PLACE",
            help="File, folder or address allowed as a source of bases created on the page.",
        ),
    ] = None,
    evaluations: Annotated[
        Path | None, Option("--evaluations", metavar="FOLDER", help="Show the runs of `clew eval --out FOLDER`.")
    ] = None,
    max_cost: Annotated[float | None, Option("--max-cost", min=0, help="Total dollars for models.")] = None,
    max_calls: Annotated[int | None, Option("--max-calls", min=0, help="Total number of model calls.")] = None,
    per_minute: Annotated[int, Option("--per-minute", min=1, help="Requests per minute and client.")] = 600,
    workers: Annotated[
        int | None,
        Option("--workers", min=1, help="Processes for questions without a model.", show_default="one a core"),
    ] = None,
    log: Annotated[bool, Option("--log", help="Log every request, without its question.")] = False,
    groups: Annotated[
        str | None, Option("--groups", metavar="GROUP,…", help="Groups of the users. Default: none, only public data.")
    ] = None,
) -> None:
    """Serve bases: a page to ask and explore, a REST API, an OpenAI-compatible endpoint and MCP."""
    from clew.models.budget import Budget

    with needing("web"):
        from clew.server.access import EVERY_BASE, Access, Grant, digest_of, read_keys
        from clew.server.managed import Sources
        from clew.server.running import run
        from clew.server.settings import (
            ClientLimits,
            Door,
            ServerSettings,
            is_loopback,
            named_bases,
            named_models,
            named_places,
        )
        from clew.server.team.team import Team
    if state is not None:
        _refuse_files(state, {"--users": users, "--runs": runs, "--bases": made, "--documents": documents or None})
    if not bases and not documents and made is None and state is None:
        raise InputError("no base given: name a knowledge base or --documents FOLDER, as in `clew serve base.kb`")
    if sum(given is not None for given in (token, keys, users)) > 1:
        raise InputError("--token, --keys and --users exclude each other: give one of them")
    if token is not None and len(token) < 16:
        raise InputError("the token has fewer than 16 characters: create one with `openssl rand -hex 16`")
    access: Door = Access() if keys is None else read_keys(keys)
    if token is not None:
        access = Access((Grant("token", digest_of(token), {EVERY_BASE: "admin"}),))
    shared = None
    if state is not None:
        from clew.server.database import DatabaseStore  # optional dependency

        shared = DatabaseStore(state)
    if users is not None:
        access = _team(Team.open(users))
    elif shared is not None and token is None and keys is None:
        access = _team(Team.of(shared))
    if access.is_open and not is_loopback(host):
        raise InputError(f"{host} is reachable from other machines: add --users, --token or --keys")
    names = ("localhost", "127.0.0.1", "[::1]", host.lower(), *(name.lower() for name in host_name or ()))
    settings = ServerSettings(
        named_places(bases or []),
        named_bases(documents or []),
        named_models(model or []),
        access,
        ClientLimits(per_minute=per_minute),
        names,
        None if oidc is None else _provider(oidc, has_users=isinstance(access, Team)),
        runs,
        evaluations,
        made,
        shared,
        Sources(tuple(source or ())),
        Budget(dollars=max_cost, calls=max_calls),
        workers or min(os.cpu_count() or 1, MOST_WORKERS),
        group_names(groups) or (),
        err.line if log else None,
        warm=True,
    )
    os.environ.pop("CLEW_TOKEN", None)  # child processes need no token
    run(settings, host, port, lambda where: err.line(f"Clew listens on {where}"))


def _provider(file: Path, *, has_users: bool) -> Provider:
    if not has_users:
        raise InputError("--oidc requires a store of users: add --users FILE or --state")
    with needing("oidc"):
        from clew.server.team.provider import Provider, read_provider
    return Provider(read_provider(file))


def _refuse_files(state: str, given: Mapping[str, object]) -> None:
    if not is_postgres(state):
        raise InputError("--state requires a database: pass postgresql://USER@HOST/DATABASE")
    for option, place in given.items():
        if place is not None:
            raise InputError(
                f"--state stores everything in the database: leave out {option}, and create bases on the page"
            )


def _team(team: Team) -> Team:
    """Return the users. On the first start, create an admin and print the password."""
    password = team.users.make_first_admin()
    if password is not None:
        err.line(f"The first user is admin, with the password {password}: sign in and choose another one.")
    return team


def users(
    place: Annotated[
        str, Argument(metavar="FILE", help="The file of `clew serve --users`, or the database of `--state`.")
    ],
    new_password: Annotated[
        str | None, Option("--new-password", metavar="NAME", help="Reset this user's password.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the users of a server, or reset a password. Use the page for all other changes."""
    with needing("web"):
        from clew.server.store import Actor
        from clew.server.team.team import Team
    if not is_postgres(place) and not Path(place).is_file():
        raise InputError(f"no file of users {place}: pass the file of `clew serve --users`")
    team = Team.open(place)
    if new_password is not None:
        password = team.users.reset_password(Actor("the command line"), new_password)
        if as_json:
            print_json({"name": new_password, "password": password})
        else:
            typer.echo(password)
        return
    found = team.users.all()
    if as_json:
        print_json([user.model_dump() for user in found])
        return
    for user in found:
        roles = ", ".join(f"{role} of {base}" for base, role in user.roles.items()) or "no role"
        typer.echo(f"{user.name}  {roles}{'' if user.active else '  (switched off)'}")


def mcp(
    bases: Annotated[list[str], Argument(metavar="KB…", help="Folders of bases, or postgresql://…#BASE.")],
    groups: Groups = None,
) -> None:
    """Offer tools, resources and prompts about bases to an agent (Model Context Protocol, stdio)."""
    with needing("web"):
        from clew.server.asking import Asker
        from clew.server.mcp import McpServer
        from clew.server.runs import Metrics, Runs
        from clew.server.serving import Served
        from clew.server.settings import ServerSettings, named_places
    served = Served(ServerSettings(named_places(bases), groups=group_names(groups) or ()))
    for base in served.bases.values():
        base.base()
    server = McpServer(Asker(served, Runs(), Metrics()), served.bases)
    for line in sys.stdin:
        reply = server.handle(line)
        if reply is not None:
            sys.stdout.write(json.dumps(reply, ensure_ascii=False) + "\n")
            sys.stdout.flush()
