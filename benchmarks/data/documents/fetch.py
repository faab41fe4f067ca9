"""Fetches the documents of manifest.json: `python fetch.py OUT [NAME ...]`, a NAME being a folder (f3) or a file.

Each Debian package is downloaded from a mirror, or by `apt-get download` where the mirror has it no longer, and a source
distribution ("sdist") by pip. The named files are unpacked, checked against their sha256 and written to
OUT/FOLDER/docs beside the questions.
"""

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
POOLS = ("http://deb.debian.org/debian/pool/main", "http://deb.debian.org/debian-security/pool/updates/main")


def main(out: Path, wanted: set[str]) -> int:
    failed = 0
    questions = [json.loads(line) for line in gzip.open(HERE / "questions.jsonl.gz", "rt", encoding="utf-8")]
    for entry in json.loads((HERE / "manifest.json").read_text("utf-8")):
        folder = out / entry["folder"]
        for file in entry["files"]:
            if wanted and not wanted & {entry["folder"], file["file"]}:
                continue
            (folder / "docs").mkdir(parents=True, exist_ok=True)
            try:
                data = fetched(file)
            except (OSError, subprocess.CalledProcessError, ValueError) as error:
                failed += 1
                print(f"{entry['folder']}/{file['file']}: {error}", file=sys.stderr)
                continue
            (folder / "docs" / file["file"]).write_bytes(data)
            print(f"{entry['folder']}/{file['file']}")
        if folder.is_dir():
            own = [{key: part for key, part in row.items() if key != "folder"} for row in questions
                   if row["folder"] == entry["folder"]]
            lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in own)
            (folder / "questions.jsonl").write_text(lines, "utf-8")
    return failed


def fetched(file: dict[str, str]) -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        if file["architecture"] == "sdist":
            named = f"{file['package']}=={file['version']}"
            asked = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", named]
            subprocess.run(asked, cwd=scratch, check=True)
            with tarfile.open(next(Path(scratch).glob("*.tar.gz"))) as archive:
                archive.extractall(f"{scratch}/tree", filter="data")
        else:
            package = download(file, Path(scratch))
            subprocess.run(["dpkg-deb", "-x", str(package), f"{scratch}/tree"], check=True)
        data = (Path(scratch) / "tree" / file["path"]).read_bytes()
    if file["path"].endswith(".gz"):
        data = gzip.decompress(data)
    found = hashlib.sha256(data).hexdigest()
    if found != file["sha256"]:
        raise ValueError(f"its sha256 is {found}, not {file['sha256']}")
    return data


def download(file: dict[str, str], scratch: Path) -> Path:
    """The package from the pool of a mirror; its name there has the version without the epoch."""
    source, package = file["source"], file["package"]
    prefix = source[:4] if source.startswith("lib") else source[0]
    name = f"{package}_{file['version'].partition(':')[2] or file['version']}_{file['architecture']}.deb"
    for pool in POOLS:
        try:
            with urllib.request.urlopen(f"{pool}/{prefix}/{source}/{urllib.parse.quote(name)}", timeout=60) as answer:
                with (scratch / name).open("wb") as stored:
                    shutil.copyfileobj(answer, stored)
            return scratch / name
        except urllib.error.HTTPError:
            continue
    asked = ["apt-get", "download", "-q", f"{package}={file['version']}"]
    subprocess.run(asked, cwd=scratch, check=True, stdout=subprocess.DEVNULL)
    return next(scratch.glob("*.deb"))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), set(sys.argv[2:])) > 0)
