"""`login` stores a token."""

import argparse
import sys

from arena_agent.commands import NO_ACCESS, OK, REFUSED, CommandFailed, show


def log_in(options: argparse.Namespace) -> int:
    from getpass import getpass

    from arena_agent.access import NO_ADDRESS, Access, store_access
    from arena_agent.arena_api import AccessDenied, Arena, ArenaUnavailable, InvalidAddress, UnexpectedAnswer

    if not options.url:
        raise CommandFailed(NO_ADDRESS, REFUSED)
    token = (getpass("token: ") if sys.stdin.isatty() else sys.stdin.readline()).strip()
    if not token:
        raise CommandFailed("no token was given", REFUSED)
    try:
        with Arena(options.url, token) as arena:
            arena.open_tasks()
            path = store_access(Access(arena.url, token))
    except InvalidAddress as error:
        raise CommandFailed(str(error), REFUSED) from None
    except AccessDenied as error:
        raise CommandFailed(str(error), NO_ACCESS) from None
    except (ArenaUnavailable, UnexpectedAnswer, OSError) as error:
        raise CommandFailed(str(error)) from None
    show(options, {"url": arena.url, "file": str(path)}, f"logged in at {arena.url}; the token is in {path}")
    return OK
