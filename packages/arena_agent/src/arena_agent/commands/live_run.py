"""`run` answers open tasks, and prints what happens."""

import argparse
import json
import sys
from typing import Any

from arena_agent.commands import FAILED, NO_ACCESS, OK, REFUSED, CommandFailed, show
from arena_agent.commands.receipts import receipt_text


def run_agent(options: argparse.Namespace) -> int:
    from arena_agent.api import run
    from arena_agent.arena_api import AccessDenied, ArenaUnavailable, InvalidAddress, UnexpectedAnswer
    from arena_agent.journal import DamagedJournal, JournalInUse
    from arena_agent.loading import UnusableAgent

    if options.journal and options.journal.is_dir():
        raise CommandFailed(f"--journal: {options.journal} is a folder; name a file in it", REFUSED)
    try:
        report = run(
            options.file,
            url=options.url,
            once=options.once,
            dry_run=options.dry_run,
            replace=options.replace,
            minutes=options.minutes,
            patience=options.patience,
            journal=options.journal,
            show=lambda event: _show_event(options, event),
        )
    except (UnusableAgent, InvalidAddress, DamagedJournal) as error:
        raise CommandFailed(str(error), REFUSED) from None
    except AccessDenied as error:
        raise CommandFailed(str(error), NO_ACCESS) from None
    except (ArenaUnavailable, UnexpectedAnswer, JournalInUse, OSError) as error:
        raise CommandFailed(str(error)) from None
    show(options, report.to_json(), str(report))
    is_loop = not (options.once or options.dry_run)
    return OK if report.ok or (is_loop and options.minutes is None) else FAILED


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
