"""Sessions by cookie and tokens for programs, stored only as digests."""

from __future__ import annotations

import hmac
import json
import secrets
import time
from dataclasses import dataclass

from clew.core.errors import InputError, NotFoundError
from clew.server.access import Grant, Role, bearer, digest_of
from clew.server.store import Actor, Row, Store
from clew.server.wire_team import TokenReply

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
