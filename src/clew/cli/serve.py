"""`clew serve` and `clew mcp`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.options import AsJson, Groups, group_names
from clew.cli.output import err, print_json
from clew.core.errors import InputError, needing

if TYPE_CHECKING:  # an extra
    from clew.server.database import DatabaseStore
    from clew.server.team.provider import Provider
    from clew.server.team.team import Team

MOST_WORKERS = 8
"""Each takes some 100 MB: more are for those who ask for them."""


def serve(
    bases: Annotated[
        list[str] | None,
        typer.Argument(metavar="KB…", help="Folders of knowledge bases, or postgresql://…#BASE.", show_default=False),
    ] = None,
    documents: Annotated[
        list[Path] | None, typer.Option("--documents", metavar="FOLDER", help="A base that grows by uploads.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", metavar="[NAME=]SPEC", help="A model the page may choose.")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 picks a free one.")] = 8321,
    host_name: Annotated[
        list[str] | None, typer.Option("--host-name", help="A name under which the server is addressed.")
    ] = None,
    token: Annotated[
        str | None, typer.Option("--token", envvar="CLEW_TOKEN", help="Who has it may do everything.")
    ] = None,
    keys: Annotated[Path | None, typer.Option("--keys", help="A TOML file of tokens and what each may do.")] = None,
    users: Annotated[
        Path | None,
        typer.Option("--users", metavar="FILE", help="People sign in; the file is made at the first start."),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            metavar="postgresql://…",
            help="For several servers: users, runs, bases made on the page and their builds are kept in this database "
            "and in no file. People sign in, unless --token or --keys says who may.",
        ),
    ] = None,
    oidc: Annotated[
        Path | None,
        typer.Option(
            "--oidc", metavar="FILE", help="With --users or --state: people may sign in at the provider of a TOML file."
        ),
    ] = None,
    runs: Annotated[Path | None, typer.Option("--runs", help="Keep finished runs here, so that links last.")] = None,
    made: Annotated[
        Path | None, typer.Option("--bases", metavar="FOLDER", help="Admins may make bases on the page; they lie here.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="PLACE",
            help="For bases made on the page: a file, a folder, or an address that bases may be made of.",
        ),
    ] = None,
    evaluations: Annotated[
        Path | None, typer.Option("--evaluations", metavar="FOLDER", help="Show the runs of `clew eval --out FOLDER`.")
    ] = None,
    max_cost: Annotated[float | None, typer.Option("--max-cost", min=0, help="Dollars for models in all.")] = None,
    max_calls: Annotated[int | None, typer.Option("--max-calls", min=0, help="Model calls in all.")] = None,
    per_minute: Annotated[int, typer.Option("--per-minute", min=1, help="Requests a minute for one client.")] = 600,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Processes for questions without a model.", show_default="one a core"),
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="Write every request to the terminal, without questions.")] = False,
    groups: Annotated[
        str | None,
        typer.Option("--groups", metavar="GROUP,…", help="Who asks sees what these may; else what everybody may."),
    ] = None,
) -> None:
    """Serve bases: a page to ask and explore, a REST API, an OpenAI-compatible endpoint and MCP."""
    from clew.models.budget import Budget

    with needing("web"):
        from clew.server.access import EVERY_BASE, Access, Grant, digest_of, read_keys
        from clew.server.running import run
        from clew.server.settings import (
            Door,
            Limits,
            ServerSettings,
            is_loopback,
            named_bases,
            named_models,
            named_places,
        )
        from clew.server.sources import Sources
        from clew.server.team.team import Team
    if state is not None:
        _refuse_files(state, {"--users": users, "--runs": runs, "--bases": made, "--documents": documents or None})
    if not bases and not documents and made is None and state is None:
        raise InputError("name a knowledge base, or a folder for documents: `clew serve base.kb`")
    if sum(given is not None for given in (token, keys, users)) > 1:
        raise InputError("give one of --token, --keys and --users")
    if token is not None and len(token) < 16:
        raise InputError("a token needs at least 16 characters: `openssl rand -hex 16` makes one")
    access: Door = Access() if keys is None else read_keys(keys)
    if token is not None:
        access = Access((Grant("token", digest_of(token), {EVERY_BASE: "admin"}),))
    shared = None if state is None else _shared(state)
    if users is not None:
        access = _team(Team.open(users))
    elif shared is not None and token is None and keys is None:
        access = _team(Team.of(shared))
    if access.is_open and not is_loopback(host):
        raise InputError(f"{host} can be reached from elsewhere: give --users, --token or --keys")
    names = ("localhost", "127.0.0.1", "[::1]", host.lower(), *(name.lower() for name in host_name or ()))
    settings = ServerSettings(
        named_places(bases or []),
        named_bases(documents or []),
        named_models(model or []),
        access,
        Limits(per_minute=per_minute),
        names,
        None if oidc is None else _provider(oidc, has_users=isinstance(access, Team)),
        runs,
        evaluations,
        made,
        shared,
        Sources(tuple(source or ())),
        Budget(dollars=max_cost, calls=max_calls),
        workers or min(os.cpu_count() or 1, MOST_WORKERS),
        tuple(group_names(groups) or ()),
        (lambda line: err.line(line)) if log else None,
        warm=True,
    )
    os.environ.pop("CLEW_TOKEN", None)  # child processes need no token
    run(settings, host, port, lambda where: err.line(f"Clew listens on {where}"))


def _provider(file: Path, *, has_users: bool) -> Provider:
    """Where people sign in."""
    if not has_users:
        raise InputError("--oidc needs --users FILE or --state: the users that a provider signs in are kept there")
    with needing("oidc"):
        from clew.server.team.provider import Provider, read_provider
    return Provider(read_provider(file))


def _refuse_files(state: str, given: Mapping[str, object]) -> None:
    from clew.store.postgres import is_address

    if not is_address(state):
        raise InputError("--state names a database: postgresql://USER@HOST/DATABASE")
    for option, place in given.items():
        if place is not None:
            raise InputError(
                f"with --state all is kept in the database: leave out {option}, and make bases on the page"
            )


def _shared(address: str) -> DatabaseStore:
    from clew.server.database import DatabaseStore  # an extra

    return DatabaseStore(address)


def _team(team: Team) -> Team:
    """The users; the first start makes an admin and says how to sign in."""
    from clew.server.store import SERVER

    password = team.users.make_first_admin(SERVER)
    if password is not None:
        told = f"The first user is admin, with the password {password}: sign in and choose another one."
        err.line(told)
    return team


def users(
    place: Annotated[
        str, typer.Argument(metavar="FILE", help="The file of `clew serve --users`, or the database of `--state`.")
    ],
    new_password: Annotated[
        str | None, typer.Option("--new-password", metavar="NAME", help="Give this user a password to begin with.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the users of a server, or help one who has forgotten the password; all else is done on the page."""
    from clew.store.postgres import is_address

    with needing("web"):
        from clew.server.store import Actor
        from clew.server.team.team import Team
    if not is_address(place) and not Path(place).is_file():
        raise InputError(f"no file of users: {place}")
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
    bases: Annotated[list[str], typer.Argument(metavar="KB…", help="Folders of bases, or postgresql://…#BASE.")],
    groups: Groups = None,
) -> None:
    """Offer tools, resources and prompts about bases to an agent (Model Context Protocol, stdio)."""
    with needing("web"):
        from clew.server.asking import Asker
        from clew.server.mcp import McpServer
        from clew.server.runs import Metrics, Runs
        from clew.server.serving import Served
        from clew.server.settings import ServerSettings, named_places
    served = Served(ServerSettings(named_places(bases), groups=tuple(group_names(groups) or ())))
    for base in served.bases.values():
        base.base()
    server = McpServer(Asker(served, Runs(), Metrics()), served.bases)
    for line in sys.stdin:
        reply = server.handle(line)
        if reply is not None:
            sys.stdout.write(json.dumps(reply, ensure_ascii=False) + "\n")
            sys.stdout.flush()
