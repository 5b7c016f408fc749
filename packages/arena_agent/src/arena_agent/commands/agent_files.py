"""`init` writes a first agent; `check` runs one on the bundled sample."""

import argparse
import json
from pathlib import Path

from arena_agent.commands import FAILED, OK, REFUSED, CommandFailed, show


def write_first_agent(options: argparse.Namespace) -> int:
    from arena_agent.arena_api import InvalidAddress
    from arena_agent.github import write_workflow
    from arena_agent.loading import UnusableAgent, write_template

    if options.github and not options.url:
        raise CommandFailed("--github: the workflow needs the arena's address: --url ADDRESS", REFUSED)
    summary = {}
    try:
        path = write_template(options.name, Path(), exists_ok=options.github)
        summary["file"] = str(path)
        if options.github:
            summary["workflow"] = str(write_workflow(path, options.url))
    except (UnusableAgent, InvalidAddress) as error:
        raise CommandFailed(str(error), REFUSED) from None
    show(options, summary, f"wrote {' and '.join(summary.values())}; try it: arena-agent check {path}")
    return OK


def check_agent_file(options: argparse.Namespace) -> int:
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
    show(options, summary, "\n".join(lines))
    return FAILED if faults else OK
