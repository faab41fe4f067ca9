"""The runs of `clew eval` that a server shows."""

from __future__ import annotations

from pathlib import Path

from clew.evaluation.report import Section, load_runs, make_report
from clew.evaluation.run_folder import ANSWERS

Files = tuple[tuple[str, int, int], ...]
"""Name, time and size of each."""


class Evaluations:
    """The report over a folder of runs, made again when a file of it has changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: tuple[Files, list[Section]] | None = None

    def sections(self) -> list[Section]:
        """One for each set of questions."""
        files = self._files()
        if self._made is None or self._made[0] != files:
            self._made = (files, make_report(load_runs([self.folder])) if files else [])
        return self._made[1]

    def _files(self) -> Files:
        if not self.folder.is_dir():
            return ()
        found = sorted(self.folder.rglob(ANSWERS))
        return tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in found)
