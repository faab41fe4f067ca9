"""The short run of the campaign, with fixed seeds; `make campaign` is the long one, with a report."""

import groups
import pytest
import syscalls
from campaigns import CAMPAIGNS, Campaign
from commands import Writers
from writing import killed_at

from clew.server.store import Actor
from clew.server.team.team import Team
from clew.server.wire_team import UserChange
from repeats import repeats
from team_members import cheap_passwords  # noqa: F401


@pytest.fixture(scope="module")
def writers(tmp_path_factory) -> Writers:
    return Writers(tmp_path_factory.mktemp("campaign"))


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=lambda campaign: campaign.name)
def test_nothing_that_arrives_can_hurt_it(campaign: Campaign, writers: Writers, tmp_path):
    failures = {seed: wrong for seed in range(campaign.short) if (wrong := campaign.once(writers, seed, tmp_path))}
    assert failures == {}


@pytest.mark.parametrize(
    ("where", "instead"),
    [
        ("clew.store.sources.delta._with_groups", lambda piece, _: piece),
        ("clew.store.graph.visibility.widened", lambda *_: []),
        ("clew.store.curation.merging.audience", lambda _: frozenset()),
    ],
)
def test_the_campaign_of_groups_sees_a_leak(tmp_path, monkeypatch, where, instead):
    monkeypatch.setattr(where, instead)
    assert any(groups.history(seed, tmp_path) for seed in range(1, 40))


WRITERS = ("dedup --merge", "dedup --undo", "feedback", "feedback --learn", "tune", "train reader")


@pytest.mark.long
@pytest.mark.skipif(not syscalls.IS_POSSIBLE, reason="processes are stopped at their calls on Linux only")
@pytest.mark.parametrize("name", [*WRITERS, "train reader, questions"])
def test_a_kill_before_any_call_that_writes_leaves_the_old_state_or_the_new_one(name: str, writers: Writers, tmp_path):
    moments = writers.calls(name)
    assert moments
    step = repeats(max(1, moments // 8), 1)  # about eight calls in the suite, every call in the campaign
    assert [wrong for at in range(0, moments, step) for wrong in killed_at(writers, name, at, tmp_path)[1]] == []


def _users_and_audit(place: str) -> tuple[list[object], list[str]]:
    team = Team.open(place)
    try:
        return team.users.all(), [f"{line.what} {line.about}" for line in team.audit_log()]
    finally:
        team.store.close()


CHANGES = {
    "make": lambda users: users.make(Actor("campaign"), "bob", UserChange(roles={"graph": "reader"}, groups=["hr"])),
    "change": lambda users: users.change(
        Actor("campaign"), "ada", UserChange(roles={"*": "admin", "graph": "editor"}, groups=["hr", "board"])
    ),
    "remove": lambda users: users.remove(Actor("campaign"), "eve"),
    "reset password": lambda users: users.reset_password(Actor("campaign"), "eve"),
    "member": lambda users: users.set_member(Actor("campaign"), "graph", "eve", "editor"),
    "admit": lambda users: users.admit(Actor("campaign"), "issuer#42", "mia", {"graph": "reader"}, ["hr"]),
}


@pytest.mark.long
@pytest.mark.skipif(not syscalls.IS_POSSIBLE, reason="processes are stopped at their calls on Linux only")
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_users_in_a_database_that_is_killed_is_there_or_not(name: str, own_database, cheap_passwords):  # noqa: F811
    """Users, roles, groups and the audit log change together, and nothing that was killed blocks the next change."""
    team = Team.open(own_database)
    for user in ("ada", "eve"):
        team.users.make(Actor("campaign"), user, UserChange(roles={"*": "admin"} if user == "ada" else {}))
    team.store.close()

    def work() -> None:
        opened = Team.open(own_database)
        CHANGES[name](opened.users)
        opened.store.close()

    moments = syscalls.kill_before(lambda: Team.open(own_database).store.close(), syscalls.SOCKETS).moments
    before, kept = _users_and_audit(own_database), []
    for at in range(repeats(moments - 1, 0), moments + repeats(4, 60)):
        ended = syscalls.kill_before(work, syscalls.SOCKETS, at)
        assert not ended.fault
        kept.append(_users_and_audit(own_database))
        if not ended.is_killed or kept[-1] != before:
            break
        assert kept[-1] == before
    if kept[-1] == before:
        work()
    users, audit = _users_and_audit(own_database)
    assert len(audit) == len(before[1]) + 1
    assert [user for user in users if user not in before[0]] or name in ("remove", "reset password")
    if kept[-1] != before:
        assert (users, audit) == kept[-1]
