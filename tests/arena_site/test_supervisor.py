"""The process tree of `arena` awaits answers under way when it is asked to stop, until it is asked again."""

import subprocess
import sys

import psutil

from tests.databases import PROJECT

SUPERVISE = """
import sys
from arena_site.operations import supervisor
STUBBORN = r"import os; from signal import *; signal(SIGTERM, SIG_IGN); os.write(1, b'ready\\n'); pause()"
supervisor.manage_command = supervisor.web_server = lambda *_, **__: [sys.executable, "-c", STUBBORN]
supervisor.supervise("127.0.0.1", 0, 1, 300, "")
"""


def test_second_signal_gives_up_the_answers_under_way() -> None:
    command = [sys.executable, "-c", SUPERVISE]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as supervisor:
        try:
            assert supervisor.stdout is not None
            lines = [supervisor.stdout.readline() for _ in range(3)]
            assert lines.count("ready\n") == 2, lines
            tree = psutil.Process(supervisor.pid).children()
            supervisor.terminate()
            assert supervisor.stdout.readline().startswith("stopping: answers under way have 300 s (Ctrl-C again ")
            assert all(process.is_running() for process in tree)
            supervisor.terminate()
            assert supervisor.wait(60) == 0
            assert not any(process.is_running() for process in tree)
        finally:
            supervisor.terminate()
            supervisor.terminate()
