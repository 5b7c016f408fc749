"""The command `arena-agent`."""

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from arena_agent.commands import FAILED, OK, CommandFailed
from arena_agent.commands.agent_files import check_agent_file, write_first_agent
from arena_agent.commands.evaluation import evaluate_agent
from arena_agent.commands.live_run import run_agent
from arena_agent.commands.login import log_in
from arena_agent.commands.receipts import list_receipts, verify_receipt

URL_VARIABLE = "ARENA_AGENT_URL"


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

    init = add("init", write_first_agent, "write a first agent into the current folder")
    init.add_argument("name", metavar="NAME")
    check = add("check", check_agent_file, "run an agent on a bundled sample, without a network")
    check.add_argument("file", metavar="FILE")
    evaluate = add("evaluate", evaluate_agent, "score an agent on tasks of the past, beside the models")
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
    run = add("run", run_agent, "answer the arena's open tasks, now or for ever")
    run.add_argument("file", metavar="FILE")
    run.add_argument("--once", action="store_true", help="answer what is open now, and end")
    run.add_argument("--dry-run", action="store_true", help="ask the agent and send nothing; implies --once")
    run.add_argument("--journal", type=Path, metavar="JOURNAL", help="the file of answers and replies")
    receipts = add("receipts", list_receipts, "print the receipts of the answers that were accepted")
    receipts.add_argument("--journal", type=Path, metavar="JOURNAL", help="of this journal alone")
    verify = add("verify", verify_receipt, "check a receipt without the arena")
    verify.add_argument("receipt", metavar="RECEIPT", help="a file; - for standard input, as of receipts --json")
    verify.add_argument("--archive", type=Path, metavar="DIR", help="an archive that must hold it")
    verify.add_argument("--key", type=Path, metavar="FILE", help="the published keys (default: asked of the arena)")
    add("login", log_in, "store a token, readable by you alone")
    return parser


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
