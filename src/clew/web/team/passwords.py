"""Passwords, kept as argon2id with the costs of RFC 9106 (section 4, 64 MB): what was kept as scrypt still fits."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from threading import Semaphore

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from argon2.profiles import RFC_9106_LOW_MEMORY

from clew.core.errors import InputError

SHORTEST, LONGEST = 12, 200
FEWEST_MARKS = 5
_HASHER = PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
_AT_ONCE = Semaphore(2)
"""Guesses that are computed at the same time; more would take memory and every core."""
_EMPTY = base64.b64encode(bytes(16)).decode()
NOBODY = f"$argon2id$v=19$m=65536,t=3,p=4${_EMPTY.rstrip('=')}${'A' * 43}"
"""The password of a user who does not exist: trying it takes as long as another one, and nothing fits."""
_NOBODY_BEFORE = f"scrypt$15$8$3${_EMPTY}${_EMPTY}"


def hashed(password: str) -> str:
    """What is kept of a password."""
    with _AT_ONCE:
        return _HASHER.hash(_bytes(password))


def fits(password: str, kept: str) -> bool:
    """Whether this is the password."""
    with _AT_ONCE:
        if kept.startswith("scrypt$"):
            return _fits_scrypt(password, kept)
        try:
            return _HASHER.verify(kept, _bytes(password))
        except VerifyMismatchError:
            return False


def is_outdated(kept: str) -> bool:
    """Whether a password that fits should be kept anew: as scrypt, or at other costs than now."""
    return kept.startswith("scrypt$") or _HASHER.check_needs_rehash(kept)


def is_password(kept: str) -> bool:
    """Whether a user has one; who signs in at a provider has none."""
    return kept not in (NOBODY, _NOBODY_BEFORE)


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


def _fits_scrypt(password: str, kept: str) -> bool:
    _, log_n, r, p, salt, digest = kept.split("$")
    cost = {"n": 1 << int(log_n), "r": int(r), "p": int(p), "maxmem": 1 << 28, "dklen": 32}
    return hmac.compare_digest(
        hashlib.scrypt(_bytes(password), salt=base64.b64decode(salt), **cost), base64.b64decode(digest)
    )


def _bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")
