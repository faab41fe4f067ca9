"""`python -m clew` is the command line."""

from clew.cli import command

command()
