"""The commands of `arena-agent`, a module for each point, and what they share: exit codes, refusals and output."""

import argparse
import json
from typing import Any

OK, FAILED, REFUSED, NO_ACCESS = 0, 1, 2, 3


class CommandFailed(Exception):
    """A command ends with a sentence and an exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def show(options: argparse.Namespace, summary: dict[str, Any], text: str) -> None:
    """Prints one line of JSON, or the text."""
    print(json.dumps(summary, allow_nan=False) if options.json else text)
