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


def _show(options: argparse.Namespace, summary: dict[str, Any], text: str) -> None:
    """Prints one line of JSON, or the text."""
    print(json.dumps(summary, allow_nan=False) if options.json else text)
