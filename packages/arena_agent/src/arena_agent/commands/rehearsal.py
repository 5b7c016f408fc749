"""`rehearse` plays past weeks by the services of an arena, whose code is beside the kit or in a checkout."""

import argparse
import os
import secrets
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from arena_agent.commands import REFUSED, CommandFailed


def rehearse_agent(options: argparse.Namespace) -> int:
    checkout = options.arena.resolve()
    if not (checkout / "manage.py").is_file() or not (checkout / "scoring" / "rehearsals").is_dir():
        raise CommandFailed(
            f"{checkout}: it is no checkout of the arena, by whose services a rehearsal plays: name one with --arena",
            REFUSED,
        )
    if find_spec("django"):
        command = [sys.executable]
    elif uv := shutil.which("uv"):
        command = [uv, "run", "--quiet", "--project", str(checkout)]
    else:
        raise CommandFailed("rehearse runs the arena's command by uv: pip install uv", REFUSED)
    is_address = options.agent.startswith(("http://", "https://"))
    agent = options.agent if is_address else str(Path(options.agent).absolute())
    command += [str(checkout / "manage.py"), "rehearse", agent, "--from", options.start, "--to", options.end]
    if options.archive:
        command += ["--archive", str(options.archive.absolute())]
    if options.timeout:
        command += ["--timeout", str(options.timeout)]
    if options.json:
        command.append("--json")
    environment = {"SECRET_KEY": secrets.token_urlsafe(40)} | os.environ  # the arena's settings want one
    return subprocess.run(command, check=False, cwd=checkout, env=environment).returncode  # noqa: S603
