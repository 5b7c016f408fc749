#!/usr/bin/env python
"""The arena's command line: `manage.py demo`, `manage.py arena`, and everything `manage.py help` lists."""

import gc
import os
import sys

BAD_USAGE = 2
ALLOCATION_THRESHOLD = 10_000
"""New objects between two garbage collections: with Python's 700 they take a twelfth of a command's start."""


def main() -> None:
    os.umask(0o077)  # the database, archives and backups are for the account that runs the arena
    gc.set_threshold(ALLOCATION_THRESHOLD)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "arena_site.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        from django.conf import settings

        settings.DATABASES  # noqa: B018 - loads the settings now, so that a wrong one is said in one line
    except ImproperlyConfigured as wrong:
        print(f"wrong setting: {wrong}", file=sys.stderr)
        raise SystemExit(BAD_USAGE) from None
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
