"""The documentation builds as a site without a network, and no link leads nowhere."""

import subprocess
import sys

import pytest

from conftest import ROOT

pytest.importorskip("material", reason="mkdocs-material is not installed: pip install --group site")


def test_the_site_is_built_strictly_with_its_generated_pages(tmp_path):
    built = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "site.py", built], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "clew reproduce" in (built / "reference/commands/index.html").read_text("utf-8")
    assert "fonts.googleapis" not in (built / "index.html").read_text("utf-8")
