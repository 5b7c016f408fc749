"""A bytecode cache for one run where PYTHONDONTWRITEBYTECODE is set: the tests start hundreds of processes."""

import atexit
import os
import shutil
import sys
import tempfile


def cache() -> None:
    """Points this process and its children at a temporary cache, removed when this process ends."""
    if not sys.dont_write_bytecode:
        return
    folder = tempfile.mkdtemp(prefix="arena-bytecode-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = folder
    sys.dont_write_bytecode = False
