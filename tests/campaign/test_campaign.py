"""The short run of the campaign, with fixed seeds; `make campaign` is the long one, with a report."""

import groups
import pytest
import syscalls
from campaigns import CAMPAIGNS, Campaign
from commands import Writers
from writing import killed_at

from repeats import repeats


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
    step = repeats(max(1, moments // 20), 1)  # about twenty calls in the suite, every call in the campaign
    assert [wrong for at in range(0, moments, step) for wrong in killed_at(writers, name, at, tmp_path)[1]] == []
