"""The page that ships is the page of the sources."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_the_shipped_bundle_equals_a_fresh_build(tmp_path):
    esbuild = ROOT / "web" / "node_modules" / ".bin" / "esbuild"
    if shutil.which("node") is None or not esbuild.exists():
        pytest.skip("no node, or no `npm ci` in web/: the bundle cannot be built here")
    shutil.copytree(ROOT / "web" / "src", tmp_path / "web" / "src")
    shutil.copy(ROOT / "web" / "package.json", tmp_path / "web" / "package.json")
    (tmp_path / "web" / "node_modules").symlink_to(ROOT / "web" / "node_modules")
    subprocess.run(["npm", "run", "--silent", "build"], cwd=tmp_path / "web", check=True, capture_output=True)
    for name in ("main.js", "style.css"):
        fresh = (tmp_path / "src" / "clew" / "web" / "static" / name).read_bytes()
        assert fresh == (ROOT / "src" / "clew" / "web" / "static" / name).read_bytes(), f"npm run build in web/: {name}"
    typed = subprocess.run(["npx", "tsc", "--noEmit"], cwd=ROOT / "web", capture_output=True, text=True)
    assert typed.returncode == 0, typed.stdout
