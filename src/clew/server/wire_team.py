"""What travels over HTTP about users: requests and replies, as types."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from clew.server.wire import Reply, Request

RoleName = Literal["reader", "editor", "admin"]
Secret = Annotated[str, Field(min_length=1, max_length=1000)]
Label = Annotated[str, Field(min_length=1, max_length=100)]
MOST_ROLES = 1000


class _Request(Request):
    model_config = ConfigDict(hide_input_in_errors=True)


class SignIn(_Request):
    """A name and a password."""

    name: Label
    password: Secret


class PasswordChange(_Request):
    """Another password."""

    old: Secret
    new: Secret


class TokenRequest(_Request):
    """A token for a program."""

    name: Label
    write: bool = False
    days: int = Field(90, ge=1, le=366)


class RoleRequest(_Request):
    """A role on a base; null takes it."""

    role: RoleName | None


class UserChange(_Request):
    """What an admin changes of a user; what is left out stays."""

    roles: Annotated[dict[Label, RoleName], Field(max_length=MOST_ROLES)] | None = None
    """Base → role; `*` stands for all bases, and its admin is the admin of the server."""
    groups: Annotated[list[Label], Field(max_length=MOST_ROLES)] | None = None
    """Groups whose part of a base the user may see."""
    asks_per_day: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    """Null: as many as the user likes."""
    active: bool | None = None


class NewUser(UserChange):
    """A user to be made."""

    name: Label


class MeReply(Reply):
    """Who has signed in, and what this user may do."""

    name: str
    roles: dict[str, RoleName]
    csrf: str | None
    """What a page repeats in the header `x-csrf-token` with whatever changes something."""
    must_change_password: bool
    has_password: bool
    """Not one who signs in at a provider."""
    asks_today: int
    asks_per_day: int | None


class UserReply(Reply):
    """A user, as an admin sees one."""

    name: str
    roles: dict[str, RoleName]
    groups: tuple[str, ...]
    asks_per_day: int | None
    active: bool
    signed_in: float | None


class PasswordReply(Reply):
    """A password to begin with, told this once."""

    name: str
    password: str


class TokenReply(Reply):
    """A token, without its secret; times in seconds since 1970."""

    id: int
    name: str
    write: bool
    made: float
    used: float | None
    ends: float


class NewTokenReply(Reply):
    """A token, told this once."""

    token: str


class AskedReply(Reply):
    """A question that was asked."""

    at: float
    base: str
    question: str
    run: str | None


class AuditReply(Reply):
    """A line of the audit log."""

    id: int
    at: float
    actor: str
    what: str
    about: str
    address: str
