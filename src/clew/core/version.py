"""The version of Clew."""

__version__ = "0.2.0.dev0"
