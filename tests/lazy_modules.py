"""Modules that few tests need and that take long to load."""

from importlib import import_module
from typing import Any


class LazyModule:
    """A module that is imported when a test first uses it, since each worker collects every test file."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # by which pytest looks for fixtures and marks among the names of a file
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)
