"""Records that apps keep of every command's run, such as its requests to venues."""

from collections.abc import Callable

recorders: list[Callable[[], None]] = []
"""Called at the end of a run that ended by itself; apps add theirs when they are ready."""
