"""Number of repetitions of a random test: few in the suite, many in the campaign."""

import os


def repeats(suite: int, campaign: int) -> int:
    """Return `campaign` if CLEW_LONG is set, as `make campaign` does, or else `suite`.

    Mark tests that use it with `pytest.mark.long`, unless they are tests of Hypothesis: the campaign runs both.
    """
    return campaign if os.environ.get("CLEW_LONG") else suite
