"""The short run of the campaign, with fixed seeds; `make campaign` is the long one, with a report."""

import pytest
from campaigns import CAMPAIGNS, Campaign
from commands import Writers


@pytest.fixture(scope="module")
def writers(tmp_path_factory) -> Writers:
    return Writers(tmp_path_factory.mktemp("campaign"))


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=lambda campaign: campaign.name)
def test_nothing_that_arrives_can_hurt_it(campaign: Campaign, writers: Writers, tmp_path):
    failures = {seed: wrong for seed in range(campaign.short) if (wrong := campaign.once(writers, seed, tmp_path))}
    assert failures == {}
