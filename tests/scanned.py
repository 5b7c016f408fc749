"""The static files, looked for once per process: each test's client is a site of its own that would look for them."""

import gc
from collections.abc import Callable
from typing import Any

from django.conf import settings
from whitenoise.middleware import WhiteNoiseMiddleware

WHAT_DECIDES = ("STATIC", "WHITENOISE", "INSTALLED_APPS", "DEBUG")
"""How the names of the settings begin that say which files there are, and how they are sent."""


def look_once() -> None:
    """What was found holds as long as the settings do. Processes that tests start look for themselves."""
    look: Callable[[Any], None] = WhiteNoiseMiddleware.add_files_from_finders
    found: dict[str, dict[str, Any]] = {}

    def look_or_remember(self: Any) -> None:
        told = repr([(name, getattr(settings, name)) for name in dir(settings) if name.startswith(WHAT_DECIDES)])
        if told not in found:
            look(self)
            found[told] = dict(self.files)
        self.files.update(found[told])

    WhiteNoiseMiddleware.add_files_from_finders = look_or_remember


def leave_alone() -> None:
    """What is loaded by now stays to the end: the collector of garbage need not go through it again and again."""
    gc.collect()
    gc.freeze()
