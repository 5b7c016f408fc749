"""A cluster that probes its queue every second, and the supervisor of such a one; run as `python -m`."""

import sys

from arena_site.operations import processes, supervisor


def main() -> None:
    if sys.argv[1:] == ["supervise"]:
        supervisor.manage_command = lambda *_: [sys.executable, "-m", __spec__.name]
        supervisor.web_server = lambda *_, **__: [sys.executable, "-c", "import time; time.sleep(600)"]
        supervisor.supervise("127.0.0.1", 0, 1, 5, "")
        return
    import django

    django.setup()
    from django.core.management import call_command

    from arena_site.operations import queue_watch

    queue_watch.INTERVAL_S, queue_watch.LIMIT_S, queue_watch.LOOK_S, queue_watch.END_S = 1, 15, 1, 3
    call_command("qcluster")


if __name__ == "__main__":
    processes.end_with_parent()
    main()
