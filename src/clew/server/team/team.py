"""Users of a server: login, permissions and quotas.

Sessions by cookie and tokens for programs are stored only as digests.
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from clew.core.addresses import is_postgres
from clew.core.errors import ClewError, InputError, NotFoundError
from clew.server.access import Grant, Role, bearer, digest_of
from clew.server.store import Actor, Row, Store, TeamFile
from clew.server.team.users import NOBODY, Users, fits, hashed, is_outdated
from clew.server.wire_team import AskedReply, AuditReply, TokenReply

DAY = 86_400.0
"""Seconds of a day."""
LONGEST_SESSION, LONGEST_PAUSE = 7 * DAY, DAY
"""A session ends after a week, or after a day without a request, or if a wrong clock dated it in the future."""
LONGEST_LOGIN = 600.0
"""Maximum duration of a login with a provider, in seconds."""
SEEN_EVERY = 60.0
"""Minimum seconds between two updates of the last use of a session or token."""
MAX_TOKENS = 50
"""Maximum number of tokens of a user, so that a program that keeps making tokens cannot fill the file."""
PREFIX = "clew_"
"""Prefix by which scanners recognise leaked tokens."""
SECURE_COOKIE, PLAIN_COOKIE = "__Host-clew", "clew"
"""Browsers accept the first over HTTPS only from this host."""


@dataclass(frozen=True)
class Sessions:
    """Sessions and tokens of users."""

    store: Store

    def begin(self, user: int) -> str:
        """Start a session. Return its secret, which is not stored."""
        secret, now = secrets.token_urlsafe(32), time.time()
        self.store.note(
            "DELETE FROM session WHERE made NOT BETWEEN ? AND ? OR seen < ?",
            *(now - LONGEST_SESSION, now + DAY, now - LONGEST_PAUSE),
        )
        self.store.note("INSERT INTO session VALUES (?, ?, ?, ?)", digest_of(secret), user, now, now)
        return secret

    def end(self, secret: str) -> None:
        """End a session."""
        self.store.note("DELETE FROM session WHERE digest = ?", digest_of(secret))

    def grant(self, authorization: str | None, cookie: str | None) -> Grant | None:
        """Return the grant of a token, or else of a session."""
        token = bearer(authorization)
        if token:
            return self._of_token(token)
        secret = secret_in(cookie)
        return self._of_session(secret) if secret else None

    def make_token(self, actor: Actor, user: int, name: str, may_write: bool, days: int) -> str:
        """Create a token for a program and return it. It is not stored."""
        if len(self.tokens(user)) >= MAX_TOKENS:
            raise InputError(f"the limit of {MAX_TOKENS} tokens is reached: delete one first")
        token, now = PREFIX + secrets.token_urlsafe(32), time.time()
        with self.store.change(actor, "token made", name):
            self.store.note(
                "INSERT INTO token (digest, name, user, may_write, made, ends) VALUES (?, ?, ?, ?, ?, ?)",
                *(digest_of(token), name, user, may_write, now, now + days * DAY),
            )
        return token

    def tokens(self, user: int) -> list[TokenReply]:
        """Return the tokens of a user without their secrets."""
        query = "SELECT id, name, may_write AS write, made, seen AS used, ends FROM token WHERE user = ? ORDER BY id"
        return [TokenReply(**row) for row in self.store.rows(query, user)]

    def remove_token(self, actor: Actor, user: int, number: int) -> None:
        """Delete a token of this user."""
        found = next((token for token in self.tokens(user) if token.id == number), None)
        if found is None:
            raise NotFoundError("no such token")
        with self.store.change(actor, "token removed", found.name):
            self.store.note("DELETE FROM token WHERE id = ? AND user = ?", number, user)

    def _of_session(self, secret: str) -> Grant | None:
        now, digest = time.time(), digest_of(secret)
        row = self.store.row(
            "SELECT user.*, session.seen FROM session JOIN user ON user.id = session.user "
            "WHERE digest = ? AND is_active AND session.made BETWEEN ? AND ? AND seen > ?",
            *(digest, now - LONGEST_SESSION, now + DAY, now - LONGEST_PAUSE),  # the clock may have been set back
        )
        if row is None:
            return None
        if now - row["seen"] > SEEN_EVERY:
            self.store.note("UPDATE session SET seen = ? WHERE digest = ?", now, digest)
        return self._grant(row, self._roles(row), csrf_of(secret))

    def _of_token(self, token: str) -> Grant | None:
        now, digest = time.time(), digest_of(token)
        row = self.store.row(
            "SELECT user.*, token.seen, may_write FROM token JOIN user ON user.id = token.user "
            "WHERE digest = ? AND is_active AND ends > ?",
            *(digest, now),
        )
        if row is None:
            return None
        if row["seen"] is None or now - row["seen"] > SEEN_EVERY:
            self.store.note("UPDATE token SET seen = ? WHERE digest = ?", now, digest)
        most: Role = "editor" if row["may_write"] else "reader"  # never admin
        roles = {base: role if role == "reader" else most for base, role in self._roles(row).items()}
        return self._grant(row, roles, None)

    def _roles(self, row: Row) -> dict[str, Role]:
        """Return roles by base. Empty until the initial password is changed."""
        if row["is_initial"]:
            return {}
        return {own["base"]: own["role"] for own in self.store.rows("SELECT * FROM role WHERE user = ?", row["id"])}

    @staticmethod
    def _grant(row: Row, roles: dict[str, Role], csrf: str | None) -> Grant:
        groups = tuple(json.loads(row["groups_of"]))
        return Grant(row["name"], digest_of(f"user {row['id']}"), roles, groups, row["id"], csrf)


def csrf_of(secret: str) -> str:
    """Return the value that a page must repeat and that another site cannot know."""
    return hmac.digest(secret.encode("utf-8", "surrogateescape"), b"csrf", "sha256").hex()


def secret_in(cookie: str | None) -> str:
    """Return the session secret in a cookie header, or ""."""
    found = {
        name.strip(): value.strip() for name, _, value in (one.partition("=") for one in (cookie or "").split(";"))
    }
    return found.get(SECURE_COOKIE) or found.get(PLAIN_COOKIE, "")


TRIES_PER_MINUTE = 20
"""Maximum logins per minute for one name, known or not, and from one address."""
NO_NUMBER = 2**62
"""Larger than any id of the audit log."""
KEPT_DAYS = 90
"""Number of days to store the questions of users."""


class RefusedError(ClewError):
    """The name or the password is wrong. The message does not tell which."""


class ProviderError(ClewError):
    """A login with a provider failed."""


class TooManyError(ClewError):
    """Too many logins or questions."""


@dataclass(frozen=True)
class Team:
    """The users of a server."""

    store: Store

    @classmethod
    def open(cls, place: str | Path) -> Team:
        """Open or create the team of a file or a database."""
        return cls.of(_store(place))

    @classmethod
    def of(cls, store: Store) -> Team:
        """Create the team of an open store, and delete old questions."""
        team = cls(store)
        team.store.note("DELETE FROM asked WHERE at < ?", time.time() - KEPT_DAYS * DAY)
        return team

    @property
    def is_open(self) -> bool:
        """False, since everybody must sign in."""
        return False

    @cached_property
    def users(self) -> Users:
        """The users."""
        return Users(self.store)

    @cached_property
    def sessions(self) -> Sessions:
        """The sessions."""
        return Sessions(self.store)

    def grant(self, authorization: str | None, cookie: str | None = None) -> Grant | None:
        """Return the grant of a token or a session."""
        return self.sessions.grant(authorization, cookie)

    def sign_in(self, name: str, password: str, address: str) -> str:
        """Return the secret of a new session. A wrong name fails like a wrong password, and as slowly."""
        name = name.lower()
        self._count_try(f"address {address}", f"name {name}")
        row = self.store.row("SELECT id, name, password FROM user WHERE name = ? AND is_active", name)
        if not fits(password, NOBODY if row is None else row["password"]) or row is None:
            known = "unknown" if row is None else row["name"]  # the typed name may be a password
            self.store.audit(Actor(known, address), "sign-in refused")
            raise RefusedError("wrong name or password")
        if is_outdated(row["password"]):  # only if the password has not changed
            kept = "UPDATE user SET password = ? WHERE id = ? AND password = ?"
            self.store.note(kept, hashed(password), row["id"], row["password"])
        self.store.audit(Actor(row["name"], address), "signed in")
        return self.sessions.begin(row["id"])

    def _count_try(self, *names: str) -> None:
        """Raise TooManyError after too many logins in the last minute on all servers."""
        now = time.time()

        def count() -> None:
            self.store.note("DELETE FROM tried WHERE at NOT BETWEEN ? AND ?", now - 60, now + 60)
            for who in map(digest_of, names):  # a typed name may be a password
                row = self.store.row("SELECT count(*) AS tries FROM tried WHERE who = ?", who)
                if row is not None and row["tries"] >= TRIES_PER_MINUTE:
                    raise TooManyError("too many sign-ins: wait a minute")
                self.store.note("INSERT INTO tried VALUES (?, ?)", who, now)

        self.store.at_once(count)

    def admit(self, user: int, base: str, question: str) -> int:
        """Count a question against the user's daily quota, and store it. Return its number."""
        now = time.time()
        row = self.store.at_once(  # atomic, so that two servers do not exceed the quota
            lambda: self.store.row(
                "INSERT INTO asked (user, at, base, question) SELECT id, ?, ?, ? FROM user WHERE id = ? AND "
                "(asks_per_day IS NULL OR asks_per_day > (SELECT count(*) FROM asked WHERE user = ? AND at >= ?)) "
                "RETURNING id",
                *(now, base, question, user, user, now // DAY * DAY),
            )
        )
        if row is None:
            kept = self.store.row("SELECT asks_per_day FROM user WHERE id = ?", user)
            most = 0 if kept is None else kept["asks_per_day"]
            raise TooManyError(f"the daily limit of {most} questions is reached: try again after midnight (UTC)")
        return int(row["id"])

    def answered(self, number: int, run: str) -> None:
        """Store the run of a question."""
        self.store.note("UPDATE asked SET run = ? WHERE id = ?", run, number)

    def asked_today(self, user: int) -> int:
        """Return the number of questions since midnight (UTC)."""
        today = time.time() // DAY * DAY
        row = self.store.row("SELECT count(*) AS asks FROM asked WHERE user = ? AND at >= ?", user, today)
        return 0 if row is None else int(row["asks"])

    def history(self, user: int, bases: list[str], most: int = 200) -> list[AskedReply]:
        """Return a user's questions to these bases, newest first."""
        among = ", ".join("?" * len(bases)) or "NULL"
        rows = self.store.rows(
            f"SELECT at, base, question, run FROM asked WHERE user = ? AND question IS NOT NULL AND base IN ({among}) "  # noqa: S608 - marks
            "ORDER BY at DESC LIMIT ?",
            *(user, *bases, most),
        )
        return [AskedReply(**row) for row in rows]

    def forget(self, user: int) -> None:
        """Delete the texts of a user's questions. Their number stays for the quota."""
        self.store.note("UPDATE asked SET question = NULL, run = NULL WHERE user = ?", user)

    def audit_log(self, before: int | None = None, most: int = 100) -> list[AuditReply]:
        """Return the audit log, newest first."""
        newest = NO_NUMBER if before is None else before
        rows = self.store.rows("SELECT * FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?", newest, most)
        return [AuditReply(**{name: row[name] for name in AuditReply.model_fields}) for row in rows]


def _store(place: str | Path) -> Store:
    if not is_postgres(place):
        return TeamFile.open(Path(place))
    from clew.server.database import DatabaseStore  # an extra

    return DatabaseStore(str(place))
