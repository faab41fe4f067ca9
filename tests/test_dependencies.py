"""What the documents say of dependencies is what is installed, and what is locked is complete and hashed."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import dependencies
import release

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
ROW = re.compile(r"\| ([a-z0-9-]+) \| (\S+) \| (.+) \| ([0-9.]+) \|")
LISTED = {
    found[1]: (found[2], found[3], float(found[4]))
    for line in dependencies.DOCUMENT.read_text("utf-8").splitlines()
    if (found := ROW.fullmatch(line))
}
LOCK = dependencies.LOCK.read_text("utf-8")


@pytest.mark.parametrize("extra", ["", *PROJECT["project"]["optional-dependencies"]])
def test_every_package_that_is_installed_is_listed_with_its_licence_and_its_size(extra):
    project = PROJECT["project"]
    requirements = project["optional-dependencies"][extra] if extra else project["dependencies"]
    for name, found in dependencies.needed(requirements).items():
        one = dependencies.described(found)
        assert name in LISTED or found.version != _locked(name), f"{name} is new: scripts/dependencies.py --document"
        version, licence, size = LISTED.get(name, (None, None, None))
        if version == one["version"]:
            assert licence == one["licence"]
            assert size / 3 - 1 <= one["bytes"] / 1e6 <= size * 3 + 1


def test_every_direct_dependency_has_a_licence():
    unknown = [name for name, (_, licence, _) in LISTED.items() if licence == "unknown"]
    assert unknown == []


def test_what_the_tests_need_is_locked_with_hashes():
    entries = re.findall(r"^([a-z0-9-]+)==(\S+) ((?:\\\n    --hash=sha256:[0-9a-f]{64} ?)+)$", LOCK, re.MULTILINE)
    names = {name for name, _, _ in entries}
    assert len(names) == len(re.findall("==", LOCK))
    extras = PROJECT["project"]["optional-dependencies"]
    tested = [one for name in ("web", "documents", "sparql", "networkx", "demo") for one in extras[name]]
    wanted = [*PROJECT["project"]["dependencies"], *tested, *PROJECT["dependency-groups"]["dev"], "setuptools"]
    assert {dependencies.normal(re.split(r"[<>=\[]", one)[0]) for one in wanted} <= names


def _locked(name: str) -> str | None:
    found = re.search(rf"^{name}==(\S+)", LOCK, re.MULTILINE)
    return found[1] if found else None


def test_a_bill_of_materials_names_the_wheel_and_all_it_brings(tmp_path):
    wheel = tmp_path / "clew_kb-1.0-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    packages = [
        {"name": "clew-kb", "version": "1.0", "licence": "Apache-2.0", "bytes": 1},
        {"name": "numpy", "version": "2.0", "licence": "BSD-3-Clause", "bytes": 1},
        {"name": "odd", "version": "3", "licence": "unknown", "bytes": 1},
    ]
    bill = json.loads(release.write_bill(wheel, packages).read_text("utf-8"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert [one["purl"] for one in bill["components"]] == ["pkg:pypi/numpy@2.0", "pkg:pypi/odd@3"]
    assert [one["licenses"] for one in bill["components"]] == [[{"license": {"name": "BSD-3-Clause"}}], []]
    (edges,) = bill["dependencies"]
    assert edges == {"ref": "pkg:pypi/clew-kb@1.0", "dependsOn": ["pkg:pypi/numpy@2.0", "pkg:pypi/odd@3"]}
    assert len(bill["metadata"]["component"]["hashes"][0]["content"]) == 64


def test_an_environment_describes_itself():
    told = subprocess.run(
        [sys.executable, ROOT / "scripts" / "dependencies.py", "--json"], check=True, capture_output=True, text=True
    )
    found = {one["name"]: one for one in json.loads(told.stdout)}
    assert found["numpy"]["version"] == distribution("numpy").version
    with pytest.raises(PackageNotFoundError):
        distribution("no-such-package")
    assert dependencies.needed(["no-such-package>=1", "numpy>=1"]).keys() == {"numpy"}
