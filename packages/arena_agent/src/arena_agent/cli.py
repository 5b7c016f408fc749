"""The command `arena-agent`."""

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # texts of servers and agents may hold what the terminal can not show
            stream.reconfigure(errors="backslashreplace")
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
    evaluate = add("evaluate", _evaluate, "score an agent on tasks of the past, beside the models")
    evaluate.add_argument("file", metavar="FILE")
    evaluate.add_argument("--data", required=True, metavar="DIR_OR_URL", help="a dataset")
    evaluate.add_argument(
        "--condition", default="", metavar="NAME", help="the prompt condition (default: that of the arena's board)"
    )
    evaluate.add_argument("--workers", type=_count, default=1, metavar="N", help="processes of the agent (default: 1)")
    evaluate.add_argument(
        "--out", type=Path, metavar="DIR", help="write report.json and forecasts.csv there (default: report.json here)"
    )
    evaluate.add_argument("--timeout", type=_seconds, default=900.0, metavar="SECONDS", help="of a task (default: 900)")
    run = add("run", _run, "answer the arena's open tasks, now or for ever")
    run.add_argument("file", metavar="FILE")
    run.add_argument("--once", action="store_true", help="answer what is open now, and end")
    run.add_argument("--dry-run", action="store_true", help="ask the agent and send nothing; implies --once")
    run.add_argument("--journal", type=Path, metavar="JOURNAL", help="the file of answers and replies")
    receipts = add("receipts", _receipts, "print the receipts of the answers that were accepted")
    receipts.add_argument("--journal", type=Path, metavar="JOURNAL", help="of this journal alone")
    verify = add("verify", _verify, "check a receipt without the arena")
    verify.add_argument("receipt", metavar="RECEIPT", help="a file; - for standard input, as of receipts --json")
    verify.add_argument("--archive", type=Path, metavar="DIR", help="an archive that must hold it")
    verify.add_argument("--key", type=Path, metavar="FILE", help="the published keys (default: asked of the arena)")
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


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 256:
        raise argparse.ArgumentTypeError(f"{text} is not from 1 to 256")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds")
    return seconds


def _evaluate(options: argparse.Namespace) -> int:
    import tempfile

    from arena_agent.dataset import InvalidDataset
    from arena_agent.loading import UnusableAgent

    try:
        import forecast_rank  # noqa: F401 - the extra is named before any work is done
    except ImportError:
        raise CommandFailed("evaluate needs the extra: pip install 'arena-agent[evaluate]'", REFUSED) from None
    from arena_agent.download import DownloadFailed, open_dataset
    from arena_agent.evaluation import REPORT, NothingToScore, evaluate

    try:
        dataset = open_dataset(options.data)
        with tempfile.TemporaryDirectory(prefix="arena-agent-") as scratch, _progress("tasks") as progress:
            report = evaluate(
                options.file,
                dataset,
                options.out or Path(scratch),
                condition=options.condition,
                workers=options.workers,
                seconds=options.timeout,
                progress=progress,
            )
            if options.out is None:
                Path(REPORT).write_bytes(Path(scratch, REPORT).read_bytes())
    except (InvalidDataset, UnusableAgent) as error:
        raise CommandFailed(str(error), REFUSED) from None
    except (NothingToScore, DownloadFailed, OSError) as error:
        raise CommandFailed(str(error)) from None
    if options.json:
        print(json.dumps(report, allow_nan=False))
    else:
        _print_report(report)
        print(f"the report is in {Path(options.out or '.', REPORT)}")
    return OK


@contextmanager
def _progress(title: str) -> Iterator[Callable[[int], None]]:
    """A count on standard error, invisible unless that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.completed} {task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=None)
        yield lambda count: bar.update(task, completed=count)


def _print_report(report: dict[str, Any]) -> None:
    """The figures of the agent and of the others as tables."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    condition = f", condition {report['condition']}" if report["condition"] else ""
    everyone = {report["agent"]: report} | report["forecasters"] | report["references"]
    table = Table(
        "forecaster",
        "n",
        "coverage",
        "Brier (less is better)",
        "95 %",
        "alpha (more is better)",
        "95 %",
        "adjusted Brier",
        title=f"{report['agent']} beside the models{condition}",
    )
    ranked = sorted(everyone, key=lambda name: (everyone[name]["brier"] is None, everyone[name]["brier"]))
    for name in ranked:
        row = everyone[name]
        style = "bold" if name == report["agent"] else None
        figures = [
            _figure(row[key]) for key in ("coverage", "brier", "brier_ci", "alpha", "alpha_ci", "adjusted_brier")
        ]
        label = f"({name})" if name in report["references"] else name
        table.add_row(label, f"{row['n']:g}", *figures, style=style)
    console.print(table)
    for pair in report["pairs"]:
        first = pair["first"] == report["agent"]
        difference = pair["difference"] if first else -pair["difference"]
        console.print(
            f"{report['agent']} against {pair['second' if first else 'first']}: {difference:+.4f} "
            f"on {pair['n']:g} questions, p = {_figure(pair['p_holm'])} (Holm)"
        )
    for fault in report["faults"]["first"]:
        console.print(f"fault: {fault}", markup=False)
    console.print(f"{report['faults']['count']} faults. {report['caution']}")
    console.print(f"digest {report['digest']}")


