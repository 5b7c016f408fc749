"""The command `arena-agent`."""

import argparse
import io
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from arena_agent import __version__
from arena_agent.commands import FAILED, OK, CommandFailed
from arena_agent.commands.agent_files import check_agent_file, write_first_agent
from arena_agent.commands.datasets import write_hub_dataset
from arena_agent.commands.evaluation import evaluate_agent
from arena_agent.commands.live_run import run_agent
from arena_agent.commands.login import log_in
from arena_agent.commands.mcp import serve_tools
from arena_agent.commands.receipts import list_receipts, verify_receipt
from arena_agent.commands.registration import show_registration
from arena_agent.commands.rehearsal import rehearse_agent

URL_VARIABLE = "ARENA_AGENT_URL"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `arena-agent`; returns the exit code: 0, 1 failed, 2 refused input, 3 no access."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # texts of servers and agents may hold what the terminal can not show
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    if options.verbose:
        logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s", stream=sys.stderr)
        logging.getLogger("arena_agent").setLevel(logging.DEBUG if options.verbose > 1 else logging.INFO)
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
    parser.add_argument("--version", action="version", version=f"arena-agent {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(command=run)
        command.add_argument("--json", action="store_true", help="print one line of JSON")
        command.add_argument(
            "-v", "--verbose", action="count", default=0, help="log what happens to standard error; -vv: requests too"
        )
        command.add_argument(
            "--url", default=os.environ.get(URL_VARIABLE) or None,
            help=f"the arena's address (default: {URL_VARIABLE}, else that of the login)",
        )  # fmt: skip
        return command

    init = add("init", write_first_agent, "write a first agent into the current folder")
    init.add_argument("name", metavar="NAME")
    init.add_argument("--github", action="store_true", help="write a workflow too that runs it at GitHub; needs --url")
    check = add("check", check_agent_file, "run an agent on a bundled sample, without a network")
    check.add_argument("file", metavar="FILE")
    evaluate = add("evaluate", evaluate_agent, "score an agent on tasks of the past, beside the models")
    evaluate.add_argument("file", metavar="FILE")
    evaluate.add_argument(
        "--data", default="latest", metavar="NAME_OR_DIR_OR_URL", help="a dataset (default: the arena's latest)"
    )
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
    run.add_argument("--replace", action="store_true", help="answer open tasks anew that have an answer")
    run.add_argument("--for", dest="minutes", type=_minutes, metavar="MINUTES", help="go on for so long, and end")
    run.add_argument(
        "--patience", type=_seconds, default=120.0, metavar="SECONDS",
        help="with --once: how long a failed task is tried again (default: 120; without --once until its deadline)",
    )  # fmt: skip
    run.add_argument("--journal", type=Path, metavar="JOURNAL", help="the file of answers and replies")
    receipts = add("receipts", list_receipts, "print the receipts of the answers that were accepted")
    receipts.add_argument("--journal", type=Path, metavar="JOURNAL", help="of this journal alone")
    verify = add("verify", verify_receipt, "check a receipt without the arena")
    verify.add_argument("receipt", metavar="RECEIPT", help="a file; - for standard input, as of receipts --json")
    verify.add_argument("--archive", type=Path, metavar="DIR", help="an archive that must hold it")
    verify.add_argument("--key", type=Path, metavar="FILE", help="the published keys (default: asked of the arena)")
    rehearse = add("rehearse", rehearse_agent, "play past weeks by the arena's own services, from a checkout of it")
    rehearse.add_argument("agent", metavar="FILE_OR_URL")
    rehearse.add_argument("--from", dest="start", required=True, metavar="TIME")
    rehearse.add_argument("--to", dest="end", required=True, metavar="TIME")
    rehearse.add_argument("--archive", type=Path, metavar="DIR", help="default: the newest that the checkout published")
    rehearse.add_argument(
        "--arena", type=Path, default=Path(), metavar="DIR", help="the checkout (default: this folder)"
    )
    rehearse.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="of a task")
    dataset = add("dataset", write_hub_dataset, "write a dataset as a folder that load_dataset of Hugging Face reads")
    dataset.add_argument("data", metavar="NAME_OR_DIR_OR_URL")
    dataset.add_argument("--out", type=Path, required=True, metavar="DIR")
    mcp = add("mcp", serve_tools, "serve the arena's tasks to an MCP client on standard input and output")
    mcp.add_argument("--journal", type=Path, metavar="JOURNAL", help="the file of answers and replies")
    add("whoami", show_registration, "print as whom the arena knows the token's holder")
    add("login", log_in, "store a token, readable by you alone")
    return parser


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 256:
        raise argparse.ArgumentTypeError(f"{text} is not from 1 to 256")
    return int(text)


def _seconds(text: str) -> float:
    return _positive(text, "seconds")


def _minutes(text: str) -> float:
    return _positive(text, "minutes")


def _positive(text: str, unit: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is no number of {unit}")
    return number
