"""From the sources to files that can be published, tried as a stranger would try them.

    python scripts/release.py [--out dist]

1. Build wheel and sdist, and check them (`build` and `twine`, in an environment of their own).
2. Install the wheel into an empty environment.
3. Write what it was installed with beside it, as a CycloneDX file.
4. Without any network: build a base of three nodes, ask it a question, and let `clew doctor` look at the installation.
5. Print what each installed package takes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
import venv
from pathlib import Path
from typing import Any

from dependencies import Package

ROOT = Path(__file__).parent.parent
NODES = [
    {"id": "FBN1", "type": "gene", "name": "FBN1", "text": "Encodes fibrillin 1, a protein of connective tissue."},
    {"id": "MFS", "type": "disease", "name": "Marfan syndrome", "text": "A disorder of connective tissue."},
    {"id": "P3", "type": "phenotype", "name": "Arachnodactyly", "text": "Abnormally long and slender fingers."},
]
EDGES = ["head\trelation\ttail", "FBN1\tassociated_with\tMFS", "MFS\thas_phenotype\tP3"]
QUESTION, ANSWER = "Which gene is associated with Marfan syndrome?", "FBN1"
OFFLINE = """
import sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        host = arguments[1][0] if event != "socket.getaddrinfo" else arguments[0]
        if host not in ("127.0.0.1", "::1", "localhost"):
            raise OSError(f"there is no network here, and {host} was asked for")

sys.addaudithook(refuse)
from clew.cli import main
main()
"""
NOT_OURS = {"pip", "setuptools"}
"""What every new environment has."""


def main() -> None:
    """Every step; the first that fails ends it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    out = parser.parse_args().out.resolve()
    with tempfile.TemporaryDirectory() as folder:
        wheel = built(Path(folder), out)
        python = environment(Path(folder) / "empty")
        begun = time.perf_counter()
        run(python, "-m", "pip", "install", "--quiet", str(wheel))
        print(f"installed in {time.perf_counter() - begun:.0f} s")
        packages = installed(python)
        write_bill(wheel, packages)
        ask_offline(python, Path(folder))
        show_sizes(packages)
    print(f"ready to be published: {', '.join(sorted(path.name for path in out.iterdir()))}")


def built(folder: Path, out: Path) -> Path:
    """Build the wheel and the sdist. Refuse files of an earlier build in `out`."""
    if out.exists() and any(out.iterdir()):
        sys.exit(f"{out} is not empty: remove it, or name another folder with --out")
    python = environment(folder / "tools")
    run(python, "-m", "pip", "install", "--quiet", "build", "twine")
    source = folder / "source"  # building leaves things behind
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "*.egg-info", "build", "dist", "node_modules"))
    run(python, "-m", "build", "--outdir", str(out), str(source))
    run(python, "-m", "twine", "check", "--strict", *map(str, sorted(out.iterdir())))
    (wheel,) = out.glob("*.whl")
    return wheel


def environment(place: Path) -> Path:
    """Return the Python of a new and empty environment."""
    venv.create(place, with_pip=True)
    return place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def ask_offline(python: Path, folder: Path) -> None:
    """Ask a new user's first question without a network."""
    (folder / "nodes.jsonl").write_text("".join(json.dumps(node) + "\n" for node in NODES), "utf-8")
    (folder / "edges.tsv").write_text("\n".join(EDGES) + "\n", "utf-8")
    begun = time.perf_counter()
    offline(python, folder, "build", "nodes.jsonl", "edges.tsv", "-o", "medicine.kb")
    answer = json.loads(offline(python, folder, "ask", "medicine.kb", QUESTION, "--json"))
    found = [candidate["name"] for candidate in answer["answers"] if candidate["group"] == "match"]
    if found != [ANSWER]:
        sys.exit(f"{QUESTION} was answered with {found} instead of {ANSWER}")
    print(f"{QUESTION} {ANSWER}: built and asked in {time.perf_counter() - begun:.0f} s, without a network")
    told = json.loads(offline(python, folder, "doctor", "--json"))
    if told["problems"]:
        sys.exit(f"clew doctor: {told['problems']}")


def offline(python: Path, folder: Path, *arguments: str) -> str:
    """Return the output of a command without a network, outside the sources."""
    command = [str(python), "-I", "-c", OFFLINE, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, encoding="utf-8").stdout


def installed(python: Path) -> list[Package]:
    """Every package of an environment, with its licence and its size."""
    command = [str(python), str(ROOT / "scripts" / "dependencies.py"), "--json"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sorted((one for one in json.loads(told) if one["name"] not in NOT_OURS), key=lambda one: one["name"])


def write_bill(wheel: Path, packages: list[Package]) -> Path:
    """Beside the wheel, what it was installed with: a software bill of materials in the form of CycloneDX 1.6."""
    (own,) = (one for one in packages if one["name"] == "clew-kb")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    others = [one for one in packages if one is not own]
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
        "version": 1,
        "metadata": {"component": component(own) | {"hashes": [{"alg": "SHA-256", "content": digest}]}},
        "components": [component(one) for one in others],
        "dependencies": [{"ref": purl(own), "dependsOn": [purl(one) for one in others]}],
    }
    file = wheel.with_suffix(".cdx.json")
    file.write_text(json.dumps(bill, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return file


def component(one: Package) -> dict[str, Any]:
    """Return a package for CycloneDX, without an unknown licence."""
    named = [{"license": {"name": one["licence"]}}] if one["licence"] != "unknown" else []
    told = {"type": "library", "bom-ref": purl(one), "name": one["name"], "version": one["version"], "purl": purl(one)}
    return {**told, "licenses": named}


def purl(one: Package) -> str:
    """Return the package URL."""
    return f"pkg:pypi/{one['name']}@{one['version']}"


def show_sizes(packages: list[Package]) -> None:
    """Megabytes by package, the largest first."""
    for one in sorted(packages, key=lambda one: -one["bytes"]):
        if one["bytes"] >= 1_000_000:
            print(f"{one['bytes'] / 1e6:8.1f} MB  {one['name']}")
    print(f"{sum(one['bytes'] for one in packages) / 1e6:8.1f} MB  in all")


def run(*command: object) -> None:
    """Run a command that must succeed, and show its output."""
    subprocess.run(list(map(str, command)), check=True)


if __name__ == "__main__":
    main()
