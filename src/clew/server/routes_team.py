"""Users over HTTP: sign in, also with a provider, sign out, own account, and user management by admins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse

from clew.core.errors import ClewError
from clew.server.access import EVERY_BASE, Grant, Role
from clew.server.guard import CALLBACK, SIGN_IN, network_of
from clew.server.state import GrantOf, State, StateOf, actor_of, base_of, grant_of, state_of
from clew.server.store import Actor
from clew.server.team.team import LONGEST_LOGIN, LONGEST_SESSION, PLAIN_COOKIE, SECURE_COOKIE, Team, secret_in
from clew.server.team.users import is_password
from clew.server.wire_team import (
    AskedReply,
    AuditReply,
    MeReply,
    NewTokenReply,
    NewUser,
    PasswordChange,
    PasswordReply,
    RoleRequest,
    SignIn,
    TokenReply,
    TokenRequest,
    UserChange,
    UserReply,
)

if TYPE_CHECKING:  # an extra
    from clew.server.team.provider import Provider

router = APIRouter(tags=["team"])


async def team_of(request: Request) -> Team:
    """Return the users of the server. 404 if it has no users."""
    team = (await state_of(request)).served.settings.team
    if team is None:
        raise HTTPException(404, "this server has no users: start it with --users FILE or --state")
    return team


async def person_of(request: Request) -> Grant:
    """Return the grant of a signed-in user. Tokens may leak, so they cannot change accounts."""
    await team_of(request)
    grant = await grant_of(request)
    if grant.csrf is None:
        raise HTTPException(403, "this requires a session: sign in")
    return grant


async def admin_of(grant: Annotated[Grant, Depends(person_of)]) -> Grant:
    """Return the grant of an admin of the server."""
    if not grant.allows(EVERY_BASE, "admin"):
        raise HTTPException(403, "this requires the role admin on all bases")
    return grant


async def base_admin_of(base: str, request: Request, grant: Annotated[Grant, Depends(person_of)]) -> Grant:
    """Return the grant of an admin of the base in the path."""
    await base_of(base, request)
    if not grant.allows(base, "admin"):
        raise HTTPException(403, "this requires the role admin on the base")
    return grant


TeamOf = Annotated[Team, Depends(team_of)]
PersonOf = Annotated[Grant, Depends(person_of)]
AdminOf = Annotated[Grant, Depends(admin_of)]
BaseAdminOf = Annotated[Grant, Depends(base_admin_of)]


@router.post(SIGN_IN)
async def sign_in(asked: SignIn, request: Request, response: Response, state: StateOf, team: TeamOf) -> MeReply:
    """Start a session with a cookie in the reply. End the session of the request, if any."""
    address = network_of(request.client.host if request.client is not None else "")

    def work() -> tuple[str, MeReply]:
        secret = team.sign_in(asked.name, asked.password, address)
        team.sessions.end(secret_in(request.headers.get("cookie")))
        return secret, _signed_in(team, secret)

    secret, reply = await state.asker.in_thread(work)
    set_cookie(response, secret, is_secure=_is_secure(request))
    return reply


@router.post("/v1/sign-out", status_code=204)
def sign_out(request: Request, response: Response, team: TeamOf, grant: PersonOf) -> None:
    """End the session."""
    team.sessions.end(secret_in(request.headers.get("cookie")))
    team.store.audit(actor_of(request, grant), "signed out")
    for name in (SECURE_COOKIE, PLAIN_COOKIE):
        response.delete_cookie(name, path="/", secure=name == SECURE_COOKIE, httponly=True, samesite="strict")


@router.get("/v1/me")
def me(team: TeamOf, grant: GrantOf) -> MeReply:
    """Return the signed-in user and permissions."""
    return _me(team, grant)


@router.post("/v1/me/password")
async def change_password(
    asked: PasswordChange, request: Request, response: Response, state: StateOf, team: TeamOf, grant: PersonOf
) -> MeReply:
    """Change the password. All sessions of the user end, and this session continues with a new secret."""
    actor, user = actor_of(request, grant), _user(grant)

    def work() -> tuple[str, MeReply]:
        team.users.change_password(actor, user, asked.old, asked.new)
        secret = team.sessions.begin(user)
        return secret, _signed_in(team, secret)

    secret, reply = await state.asker.in_thread(work)
    set_cookie(response, secret, is_secure=_is_secure(request))
    return reply


@router.get("/v1/me/history")
def history(state: StateOf, team: TeamOf, grant: PersonOf) -> list[AskedReply]:
    """Return the user's questions to bases that the user may still ask."""
    return team.history(_user(grant), list(state.seen_by(grant)))


