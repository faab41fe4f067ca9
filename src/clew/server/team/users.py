"""Users with passwords and roles, managed by admins.

Passwords are hashed with argon2id and the parameters of RFC 9106 (section 4, 64 MB).
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Semaphore

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from argon2.profiles import RFC_9106_LOW_MEMORY

from clew.core.errors import InputError, NotFoundError
from clew.server.access import EVERY_BASE, Role
from clew.server.store import SERVER, Actor, Store
from clew.server.wire_team import UserChange, UserReply

NAME = re.compile(r"[a-z0-9][a-z0-9._@+-]{0,63}")
"""ASCII only, since similar letters of other scripts could imitate a user's name."""
SHORTEST, LONGEST = 12, 200
"""Minimum and maximum characters of a password. The maximum bounds the work of hashing."""
_HASHER = PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
_AT_ONCE = Semaphore(2)
"""Maximum number of concurrent hashes, to limit memory and CPU use."""
NOBODY = f"$argon2id$v=19$m=65536,t=3,p=4${'A' * 22}${'A' * 43}"
"""Hash for unknown users: verification takes the usual time, and no password matches."""


def hashed(password: str) -> str:
    """Return the hash of a password."""
    with _AT_ONCE:
        return _HASHER.hash(_bytes(password))


def fits(password: str, kept: str) -> bool:
    """Return whether a password matches a hash."""
    with _AT_ONCE:
        try:
            return _HASHER.verify(kept, _bytes(password))
        except VerifyMismatchError:
            return False


def is_outdated(kept: str) -> bool:
    """Return whether a hash has other parameters and should be renewed."""
    return _HASHER.check_needs_rehash(kept)


def is_password(kept: str) -> bool:
    """Return whether a user has a password. Users of a provider have none."""
    return kept != NOBODY


