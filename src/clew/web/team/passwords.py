"""Passwords, kept as scrypt (RFC 7914) with the costs that OWASP names: a guess takes 32 MB and tenths of a second."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from threading import Semaphore

from clew.core.errors import InputError

COST = (15, 8, 3)
"""The logarithm of N, r and p: kept with every password, so that they can be raised."""
SHORTEST, LONGEST = 12, 200
FEWEST_MARKS = 5
_AT_ONCE = Semaphore(2)
"""Guesses that are computed at the same time; more would take memory and every core."""


def hashed(password: str) -> str:
    """What is kept of a password."""
    salt = secrets.token_bytes(16)
    return "$".join(("scrypt", *map(str, COST), _text(salt), _text(_scrypt(password, salt, COST))))


def fits(password: str, kept: str) -> bool:
    """Whether this is the password."""
    _, log_n, r, p, salt, digest = kept.split("$")
    found = _scrypt(password, base64.b64decode(salt), (int(log_n), int(r), int(p)))
    return hmac.compare_digest(found, base64.b64decode(digest))


NOBODY = "$".join(("scrypt", *map(str, COST), _nothing := base64.b64encode(bytes(16)).decode(), _nothing))
"""The password of a user who does not exist: trying it takes as long as another one, and nothing fits."""


def check_strength(password: str, name: str) -> None:
    """Raise where a password is too easily guessed."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise InputError(f"a password needs {SHORTEST} to {LONGEST} characters: a few words make a good one")
    holds_name = len(name) > 3 and name.lower() in password.lower()  # a shorter one stands in many words
    if len(set(password)) < FEWEST_MARKS or holds_name:
        raise InputError("a password must not hold the user's name, nor repeat the same few characters")


def generated() -> str:
    """A password to begin with."""
    return "-".join(secrets.token_hex(2) for _ in range(5))


def _scrypt(password: str, salt: bytes, cost: tuple[int, int, int]) -> bytes:
    log_n, r, p = cost
    with _AT_ONCE:
        return hashlib.scrypt(
            password.encode("utf-8", "surrogatepass"), salt=salt, n=1 << log_n, r=r, p=p, maxmem=1 << 28, dklen=32
        )


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()