@router.delete("/v1/me/history", status_code=204)
def forget_history(team: TeamOf, grant: PersonOf) -> None:
    """Delete the user's questions."""
    team.forget(_user(grant))


@router.get("/v1/me/tokens")
def tokens(team: TeamOf, grant: PersonOf) -> list[TokenReply]:
    """Return the user's tokens without their secrets."""
    return team.sessions.tokens(_user(grant))


@router.post("/v1/me/tokens", status_code=201)
def make_token(asked: TokenRequest, request: Request, team: TeamOf, grant: PersonOf) -> NewTokenReply:
    """Create a token for a program with the user's permissions, except admin rights. It is shown once."""
    if not grant.roles:
        raise HTTPException(403, "change the initial password first")
    actor = actor_of(request, grant)
    return NewTokenReply(token=team.sessions.make_token(actor, _user(grant), asked.name, asked.write, asked.days))


@router.delete("/v1/me/tokens/{number}", status_code=204)
def remove_token(number: int, request: Request, team: TeamOf, grant: PersonOf) -> None:
    """Delete one of the user's tokens."""
    team.sessions.remove_token(actor_of(request, grant), _user(grant), number)


@router.get("/v1/users", dependencies=[Depends(admin_of)])
def users(team: TeamOf) -> list[UserReply]:
    """Return all users."""
    return team.users.all()


@router.post("/v1/users", status_code=201)
async def make_user(asked: NewUser, request: Request, state: StateOf, team: TeamOf, grant: AdminOf) -> PasswordReply:
    """Create a user with an initial password, which is shown once."""
    change = UserChange(**asked.model_dump(exclude={"name"}, exclude_unset=True))
    _check_bases(state, change)
    actor = actor_of(request, grant)
    password = await state.asker.in_thread(lambda: team.users.make(actor, asked.name, change))
    return PasswordReply(name=asked.name.lower(), password=password)


@router.patch("/v1/users/{name}")
def change_user(
    name: str, change: UserChange, request: Request, state: StateOf, team: TeamOf, grant: AdminOf
) -> UserReply:
    """Change roles, groups or quota, or enable or disable a user."""
    _check_bases(state, change)
    return team.users.change(actor_of(request, grant), name, change)


@router.delete("/v1/users/{name}", status_code=204)
def remove_user(name: str, request: Request, team: TeamOf, grant: AdminOf) -> None:
    """Delete a user with sessions, tokens and history."""
    team.users.remove(actor_of(request, grant), name)


@router.post("/v1/users/{name}/password")
async def reset_password(name: str, request: Request, state: StateOf, team: TeamOf, grant: AdminOf) -> PasswordReply:
    """Set a new initial password. Sessions and tokens of the user end."""
    actor = actor_of(request, grant)
    return PasswordReply(
        name=name.lower(), password=await state.asker.in_thread(lambda: team.users.reset_password(actor, name))
    )