def _figure(value: Any) -> str:
    if isinstance(value, list):
        return " to ".join(map(_figure, value))
    return "–" if value is None else f"{value:.4f}"


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
    _show(options, counts, ", ".join(f"{count} {name}" for name, count in counts.items()))
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
    return ", ".join([*parts, _receipt_text(reply)])


def _receipts(options: argparse.Namespace) -> int:
    from arena_agent.access import journal_paths
    from arena_agent.arena_api import InvalidAddress
    from arena_agent.journal import DamagedJournal, read_replies

    replies: list[dict[str, Any]] = []
    try:
        for path in [options.journal] if options.journal else journal_paths(options.url):
            replies += read_replies(path)
    except (OSError, DamagedJournal, InvalidAddress) as error:
        raise CommandFailed(str(error), REFUSED) from None
    accepted = [reply for reply in replies if reply["status"] == 201]
    receipts = [reply["reply"]["receipt"] for reply in accepted if "receipt" in reply["reply"]]
    lines = [f"{reply['task']}: {_receipt_text(reply['reply'])}" for reply in accepted]
    hint = "to keep them: arena-agent receipts --json > receipts.json; to check them: arena-agent verify receipts.json"
    _show(options, {"receipts": receipts}, "\n".join([*lines, hint] if lines else ["no answer was accepted yet"]))
    return OK


def _receipt_text(reply: dict[str, Any]) -> str:
    receipt = reply.get("receipt")
    if not receipt:
        return "the arena gave no receipt"
    body = receipt["body"]
    return f"receipt {body.get('sequence')}, received {body.get('received_at')}, sha256 {receipt['sha256']}"


def _verify(options: argparse.Namespace) -> int:
    from arena_agent.receipts import UnreadableReceipt, archive_faults, read_keys, read_receipts, receipt_faults

    try:
        receipts = read_receipts(_text(options.receipt))
        keys = read_keys(_text(str(options.key)) if options.key else _published_keys(options.url))
        faults = [receipt_faults(receipt, keys) for receipt in receipts]
        if options.archive:
            for index, fault in archive_faults(receipts, options.archive).items():
                faults[index].append(fault)
    except UnreadableReceipt as error:
        raise CommandFailed(str(error), REFUSED) from None
    results = []
    for index, receipt in enumerate(receipts):
        results.append({"sha256": receipt["sha256"], "ok": not faults[index], "faults": faults[index]})
    ok = not any(faults)
    lines = [f"{result['sha256']}: {'; '.join(result['faults']) or 'ok'}" for result in results]
    _show(options, {"ok": ok, "receipts": results}, "\n".join(lines))
    return OK if ok else FAILED


def _text(name: str) -> str:
    """The text of a file, or of standard input for `-`."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{name}: {getattr(error, 'strerror', None) or error}", REFUSED) from None


def _published_keys(url: str | None) -> str:
    """The arena's document of keys, asked for without a token."""
    from arena_agent.access import login_address
    from arena_agent.arena_api import AccessDenied, Arena, ArenaUnavailable, InvalidAddress, UnexpectedAnswer

    try:
        address = url or login_address()
        if not address:
            raise CommandFailed("no keys: give --key FILE, or --url for those that the arena publishes", REFUSED)
        with Arena(address) as arena:
            return json.dumps(arena.chain())
    except AccessDenied as error:
        raise CommandFailed(str(error), NO_ACCESS) from None
    except InvalidAddress as error:
        raise CommandFailed(str(error), REFUSED) from None
    except (ArenaUnavailable, UnexpectedAnswer) as error:
        raise CommandFailed(str(error)) from None


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
