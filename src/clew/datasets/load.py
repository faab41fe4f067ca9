"""Data sets by name: `NAME:PATH[:SPLIT]`, or the path of a plain file of questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from clew.core.errors import NotFoundError
from clew.datasets.corpus import load_corpus
from clew.datasets.freebase import load_cwq, load_grailqa, load_webquestions
from clew.datasets.hotpotqa import load_2wiki, load_hotpotqa
from clew.datasets.metaqa import load_metaqa
from clew.datasets.mintaka import load_mintaka
from clew.datasets.musique import load_musique
from clew.datasets.pathquestion import load_pathquestion
from clew.datasets.plain import load_plain
from clew.datasets.questions import Dataset
from clew.datasets.stark import load_stark
from clew.datasets.webqsp import load_webqsp

LOADERS: Mapping[str, Callable[[Path, str | None], Dataset]] = {
    "stark": load_stark,
    "metaqa": load_metaqa,
    "pathquestion": load_pathquestion,
    "webqsp": load_webqsp,
    "cwq": load_cwq,
    "grailqa": load_grailqa,
    "webquestions": load_webquestions,
    "mintaka": load_mintaka,
    "hotpotqa": load_hotpotqa,
    "2wiki": load_2wiki,
    "musique": load_musique,
    "corpus": load_corpus,
    "jsonl": load_plain,
}


def load_dataset(name: str) -> Dataset:
    """Read `NAME:PATH[:SPLIT]`, such as `metaqa:DIR:2-hop-dev`, or a plain JSONL file of questions."""
    loader, colon, rest = name.partition(":")
    if not colon or loader not in LOADERS:
        if Path(name).exists() or Path(name + ".gz").exists():
            return load_plain(Path(name))
        raise NotFoundError(
            f"no file {name!r} and no such data set; write FILE.jsonl or NAME:PATH[:SPLIT] with NAME one of "
            + ", ".join(LOADERS)
        )
    path, split = _path_and_split(rest)
    return LOADERS[loader](path, split)


def _path_and_split(text: str) -> tuple[Path, str | None]:
    """A path may itself hold colons: what exists as a whole is the path."""
    whole = Path(text).expanduser()
    if whole.exists() or whole.with_name(whole.name + ".gz").exists() or ":" not in text:
        return whole, None
    path, _, split = text.rpartition(":")
    return Path(path).expanduser(), split