@router.get("/v1/audit", dependencies=[Depends(admin_of)])
def audit(
    team: TeamOf, before: Annotated[int | None, Query(ge=0)] = None, k: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[AuditReply]:
    """Return the audit log, newest first."""
    return team.audit_log(before, k)


@router.get("/v1/bases/{base}/members", dependencies=[Depends(base_admin_of)])
def members(base: str, team: TeamOf) -> dict[str, Role]:
    """Return users with an explicit role on this base."""
    return team.users.members(base)


@router.put("/v1/bases/{base}/members/{name}")
def set_member(
    base: str, name: str, asked: RoleRequest, request: Request, team: TeamOf, grant: BaseAdminOf
) -> dict[str, Role]:
    """Give a user a role on this base, or remove it."""
    team.users.set_member(actor_of(request, grant), base, name, asked.role)
    return team.users.members(base)


def _user(grant: Grant) -> int:
    assert grant.user is not None
    return grant.user


def _signed_in(team: Team, secret: str) -> MeReply:
    grant = team.sessions.grant(None, f"{PLAIN_COOKIE}={secret}")
    assert grant is not None
    return _me(team, grant)


def _me(team: Team, grant: Grant) -> MeReply:
    row = team.store.row("SELECT is_initial, asks_per_day, password FROM user WHERE id = ?", _user(grant))
    assert row is not None
    return MeReply(
        name=grant.name,
        roles=dict(grant.roles),
        csrf=grant.csrf,
        must_change_password=bool(row["is_initial"]),
        has_password=is_password(row["password"]),
        asks_today=team.asked_today(_user(grant)),
        asks_per_day=row["asks_per_day"],
    )


def _is_secure(request: Request) -> bool:
    """Return whether the browser uses HTTPS."""
    return request.headers.get("origin", "").startswith("https://")


def set_cookie(response: Response, secret: str, *, is_secure: bool) -> None:
    """Set the session cookie for this host and site, without script access, and only for HTTPS if it is used."""
    response.set_cookie(
        SECURE_COOKIE if is_secure else PLAIN_COOKIE,
        secret,
        max_age=int(LONGEST_SESSION),
        path="/",
        secure=is_secure,
        httponly=True,
        samesite="strict",
    )


def _check_bases(state: State, change: UserChange) -> None:
    for base in change.roles or {}:
        if base != EVERY_BASE and base not in state.served.bases:
            raise HTTPException(422, f"roles: no base {base[:100]!r}: use *, {', '.join(state.served.bases)}")


provider_router = APIRouter(tags=["team"])
"""Routes of a server with a login provider."""
COOKIE = "clew-way"
"""Cookie to check that the browser that returns is the browser that left."""
Told = Annotated[str, Query(max_length=4000)]


@provider_router.get("/v1/oidc/start", response_class=RedirectResponse, status_code=303)
async def start(state: StateOf, team: TeamOf) -> Response:
    """Redirect to the provider."""
    provider = _provider(state)
    address, expected = await state.asker.in_thread(lambda: provider.begin(team))
    reply = RedirectResponse(address, 303)
    reply.set_cookie(
        *(COOKIE, expected),
        max_age=int(LONGEST_LOGIN),
        path=CALLBACK,
        secure=provider.scheme == "https",
        httponly=True,
        samesite="lax",  # the provider redirects back here
    )
    return reply


@provider_router.get(CALLBACK, response_class=RedirectResponse, status_code=303)
async def callback(
    request: Request, state: StateOf, team: TeamOf, code: Told = "", state_: Annotated[Told, Query(alias="state")] = ""
) -> Response:
    """Handle the return from the provider: start a session, or show the sign-in with an error.

    The log has the reason.
    """
    provider = _provider(state)
    address = network_of(request.client.host if request.client is not None else "")
    cookie = request.cookies.get(COOKIE, "")
    try:
        secret = await state.asker.in_thread(lambda: provider.finish(team, address, code, state_, cookie))
    except ClewError as refused:
        actor, why = Actor("unknown", address), str(refused)
        await state.asker.in_thread(lambda: team.store.audit(actor, "sign-in refused", why))
        reply = RedirectResponse("/#/sign-in?problem=provider", 303)
    else:
        reply = RedirectResponse("/", 303)
        await state.asker.in_thread(lambda: team.sessions.end(secret_in(request.headers.get("cookie"))))
        set_cookie(reply, secret, is_secure=provider.scheme == "https")
    reply.delete_cookie(COOKIE, path=CALLBACK, httponly=True)
    return reply


def _provider(state: StateOf) -> Provider:
    provider = state.served.settings.provider
    assert provider is not None
    return provider
