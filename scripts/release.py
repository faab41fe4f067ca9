"""From the sources to files that can be published, tried as a stranger would try them.

    python scripts/release.py [--out dist]

1. Build wheel and sdist, and check them (`build` and `twine`, in an environment of their own).
2. Install the wheel into an empty environment.
3. Without any network: build a base of three nodes, ask it a question, and let `clew doctor` look at the installation.
4. Print what each installed package takes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

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
SIZES = """
import json, sys
from importlib.metadata import distributions
from pathlib import Path

def size(file):
    path = Path(file.locate())
    return path.stat().st_size if path.is_file() else 0

sizes = {one.name: sum(size(file) for file in one.files or ()) for one in distributions()}
json.dump({name: size for name, size in sizes.items() if name not in ("pip", "setuptools")}, sys.stdout)
"""


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
        ask_offline(python, Path(folder))
        show_sizes(python)
    print(f"ready to be published: {', '.join(sorted(path.name for path in out.iterdir()))}")


def built(folder: Path, out: Path) -> Path:
    """The wheel, with the sdist beside it; what an earlier build left in `out` is refused."""
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
    """The Python of a new and empty environment."""
    venv.create(place, with_pip=True)
    return place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def ask_offline(python: Path, folder: Path) -> None:
    """The first question of a new user, with every host but this one out of reach."""
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
    """What a command prints that can reach no other machine, away from the sources."""
    command = [str(python), "-I", "-c", OFFLINE, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, encoding="utf-8").stdout


def show_sizes(python: Path) -> None:
    """Megabytes by package, the largest first."""
    told = subprocess.run([str(python), "-c", SIZES], check=True, capture_output=True, text=True).stdout
    sizes = sorted(json.loads(told).items(), key=lambda item: -item[1])
    for name, size in sizes:
        if size >= 1_000_000:
            print(f"{size / 1e6:8.1f} MB  {name}")
    print(f"{sum(size for _, size in sizes) / 1e6:8.1f} MB  in all")


def run(*command: object) -> None:
    """A command that must succeed; its output is shown."""
    subprocess.run(list(map(str, command)), check=True)


if __name__ == "__main__":
    main()
