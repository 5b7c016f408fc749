"""`run` answers open tasks, and prints what happens."""

import argparse
import json
import sys
from typing import Any

from arena_agent.commands import FAILED, NO_ACCESS, OK, REFUSED, CommandFailed, show
from arena_agent.commands.receipts import receipt_text


def run_agent(options: argparse.Namespace) -> int:
    from contextlib import ExitStack

    from arena_agent.access import find_access, journal_path
    from arena_agent.arena_api import AccessDenied, Arena, ArenaUnavailable, InvalidAddress, UnexpectedAnswer
    from arena_agent.journal import DamagedJournal, Journal, JournalInUse
    from arena_agent.live import LiveLoop
    from arena_agent.loading import UnusableAgent
    from arena_agent.worker import AgentProcess

    try:
        with ExitStack() as stack:
            access = find_access(options.url)
            arena = stack.enter_context(Arena(access.url, access.token))
            process = stack.enter_context(AgentProcess(options.file))
            path = options.journal or journal_path(access.url, process.card().name)
            if path.is_dir():
                raise CommandFailed(f"--journal: {path} is a folder; name a file in it", REFUSED)
            journal = None if options.dry_run else stack.enter_context(Journal(path))
            loop = LiveLoop(arena, process, journal, lambda event: _show_event(options, event))
            if not (options.once or options.dry_run):
                loop.run_forever()
            report = loop.run_once()
    except (UnusableAgent, InvalidAddress, DamagedJournal) as error:
        raise CommandFailed(str(error), REFUSED) from None
    except AccessDenied as error:
        raise CommandFailed(str(error), NO_ACCESS) from None
    except (ArenaUnavailable, UnexpectedAnswer, JournalInUse, OSError) as error:
        raise CommandFailed(str(error)) from None
    counts = report.to_json()
    show(options, counts, ", ".join(f"{count} {name}" for name, count in counts.items()))
    return OK if report.ok else FAILED


def _show_event(options: argparse.Namespace, event: dict[str, Any]) -> None:
    """Prints an event of the loop; with --json to standard error, for the summary is the one line of output."""
    if options.json:
        print(json.dumps(event), file=sys.stderr, flush=True)
        return
    kind, task = event["event"], event.get("task", "")
    reply = event.get("reply")
    if reply is not None:
        text = _reply_text(reply)
    else:
        text = event.get("reason") or json.dumps(event.get("answer") or {}, ensure_ascii=False)
    print(f"{kind} {task}: {text}", flush=True)


def _reply_text(reply: dict[str, Any]) -> str:
    """The arena's reply to an answer, in a line."""
    parts = [str(reply["action"])] if "action" in reply else []
    if "forecasts" in reply:
        parts.append(f"{len(reply['forecasts'])} forecasts")
    refused = reply.get("refused") or []
    parts += [f"{len(refused)} refused, the first: {refused[0].get('reason')}"] if refused else []
    return ", ".join([*parts, receipt_text(reply)])
