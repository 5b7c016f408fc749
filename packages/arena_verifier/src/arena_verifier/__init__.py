"""The rules of the arena's record: what follows from what, with the standard library alone."""

__version__ = "0.2.0"
