"""`mcp` serves the arena's tasks to an MCP client."""

import argparse

from arena_agent.commands import NO_ACCESS, OK, REFUSED, CommandFailed


def serve_tools(options: argparse.Namespace) -> int:
    from arena_agent.access import find_access
    from arena_agent.arena_api import AccessDenied, InvalidAddress

    try:
        import mcp  # noqa: F401 - the extra is named before any work is done
    except ImportError:
        raise CommandFailed("mcp needs the extra: pip install 'arena-agent[mcp]'", REFUSED) from None
    from arena_agent.mcp_server import arena_server

    try:
        access = find_access(options.url)
    except InvalidAddress as error:
        raise CommandFailed(str(error), REFUSED) from None
    except AccessDenied as error:
        raise CommandFailed(str(error), NO_ACCESS) from None
    arena_server(access, options.journal).run("stdio")
    return OK
