"""The documentation as a site: `python scripts/site.py OUT` (needs `pip install --group site`; no network).

Documents are copied beside generated pages (commands by their --help, the Python API by its docstrings) and built by
mkdocs, strictly: a link that leads nowhere fails. Links to files of the repository that are no document become text.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from shutil import copytree, rmtree

import typer

import clew
from clew.answering.methods.catalog import describe, method_names
from clew.cli import COMMANDS, _register, app

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")
TOP = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
}
NAV = {
    "Tutorials": "tutorials/graph tutorials/documents tutorials/research",
    "Guides": "guides/installing guides/sources guides/documents guides/models guides/languages guides/web"
    " guides/conversations guides/curation guides/evaluation guides/synthesis guides/scale how_to/model_servers"
    " how_to/neo4j how_to/wikidata how_to/pandas how_to/postgresql how_to/langchain how_to/editor",
    "Reference": "reference/commands reference/methods reference/query_language reference/answers generated/commands"
    " generated/python generated/methods changelog",
    "Explanation": "explanation/architecture explanation/reader explanation/graph_network explanation/certificates"
    " explanation/search explanation/subgraphs explanation/reliability explanation/security reporting contributing",
}
CONFIG = """\
site_name: Clew
site_description: {description}
docs_dir: {source}
site_dir: {out}
theme:
  name: material
  font: false
  features: [navigation.tabs, navigation.top, content.code.copy]
  palette:
    - {{media: "(prefers-color-scheme: light)", scheme: default, primary: indigo}}
    - {{media: "(prefers-color-scheme: dark)", scheme: slate, primary: indigo}}
plugins: [search]
markdown_extensions: [tables, toc, pymdownx.superfences, pymdownx.highlight]
validation: {{links: {{anchors: warn, not_found: warn, absolute_links: warn}}, nav: {{omitted_files: ignore}}}}
nav:
{nav}
"""


def copied(source: Path) -> None:
    """Every document, its links as they are on the site."""
    rmtree(source, ignore_errors=True)
    copytree(ROOT / "docs", source)
    for name, page in TOP.items():
        (source / page).write_text((ROOT / name).read_text("utf-8"), "utf-8")
    for page in source.rglob("*.md"):
        origin = ROOT / "docs" / page.relative_to(source)
        if page.parent == source and page.name in TOP.values():
            origin = ROOT / next(name for name, own in TOP.items() if own == page.name)
        linked = partial(_linked, origin=origin, page=page, source=source)
        page.write_text(LINK.sub(linked, page.read_text("utf-8")), "utf-8")


def _linked(link: re.Match[str], origin: Path, page: Path, source: Path) -> str:
    text, target, anchor = link[1], link[2], link[3] or ""
    if "://" in target or target.startswith("mailto:"):
        return link[0]
    file = (origin.parent / target).resolve()
    if file.parent == ROOT and file.name in TOP:
        there = source / TOP[file.name]
    elif file.is_relative_to(ROOT / "docs") and file.is_file():
        there = source / file.relative_to(ROOT / "docs")
    elif file == ROOT / "docs" or file.is_dir():
        return text
    elif file.exists():
        return f"{text} (`{file.relative_to(ROOT)}`)"
    else:
        return link[0]  # leads nowhere: the build says so
    up = [".."] * len(page.parent.relative_to(source).parts)
    return f"[{text}]({'/'.join([*up, *there.relative_to(source).parts])}{anchor})"


def generated(source: Path) -> None:
    """Pages that are written from the code."""
    place = source / "generated"
    place.mkdir()
    _register()
    click = typer.main.get_command(app)
    parts = ["# Commands\n"]
    for names in COMMANDS:
        found, context = click, typer.Context(click, info_name="clew")
        for name in names.split():
            found = found.commands[name]  # type: ignore[attr-defined]
            context = typer.Context(found, info_name=name, parent=context)
        rows = [_option(one, context) for one in found.params]
        parts.append(f"## clew {names}\n\n{inspect.cleandoc(found.help or '')}\n\n`{found.get_usage(context)}`\n")
        parts.append(
            "| argument or option | what it is |\n| --- | --- |\n" + "\n".join(row for row in rows if row) + "\n"
        )
    (place / "commands.md").write_text("\n".join(parts), "utf-8")
    parts = ["# Python\n"]
    for name in sorted(clew.__all__, key=str.lower):
        thing = getattr(clew, name)
        said = inspect.getdoc(thing) or ""
        signature = f"{inspect.signature(thing)}" if callable(thing) and not inspect.isclass(thing) else ""
        parts.append(
            f"## clew.{name}\n\n" + (f"```text\n{name}{signature}\n```\n\n" if signature else "") + f"{said}\n"
        )
        if inspect.isclass(thing) and thing.__module__.startswith("clew"):
            for own, member in vars(thing).items():
                if not own.startswith("_") and callable(member):
                    first = (inspect.getdoc(member) or "").split("\n")[0]
                    parts.append(f"- `{own}{inspect.signature(member)}`: {first}")
            parts.append("")
    (place / "python.md").write_text("\n".join(parts), "utf-8")
    parts = ["# Methods and their options\n"]
    for name in method_names():
        said, options = describe(name)
        rows = "\n".join(f"| `{option}` | `{kind.replace('|', '¦')}` |" for option, kind in options.items())
        parts.append(
            f"## {name}\n\n{said}\n\n" + (f"| option | values and default |\n| --- | --- |\n{rows}\n" if rows else "")
        )
    (place / "methods.md").write_text("\n".join(parts), "utf-8")


def _option(option: object, context: typer.Context) -> str:
    record = option.get_help_record(context)  # type: ignore[attr-defined]
    if record is None:
        return ""
    return (
        "| "
        + " | ".join(
            f"`{cell}`" if not place else cell for place, cell in enumerate(c.replace("|", "¦") for c in record)
        )
        + " |"
    )


def main() -> None:
    """Copy, generate, build."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "site").resolve()
    source = out.with_name(f"{out.name}-source")
    copied(source)
    generated(source)
    chosen = {title: [f"{page}.md" for page in pages.split()] for title, pages in NAV.items()}
    listed = {page for pages in chosen.values() for page in pages}
    rest = sorted(str(page.relative_to(source)) for page in source.rglob("*.md"))
    more = [page for page in rest if page not in listed and page != "index.md"]
    nav = ["  - index.md"]
    for title, pages in {**chosen, "Papers and measurements": more}.items():
        nav += [f"  - {title}:", *(f"      - {page}" for page in pages)]
    description = re.sub(r"\s+", " ", clew.__doc__ or "").split(". ")[0].replace(":", ",")
    config = source.with_name("mkdocs.yml")
    config.write_text(CONFIG.format(description=description, source=source, out=out, nav="\n".join(nav)), "utf-8")
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", config], check=True)
    print(f"written: {out / 'index.html'}")


main()
