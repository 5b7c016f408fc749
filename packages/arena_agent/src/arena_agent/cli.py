"""The command `arena-agent`."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

OK, FAILED, REFUSED, NO_ACCESS = 0, 1, 2, 3
URL_VARIABLE = "ARENA_AGENT_URL"


class CommandFailed(Exception):
    """A command ends with a sentence and an exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `arena-agent`; returns the exit code: 0, 1 failed, 2 refused input, 3 no access."""
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        code = command(options)
        sys.stdout.flush()
    except CommandFailed as failure:
        print(f"arena-agent: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        print("arena-agent: stopped", file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        # Without this the interpreter reports it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "arena-agent", description="Write, check, evaluate and run an agent of your own in Forecaster Arena."
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(command=run)
        command.add_argument("--json", action="store_true", help="print one line of JSON")
        command.add_argument(
            "--url", default=os.environ.get(URL_VARIABLE) or None,
            help=f"the arena's address (default: {URL_VARIABLE}, else that of the login)",
        )  # fmt: skip
        return command

    init = add("init", _init, "write a first agent into the current folder")
    init.add_argument("name", metavar="NAME")
    check = add("check", _check, "run an agent on a bundled sample, without a network")
    check.add_argument("file", metavar="FILE")
    run = add("run", _run, "answer the arena's open tasks, now or for ever")
    run.add_argument("file", metavar="FILE")
    run.add_argument("--once", action="store_true", help="answer what is open now, and end")
    run.add_argument("--dry-run", action="store_true", help="ask the agent and send nothing; implies --once")
    run.add_argument("--journal", type=Path, metavar="JOURNAL", help="the file of answers and replies")
    receipts = add("receipts", _receipts, "print the receipts of the answers that were accepted")
    receipts.add_argument("--journal", type=Path, metavar="JOURNAL", help="of this journal alone")
    add("login", _login, "store a token, readable by you alone")
    return parser


def _init(options: argparse.Namespace) -> int:
    from arena_agent.loading import UnusableAgent, write_template

    try:
        path = write_template(options.name, Path())
    except UnusableAgent as error:
        raise CommandFailed(str(error), REFUSED) from None
    _show(options, {"file": str(path)}, f"wrote {path}; try it: arena-agent check {path}")
    return OK


def _check(options: argparse.Namespace) -> int:
    from arena_agent.checking import check_agent
    from arena_agent.loading import UnusableAgent

    try:
        agent, results = check_agent(options.file)
    except UnusableAgent as error:
        raise CommandFailed(str(error), REFUSED) from None
    faults = [fault for result in results for fault in result.faults]
    summary = {
        "agent": agent.name,
        "track": agent.track,
        "ok": not faults,
        "tasks": [vars(result) for result in results],
    }
    lines = [f"{agent.name}, track {agent.track}"]
    for result in results:
        lines.append(f"{result.task}: {'refused' if result.faults else 'ok'}")
        lines += [f"  {fault}" for fault in result.faults]
        if result.answer is not None:
            lines.append(f"  {json.dumps(result.answer, ensure_ascii=False)}")
    _show(options, summary, "\n".join(lines))
    return FAILED if faults else OK


def _run(options: argparse.Namespace) -> int:
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
    _show(options, counts, ", ".join(f"{count} {name}" for name, count in counts.items()))
    return OK if report.ok else FAILED


def _show_event(options: argparse.Namespace, event: dict[str, Any]) -> None:
    """Prints an event of the loop; with --json to standard error, for the summary is the one line of output."""
    if options.json:
        print(json.dumps(event), file=sys.stderr, flush=True)
        return
    kind, task = event["event"], event.get("task", "")
    shown = event.get("reason") or json.dumps(event.get("answer") or event.get("reply") or {}, ensure_ascii=False)
    print(f"{kind} {task}: {shown}", flush=True)


def _receipts(options: argparse.Namespace) -> int:
    from arena_agent.access import home
    from arena_agent.journal import DamagedJournal, read_replies

    paths = [options.journal] if options.journal else sorted((home() / "journals").glob("*.jsonl"))
    replies: list[dict[str, Any]] = []
    try:
        for path in paths:
            replies += read_replies(path)
    except (OSError, DamagedJournal) as error:
        raise CommandFailed(str(error), REFUSED) from None
    accepted = [reply for reply in replies if reply["status"] == 201]
    receipts = [reply["reply"]["receipt"] for reply in accepted if "receipt" in reply["reply"]]
    lines = [f"{reply['task']}, accepted {reply['at']}: {_receipt_text(reply['reply'])}" for reply in accepted]
    _show(options, {"receipts": receipts}, "\n".join(lines) or "no answer was accepted yet")
    return OK


def _receipt_text(reply: dict[str, Any]) -> str:
    receipt = reply.get("receipt")
    return json.dumps(receipt) if receipt else "the arena gave no receipt"


def _login(options: argparse.Namespace) -> int:
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
    _show(options, {"url": arena.url, "file": str(path)}, f"logged in at {arena.url}; the token is in {path}")
    return OK


def _show(options: argparse.Namespace, summary: dict[str, Any], text: str) -> None:
    """Prints one line of JSON, or the text."""
    print(json.dumps(summary, allow_nan=False) if options.json else text)
