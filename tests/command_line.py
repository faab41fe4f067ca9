"""A command as a user runs it."""

import pytest

from clew import cli


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["clew", *map(str, arguments)])
        cli.app.registered_commands.clear()
        cli.app.registered_groups.clear()
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        shown = capsys.readouterr()
        return stopped.value.code or 0, shown.out, shown.err

    return run
