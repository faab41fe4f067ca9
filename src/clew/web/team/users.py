"""Users and their roles: made, changed and removed by admins."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from clew.core.errors import InputError, NotFoundError
from clew.core.wire_team import UserChange, UserReply
from clew.web.access import EVERY_BASE, Role
from clew.web.store import Actor, Store
from clew.web.team.passwords import NOBODY, check_strength, fits, generated, hashed

NAME = re.compile(r"[a-z0-9][a-z0-9._@+-]{0,63}")
"""Letters that look alike in several scripts could pass for another user's name."""


@dataclass(frozen=True)
class Users:
    """The users of a team."""

    store: Store

    def all(self) -> list[UserReply]:
        """Every user with roles."""
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
        """One of them."""
        found = next((user for user in self.all() if user.name == name.lower()), None)
        if found is None:
            raise NotFoundError(f"no user {name[:100]!r}")
        return found

    def make(self, actor: Actor, name: str, change: UserChange) -> str:
        """Add a user; returns the password to begin with, which must be changed at the first sign-in."""
        name, password = name.lower(), generated()
        if NAME.fullmatch(name) is None:
            raise InputError("a user's name has up to 64 characters: a-z, 0-9, and . _ @ + - after the first")
        kept = hashed(password)
        with self.store.change(actor, "user made", f"{name} {_told(change)}"):
            if self.store.row("SELECT 1 FROM user WHERE name = ?", name):
                raise InputError(f"there is a user {name!r} already")
            self.store.note(
                "INSERT INTO user (name, password, is_initial, made) VALUES (?, ?, TRUE, ?)", name, kept, time.time()
            )
            self._apply(name, change)
        return password

    def change(self, actor: Actor, name: str, change: UserChange) -> UserReply:
        """Change what is given; one who is switched off is signed out everywhere."""
        name = self.named(name).name
        with self.store.change(actor, "user changed", f"{name} {_told(change)}"):
            self._apply(name, change)
            self._refuse_without_admin()
        return self.named(name)

    def remove(self, actor: Actor, name: str) -> None:
        """Remove a user with sessions, tokens and history."""
        name = self.named(name).name
        with self.store.change(actor, "user removed", name):
            self.store.note("DELETE FROM user WHERE name = ?", name)
            self._refuse_without_admin()

    def reset_password(self, actor: Actor, name: str) -> str:
        """A new password to begin with; sessions and tokens end."""
        name, password = self.named(name).name, generated()
        kept = hashed(password)
        with self.store.change(actor, "password reset", name):
            self.store.note("UPDATE user SET password = ?, is_initial = TRUE WHERE name = ?", kept, name)
            self._end_all(name)
        return password

    def change_password(self, actor: Actor, user: int, old: str, new: str) -> None:
        """Another password; all sessions end, and tokens stay."""
        row = self.store.row("SELECT name, password FROM user WHERE id = ?", user)
        if row is None or not fits(old, row["password"]):
            raise InputError("the old password is not right")
        check_strength(new, row["name"])
        if new == old:
            raise InputError("the new password is the old one")
        kept = hashed(new)
        with self.store.change(actor, "password changed", row["name"]):
            self.store.note("UPDATE user SET password = ?, is_initial = FALSE WHERE id = ?", kept, user)
            self.store.note("DELETE FROM session WHERE user = ?", user)

    def admit(self, actor: Actor, subject: str, name: str, roles: Mapping[str, Role] | None, groups: list[str]) -> int:
        """The user whom a provider knows as this subject, made at the first sign-in; returns the number.

        The provider's roles, where it gives some, are those of the user from now on. A name that somebody else has is
        refused: who may choose a name elsewhere does not become that user here.
        """
        name = name.lower()
        if NAME.fullmatch(name) is None:
            raise InputError(f"the provider's name {name[:100]!r} is none here: a-z, 0-9 and . _ @ + -")
        with self.store.change(actor, "signed in", f"{name} ({subject})"):
            row = self.store.row("SELECT id, name, is_active FROM user WHERE subject = ?", subject)
            if row is None:
                if self.store.row("SELECT 1 FROM user WHERE name = ?", name):
                    raise InputError(f"the name {name!r} belongs to somebody else here")
                self.store.note(
                    "INSERT INTO user (name, password, is_initial, made, subject) VALUES (?, ?, FALSE, ?, ?)",
                    *(name, NOBODY, time.time(), subject),
                )
            elif not row["is_active"]:
                raise InputError(f"{row['name']!r} is switched off")
            found = self.store.row("SELECT id, name FROM user WHERE subject = ?", subject)
            assert found is not None
            if roles is not None:
                self._apply(found["name"], UserChange(roles=dict(roles), groups=groups))
        return int(found["id"])

    def members(self, base: str) -> dict[str, Role]:
        """Users with a role of their own on a base; those with one on all bases are not told."""
        rows = self.store.rows(
            "SELECT name, role FROM role JOIN user ON user.id = role.user WHERE base = ? ORDER BY name", base
        )
        return {row["name"]: row["role"] for row in rows}

    def set_member(self, actor: Actor, base: str, name: str, role: Role | None) -> None:
        """Give a user a role on one base, or take it."""
        name = self.named(name).name
        with self.store.change(actor, "user changed", f"{name} {base}: {role or 'no role'}"):
            self.store.note(
                "DELETE FROM role WHERE base = ? AND user = (SELECT id FROM user WHERE name = ?)", base, name
            )
            if role is not None:
                self.store.note("INSERT INTO role SELECT id, ?, ? FROM user WHERE name = ?", base, role, name)
            self._refuse_without_admin()

    def forget_base(self, base: str) -> None:
        """Take the roles that users had on a base of this name."""
        self.store.note("DELETE FROM role WHERE base = ?", base)

    def make_first_admin(self, actor: Actor) -> str | None:
        """A user `admin` where there is nobody yet; returns the password to begin with."""
        if self.store.row("SELECT 1 FROM user"):
            return None
        try:
            return self.make(actor, "admin", UserChange(roles={EVERY_BASE: "admin"}))
        except InputError:  # another server has made it in this very moment
            return None

    def _apply(self, name: str, change: UserChange) -> None:
        if change.roles is not None:
            self._set_roles(name, change.roles)
        if change.groups is not None:
            self.store.note("UPDATE user SET groups_of = ? WHERE name = ?", json.dumps(_plain(change.groups)), name)
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
            raise InputError("somebody must be admin of all bases: make another user one first")


def _plain(groups: Collection[str]) -> list[str]:
    return sorted({group.strip() for group in groups} - {""})


def _told(change: UserChange) -> str:
    return change.model_dump_json(exclude_unset=True)