def check_strength(password: str, name: str) -> None:
    """Raise InputError if a password is too weak."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise InputError(f"a password must have {SHORTEST} to {LONGEST} characters: use several words")
    holds_name = len(name) > 3 and name.lower() in password.lower()  # a shorter name occurs in many words
    if len(set(password)) < 5 or holds_name:
        raise InputError("a password must not contain the user name or only a few characters")


def generated() -> str:
    """Return an initial password."""
    return "-".join(secrets.token_hex(2) for _ in range(5))


def _bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class Users:
    """The users of a team."""

    store: Store

    def all(self) -> list[UserReply]:
        """Return all users with roles."""
        roles: dict[int, dict[str, Role]] = {}
        for row in self.store.rows("SELECT * FROM role ORDER BY base"):
            roles.setdefault(row["user"], {})[row["base"]] = row["role"]
        return [
            UserReply(
                name=row["name"],
                roles=roles.get(row["id"], {}),
                groups=tuple(json.loads(row["groups_of"])),
                asks_per_day=row["asks_per_day"],
                active=bool(row["is_active"]),
                signed_in=row["seen"],
            )
            for row in self.store.rows(
                "SELECT user.*, (SELECT max(seen) FROM session WHERE session.user = user.id) AS seen "
                "FROM user ORDER BY name"
            )
        ]

    def named(self, name: str) -> UserReply:
        """Return a user by name."""
        found = next((user for user in self.all() if user.name == name.lower()), None)
        if found is None:
            raise NotFoundError(f"no user {name[:100]!r}")
        return found

    def make(self, actor: Actor, name: str, change: UserChange) -> str:
        """Create a user. Return the initial password, which must be changed at the first login."""
        name, password = name.lower(), generated()
        if NAME.fullmatch(name) is None:
            raise InputError("invalid name: use up to 64 characters of a-z, 0-9, and . _ @ + - after the first")
        kept = hashed(password)
        with self.store.change(actor, "user made", f"{name} {_told(change)}"):
            if self.store.row("SELECT 1 FROM user WHERE name = ?", name):
                raise InputError(f"the user {name!r} already exists")
            self.store.note(
                "INSERT INTO user (name, password, is_initial, made) VALUES (?, ?, TRUE, ?)", name, kept, time.time()
            )
            self._apply(name, change)
        return password

    def change(self, actor: Actor, name: str, change: UserChange) -> UserReply:
        """Change the given fields. A disabled user is signed out everywhere."""
        name = self.named(name).name
        with self.store.change(actor, "user changed", f"{name} {_told(change)}"):
            self._apply(name, change)
            self._refuse_without_admin()
        return self.named(name)

    def remove(self, actor: Actor, name: str) -> None:
        """Delete a user with sessions, tokens and history."""
        name = self.named(name).name
        with self.store.change(actor, "user removed", name):
            self.store.note("DELETE FROM user WHERE name = ?", name)
            self._refuse_without_admin()

    def reset_password(self, actor: Actor, name: str) -> str:
        """Set a new initial password. Sessions and tokens end."""
        name, password = self.named(name).name, generated()
        kept = hashed(password)
        with self.store.change(actor, "password reset", name):
            self.store.note("UPDATE user SET password = ?, is_initial = TRUE WHERE name = ?", kept, name)
            self._end_all(name)
        return password

    def change_password(self, actor: Actor, user: int, old: str, new: str) -> None:
        """Change the password. All sessions end, and tokens stay valid."""
        row = self.store.row("SELECT name, password FROM user WHERE id = ?", user)
        if row is None or not fits(old, row["password"]):
            raise InputError("the old password is wrong")
        check_strength(new, row["name"])
        if new == old:
            raise InputError("the new password equals the old password")
        kept = hashed(new)
        with self.store.change(actor, "password changed", row["name"]):
            self.store.note("UPDATE user SET password = ?, is_initial = FALSE WHERE id = ?", kept, user)
            self.store.note("DELETE FROM session WHERE user = ?", user)

    def admit(self, actor: Actor, subject: str, name: str, roles: Mapping[str, Role] | None, groups: list[str]) -> int:
        """Return the id of a provider's user, created at the first login.

        Roles from the provider, if any, replace the user's roles. A name of another user is rejected, since choosing a
        name at the provider must not give access to that account.
        """
        name = name.lower()
        if NAME.fullmatch(name) is None:
            raise InputError(f"invalid name {name[:100]!r} from the provider: use a-z, 0-9 and . _ @ + -")
        with self.store.change(actor, "signed in", f"{name} ({subject})"):
            row = self.store.row("SELECT id, name, is_active FROM user WHERE subject = ?", subject)
            if row is None:
                if self.store.row("SELECT 1 FROM user WHERE name = ?", name):
                    raise InputError(f"the name {name!r} belongs to another user here")
                self.store.note(
                    "INSERT INTO user (name, password, is_initial, made, subject) VALUES (?, ?, FALSE, ?, ?)",
                    *(name, NOBODY, time.time(), subject),
                )
            elif not row["is_active"]:
                raise InputError(f"{row['name']!r} is disabled")
            found = self.store.row("SELECT id, name FROM user WHERE subject = ?", subject)
            assert found is not None
            if roles is not None:
                self._apply(found["name"], UserChange(roles=dict(roles), groups=groups))
        return int(found["id"])

    def members(self, base: str) -> dict[str, Role]:
        """Return users with an explicit role on a base, without roles on all bases."""
        rows = self.store.rows(
            "SELECT name, role FROM role JOIN user ON user.id = role.user WHERE base = ? ORDER BY name", base
        )
        return {row["name"]: row["role"] for row in rows}

    def set_member(self, actor: Actor, base: str, name: str, role: Role | None) -> None:
        """Give a user a role on a base, or remove it."""
        name = self.named(name).name
        with self.store.change(actor, "user changed", f"{name} {base}: {role or 'no role'}"):
            self.store.note(
                "DELETE FROM role WHERE base = ? AND user = (SELECT id FROM user WHERE name = ?)", base, name
            )
            if role is not None:
                self.store.note("INSERT INTO role SELECT id, ?, ? FROM user WHERE name = ?", base, role, name)
            self._refuse_without_admin()

    def forget_base(self, base: str) -> None:
        """Remove the roles of users on a base of this name."""
        self.store.note("DELETE FROM role WHERE base = ?", base)

    def make_first_admin(self) -> str | None:
        """Create the user `admin` if there are no users. Return the initial password."""
        if self.store.row("SELECT 1 FROM user"):
            return None
        try:
            return self.make(SERVER, "admin", UserChange(roles={EVERY_BASE: "admin"}))
        except InputError:  # another server has just created it
            return None

    def _apply(self, name: str, change: UserChange) -> None:
        if change.roles is not None:
            self._set_roles(name, change.roles)
        if change.groups is not None:
            groups = sorted({group.strip() for group in change.groups} - {""})
            self.store.note("UPDATE user SET groups_of = ? WHERE name = ?", json.dumps(groups), name)
        if "asks_per_day" in change.model_fields_set:
            self.store.note("UPDATE user SET asks_per_day = ? WHERE name = ?", change.asks_per_day, name)
        if change.active is not None:
            self.store.note("UPDATE user SET is_active = ? WHERE name = ?", change.active, name)
            if not change.active:
                self._end_all(name)

    def _set_roles(self, name: str, roles: Mapping[str, Role]) -> None:
        self.store.note("DELETE FROM role WHERE user = (SELECT id FROM user WHERE name = ?)", name)
        for base, role in roles.items():
            self.store.note("INSERT INTO role SELECT id, ?, ? FROM user WHERE name = ?", base, role, name)

    def _end_all(self, name: str) -> None:
        self.store.note("DELETE FROM session WHERE user = (SELECT id FROM user WHERE name = ?)", name)
        self.store.note("DELETE FROM token WHERE user = (SELECT id FROM user WHERE name = ?)", name)

    def _refuse_without_admin(self) -> None:
        found = self.store.row(
            "SELECT 1 FROM role JOIN user ON user.id = role.user WHERE base = ? AND role = 'admin' AND is_active",
            EVERY_BASE,
        )
        if found is None:
            raise InputError("the last admin of all bases cannot be removed: give another user this role first")


def _told(change: UserChange) -> str:
    return change.model_dump_json(exclude_unset=True)
