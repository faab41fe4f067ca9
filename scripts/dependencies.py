"""What Clew is installed with: names, versions, licences and sizes, for people and for programs.

python scripts/dependencies.py --json       every package of this environment
python scripts/dependencies.py --document   docs/reference/dependencies.md (needs the group `dev`)
python scripts/dependencies.py --lock       requirements.lock: versions for the tests, with the hashes of all files
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import TypedDict

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"
DOCUMENT = ROOT / "docs" / "reference" / "dependencies.md"
TESTED = ".[web,documents,sparql,networkx,demo]"
TOOLS = ("setuptools>=77",)
"""What the package itself is built with."""
OLD = re.compile(r"-(cp2\d|cp3\d|cp310|pp\d+|py2)-(?!abi3)")
"""Wheels for other Pythons than those that Clew runs on; abi3 means that and all later ones."""
PAGE = """\
# What Clew is installed with

Written by `python scripts/dependencies.py --document` from an environment of the tests (Linux, CPython 3.11), and
compared with what is installed by `tests/test_dependencies.py`. Sizes are those of the installed files; they differ
from one system to the next. Each release comes with the same list for its wheel as a CycloneDX file (`*.cdx.json`).
`requirements.lock` has the hashes of what the tests are run with: `make test` installs exactly that where the index has
those files, and says so where it does not; `make locked` installs that or nothing.
"""
LOCKED = """\
# Written by `python scripts/dependencies.py --lock`: what the tests are run with, and the SHA-256 of every file of each
# version, for all systems. `make test` installs these where it can, `make locked` these or nothing.
"""


class Package(TypedDict):
    """One of them."""

    name: str
    version: str
    licence: str
    bytes: int


def main() -> None:
    """Do what is asked."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--json", action="store_true")
    asked.add_argument("--document", action="store_true")
    asked.add_argument("--lock", action="store_true")
    given = asked.parse_args()
    if given.json:
        json.dump([described(one) for one in distributions()], sys.stdout)
    if given.document:
        DOCUMENT.write_text(document(), "utf-8")
    if given.lock:
        LOCK.write_text(lock(), "utf-8")


def normal(name: str) -> str:
    """Return a name as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def described(one: Distribution) -> Package:
    """Return the metadata and the size of an installed package."""
    size = sum(path.stat().st_size for file in one.files or () if (path := Path(str(file.locate()))).is_file())
    return Package(name=normal(one.name), version=one.version, licence=licence(one), bytes=size)


def licence(one: Distribution) -> str:
    """In the package's own words: an SPDX expression, a short name, a classifier, or "unknown"."""
    told = one.metadata
    for field in ("License-Expression", "License"):
        words = str(told.get(field) or "").strip().partition("\n")[0].strip()
        if words and words != "UNKNOWN" and len(words) <= 60:
            return words
    named = [str(line).rpartition(" :: ")[2] for line in told.get_all("Classifier", []) if "License ::" in str(line)]
    return " / ".join(named) or "unknown"


def needed(requirements: Iterable[str]) -> dict[str, Distribution]:
    """Everything that some requirements bring in this environment, by name; what is not installed is left out."""
    from packaging.requirements import Requirement

    found: dict[str, Distribution] = {}
    waiting = [Requirement(one) for one in requirements]
    while waiting:
        one = waiting.pop()
        extras = one.extras or {""}
        if one.marker is not None and not any(one.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        name = normal(one.name)
        if name in found and not one.extras:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue
        for line in found[name].requires or ():
            other = Requirement(line)
            if other.marker is None or any(other.marker.evaluate({"extra": extra}) for extra in extras):
                other.marker = None
                waiting.append(other)
    return found


def document() -> str:
    """Return the page of all dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    plain = needed(project["dependencies"])
    whole = sum(described(one)["bytes"] for one in plain.values()) / 1e6
    lines = [
        PAGE,
        f"## By default: {len(plain)} packages, {whole:.0f} MB",
        "",
        *table(plain),
    ]
    for extra, requirements in project["optional-dependencies"].items():
        more = {name: one for name, one in needed(requirements).items() if name not in plain}
        missing = [one for one in requirements if not needed([one])]
        lines += ["", f"## With `clew-kb[{extra}]`", ""]
        lines += table(more) if more else []
        lines += ["", "Not installed for the tests, so as the index has it:", ""] if missing else []
        lines += [f"- {on_the_index(one)}" for one in missing]
    return "\n".join(lines) + "\n"


def on_the_index(requirement: str) -> str:
    """Return name, version, licence and download size of a package from an index."""
    name = re.split(r"[<>=\[]", requirement)[0]
    with urllib.request.urlopen(f"https://pypi.org/pypi/{name}/json", timeout=60) as reply:
        told = json.load(reply)
    info, files = told["info"], told["urls"]
    words = info.get("license_expression") or str(info.get("license") or "").strip().split("\n")[0][:60]
    named = [line.rpartition(" :: ")[2] for line in info.get("classifiers", ()) if "License ::" in line]
    size = max((file["size"] for file in files if file["packagetype"] == "bdist_wheel"), default=files[0]["size"])
    return f"{name} {info['version']}: {words or ' / '.join(named) or 'unknown'}, a file of up to {size / 1e6:.0f} MB"


def table(packages: dict[str, Distribution]) -> Iterator[str]:
    """Return the lines of a table."""
    yield "| package | version | licence | MB |"
    yield "| --- | --- | --- | ---: |"
    for name in sorted(packages):
        one = described(packages[name])
        yield f"| {one['name']} | {one['version']} | {one['licence']} | {one['bytes'] / 1e6:.1f} |"


def lock() -> str:
    """Every package that the tests are run with, at one version, with the hashes of all its files."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        chosen = ["--report", report.name, "-e", TESTED, "--group", "dev", *TOOLS]
        subprocess.run([*command, *chosen], cwd=ROOT, check=True)
        found = json.loads(Path(report.name).read_text("utf-8"))["install"]
    lines = [LOCKED.rstrip()]
    for name, version in sorted((normal(one["metadata"]["name"]), one["metadata"]["version"]) for one in found):
        if name != "clew-kb":
            hashes = file_hashes(name, version)
            lines += [f"{name}=={version} \\", " \\\n".join(f"    --hash=sha256:{one}" for one in hashes)]
    return "\n".join(lines) + "\n"


def file_hashes(name: str, version: str) -> list[str]:
    """Of every file of a version that this Python or a later one may install."""
    asked = urllib.request.Request(f"https://pypi.org/simple/{name}/", headers={"Accept": "text/html"})
    with urllib.request.urlopen(asked, timeout=60) as reply:
        page = reply.read().decode()
    stem = rf"{name.replace('-', '[-_.]+')}-{re.escape(version)}"
    exact = re.compile(rf"{stem}(-.*\.whl|\.tar\.gz|\.zip)", re.IGNORECASE)
    files = {file: digest for digest, file in re.findall(r'#sha256=([0-9a-f]{64})"[^>]*>([^<]+)</a>', page)}
    hashes = sorted(digest for file, digest in files.items() if exact.fullmatch(file) and not OLD.search(file))
    if not hashes:
        sys.exit(f"no file of {name} {version} on the index: is that version from somewhere else?")
    return hashes


if __name__ == "__main__":
    main()
