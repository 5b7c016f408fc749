"""The process tree of `arena`: a web server, and a worker that is started again should it end, until a signal.

`arena` becomes this process once the database is prepared. It loads no Django: 6 MB instead of 100 (PSS on Debian, with
PostgreSQL 15).
"""

import os
import subprocess
import sys
import time
from contextlib import suppress

from arena_site.operations.processes import (
    PATIENCE_S,
    PROJECT,
    StopRequested,
    manage_command,
    start,
    stop,
    stoppable,
    watch,
    web_server,
)

RESTART_PAUSE_S = 2
"""Between the end of a worker and the start of the next, which may end as quickly."""


def become_supervisor(*, host: str, port: int, web_workers: int, drain_s: int, site_url: str) -> None:
    """Replaces this process. `site_url` is where links in alerts lead; empty where a setting says it."""
    os.chdir(PROJECT)
    arguments = [host, str(port), str(web_workers), str(drain_s), site_url]
    os.execv(sys.executable, [sys.executable, "-m", "arena_site.operations.supervisor", *arguments])  # noqa: S606 - our own


def supervise(host: str, port: int, web_workers: int, drain_s: int, site_url: str) -> None:
    """Runs both until a signal, or until the web server ends, which is an error. A second signal waits for nothing."""
    env = {"ARENA_SITE_URL": site_url} if site_url else {}
    tree: dict[str, subprocess.Popen[str]] = {}
    error = ""
    try:
        with suppress(StopRequested), stoppable():
            try:
                tree["worker"] = start(manage_command("qcluster"), env)
                tree["web"] = start(web_server(port, host=host, workers=web_workers), env)
                print(f"serving http://{host}:{port}/ (Ctrl-C stops)", flush=True)
                error = _watch_web(tree, env)
            except StopRequested:
                with suppress(BrokenPipeError):  # nobody reads any more
                    print(f"stopping: answers under way have {drain_s} s (Ctrl-C again gives them up)", flush=True)
            for process in tree.values():
                stop(process, drain_s + PATIENCE_S)
    finally:
        for process in tree.values():  # those that a second signal did not wait for
            stop(process, 0)
    if error:
        raise SystemExit(error)


def _watch_web(tree: dict[str, subprocess.Popen[str]], env: dict[str, str]) -> str:
    """Starts the worker again whenever it ends; returns what to say once the web server has ended."""
    while (name := watch(tree)) == "worker":
        print(f"the worker ended with {tree[name].returncode}: it is started again", flush=True)
        stop(tree[name])  # what is left of its session
        time.sleep(RESTART_PAUSE_S)
        tree[name] = start(manage_command("qcluster"), env)
    return f"the {name} process ended with {tree[name].returncode}: stopping"


if __name__ == "__main__":
    _, host, port, web_workers, drain_s, site_url = sys.argv
    supervise(host, int(port), int(web_workers), int(drain_s), site_url)
