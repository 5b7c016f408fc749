"""`whoami` says as whom the arena knows the token's holder."""

import argparse

from arena_agent.commands import NO_ACCESS, OK, REFUSED, CommandFailed, show


def show_registration(options: argparse.Namespace) -> int:
    from arena_agent.access import find_access
    from arena_agent.arena_api import AccessDenied, Arena, ArenaUnavailable, InvalidAddress, UnexpectedAnswer

    try:
        access = find_access(options.url)
        with Arena(access.url, access.token) as arena:
            registration = arena.registration()
    except InvalidAddress as error:
        raise CommandFailed(str(error), REFUSED) from None
    except AccessDenied as error:
        raise CommandFailed(str(error), NO_ACCESS) from None
    except (ArenaUnavailable, UnexpectedAnswer) as error:
        raise CommandFailed(str(error)) from None
    note = f" ({registration.version_note})" if registration.version_note else ""
    text = (
        f"{registration.name} ({registration.slug}) at {arena.url}: track {registration.track}, "
        f"version {registration.version}{note}, plays {' and '.join(registration.protocols)}"
    )
    show(options, {"url": arena.url} | registration.model_dump(), text)
    return OK
