"""Where one question stays on its way from the command line to its answer: the files of Clew whose functions run.

    python benchmarks/stays.py KB METHOD QUESTION

A stay is a file outside the libraries: the packages that anybody may use by themselves, what all commands share (the
table of commands, their options, what they print) and what all methods share (what a method is, who plays a role, from
ranked nodes to an answer). A file that is only imported is none. docs/explanation/architecture.md says what comes out.
"""

from __future__ import annotations

import inspect
import io
import sys
import threading
from contextlib import redirect_stdout, suppress
from pathlib import Path
from types import FrameType

import clew
from clew import cli

LIBRARIES = ("core/", "models/", "store/")
LIBRARIES += ("answering/queries/", "answering/reading/", "answering/roles/", "answering/conversation.py")
SHARED = ("cli/__init__.py", "cli/options.py", "cli/output.py")
SHARED += tuple(f"answering/methods/{name}.py" for name in ("__init__", "protocol", "role_choice", "answering"))


def files_run(arguments: list[str]) -> list[str]:
    """The files of the package whose functions a command runs, in the order in which each is first entered."""
    root = f"{Path(clew.__file__).parent}/"
    entered: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.endswith(("comp>", "expr>"))
        if event == "call" and is_function and code.co_filename.startswith(root):
            entered[code.co_filename.removeprefix(root)] = None  # bodies of modules and classes are not optimized

    sys.argv = ["clew", *arguments]
    threading.setprofile(note)
    sys.setprofile(note)
    with redirect_stdout(io.StringIO()), suppress(SystemExit):
        cli.main()
    sys.setprofile(None)
    return list(entered)


if __name__ == "__main__":
    base, method, question = sys.argv[1:]
    ran = files_run(["ask", base, question, "--method", method, "--json"])
    stays = [file for file in ran if not file.startswith((*LIBRARIES, *SHARED))]
    sys.stdout.write(f"{method}: {len(stays)} stays of {len(ran)} files that run: {', '.join(stays)}\n")
