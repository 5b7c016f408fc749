"""What Python makes of the sources, kept for one run: its workers and the processes of its tests are some hundred."""

import atexit
import os
import shutil
import sys
import tempfile


def keep() -> None:
    """Where none may lie beside the sources, it goes to a folder that goes with this process; its children read it."""
    if not sys.dont_write_bytecode:
        return
    folder = tempfile.mkdtemp(prefix="arena-bytecode-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = folder
    sys.dont_write_bytecode = False
