"""Names of processes, as rows that a process owns store them."""

import os
import socket

HOST_LENGTH = 80


def process_name(pid: int) -> str:
    """The machine and the process."""
    return f"{machine()}{pid}"


def machine() -> str:
    """The beginning of the names of this machine's processes."""
    return f"{socket.gethostname()[:HOST_LENGTH]}:"


def has_ended(name: str) -> bool:
    """True if the process is one of this machine and is gone; of other machines' processes nothing is known."""
    if not name.startswith(machine()):
        return False
    try:
        os.kill(int(name.rpartition(":")[2]), 0)
    except (ProcessLookupError, ValueError):
        return True
    except PermissionError:
        return False
    return False
