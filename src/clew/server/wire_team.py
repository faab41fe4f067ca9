"""Request and reply types of the HTTP API about users."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from clew.server.access import Role
from clew.server.wire import Reply, WireRequest

Secret = Annotated[str, Field(min_length=1, max_length=1000)]
Label = Annotated[str, Field(min_length=1, max_length=100)]
MAX_ROLES = 1000
"""Maximum number of roles or groups of a user in a request."""


class _Request(WireRequest):
    model_config = ConfigDict(hide_input_in_errors=True)


class SignIn(_Request):
    """A name and a password."""

    name: Label
    password: Secret


class PasswordChange(_Request):
    """A password change."""

    old: Secret
    new: Secret


class TokenRequest(_Request):
    """A token for a program."""

    name: Label
    write: bool = False
    days: int = Field(90, ge=1, le=366)


class RoleRequest(_Request):
    """A role on a base. Null removes it."""

    role: Role | None


class UserChange(_Request):
    """Changes of a user by an admin. Omitted fields stay unchanged."""

    roles: Annotated[dict[Label, Role], Field(max_length=MAX_ROLES)] | None = None
    """Role by base. `*` means all bases, and its admin is the admin of the server."""
    groups: Annotated[list[Label], Field(max_length=MAX_ROLES)] | None = None
    """Groups whose part of a base the user may see."""
    asks_per_day: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    """Daily limit. Null means no limit."""
    active: bool | None = None


class NewUser(UserChange):
    """A user to create."""

    name: Label


class MeReply(Reply):
    """The signed-in user and permissions."""

    name: str
    roles: dict[str, Role]
    csrf: str | None
    """Value for the header `x-csrf-token` of requests with changes."""
    must_change_password: bool
    has_password: bool
    """False for users of a login provider."""
    asks_today: int
    asks_per_day: int | None


class UserReply(Reply):
    """A user, as shown to an admin."""

    name: str
    roles: dict[str, Role]
    groups: tuple[str, ...]
    asks_per_day: int | None
    active: bool
    signed_in: float | None


class PasswordReply(Reply):
    """An initial password, shown once."""

    name: str
    password: str


class TokenReply(Reply):
    """A token without its secret. Times are in seconds since 1970."""

    id: int
    name: str
    write: bool
    made: float
    used: float | None
    ends: float


class NewTokenReply(Reply):
    """A token, shown once."""

    token: str


class AskedReply(Reply):
    """A question of a user."""

    at: float
    base: str
    question: str
    run: str | None


class AuditReply(Reply):
    """An entry of the audit log."""

    id: int
    at: float
    actor: str
    what: str
    about: str
    address: str
