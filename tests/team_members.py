"""A team for tests: a server with users, and people who have signed in to it."""

import functools
import shutil
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from argon2 import PasswordHasher
from fastapi.testclient import TestClient

from clew.server.app import create_app
from clew.server.settings import ServerSettings
from clew.server.store import SERVER
from clew.server.team import users as passwords
from clew.server.team.team import Team
from clew.server.wire_team import UserChange
from clew.store.building import build
from conftest import tables

CHEAP_HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
PASSWORD = "a thread through the maze"
ROLES = {
    "root": {"*": "admin"},
    "ada": {"open": "admin"},
    "ed": {"papers": "editor", "open": "editor"},
    "rea": {"open": "reader"},
    "nob": {},
}
"""Admin of the server, admin of a base, editor, reader, and one without a role."""


@functools.cache
def _hashed(hasher: PasswordHasher) -> str:
    """Return the hash of PASSWORD at the costs of `hasher`, computed once."""
    return hasher.hash(PASSWORD)


@pytest.fixture
def cheap_passwords(monkeypatch):
    """Hash passwords at the lowest costs: signing in costs 0.4 s of processor time otherwise."""
    monkeypatch.setattr(passwords, "_HASHER", CHEAP_HASHER)


def make_team(place: str | Path) -> Team:
    """Users of every kind, all with the same password of their own."""
    team = Team.open(place)
    with patch("clew.server.team.users.hashed", lambda _: _hashed(passwords._HASHER)):  # whose cost is paid once
        for name, roles in ROLES.items():
            team.users.make(SERVER, name, UserChange(roles=roles, groups=["hr"] if name == "ed" else []))
    team.store.note("UPDATE user SET is_initial = FALSE")
    return team


def make_settings(folder: Path, team: Team, **more) -> ServerSettings:
    """Two plain bases, `open` and `closed`, and one that takes documents."""
    build(tables(), folder / "open.kb")
    shutil.copytree(folder / "open.kb", folder / "closed.kb")
    bases = {name: folder / f"{name}.kb" for name in ("open", "closed")}
    return replace(ServerSettings(bases, {"papers": folder / "papers"}, access=team), **more)


class Visitor(TestClient):
    """Somebody's browser: keeps cookies, and repeats the page's word once signed in."""

    def sign_in(self, name: str, password: str = PASSWORD):
        """Sign in by the page's form."""
        reply = self.post("/v1/sign-in", json={"name": name, "password": password})
        if reply.status_code == 200:
            self.headers["x-csrf-token"] = reply.json()["csrf"]
        return reply


def visitor(app, name: str | None = None, **headers: str) -> Visitor:
    """A new browser, perhaps signed in."""
    made = Visitor(app, base_url="http://localhost", headers=headers)
    if name is not None:
        assert made.sign_in(name).status_code == 200
    return made


def app_of(settings: ServerSettings):
    """The application."""
    return create_app(settings)
