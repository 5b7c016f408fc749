"""A bytecode cache where PYTHONDONTWRITEBYTECODE is set: the tests start hundreds of processes.

It lies in the cache folder of pytest, so that the next run compiles only what has changed.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

CACHES = Path(__file__).resolve().parents[1] / ".pytest_cache" / "bytecode"


def cache() -> None:
    """Points this process and its children at the cache; one for other packages or another Python is removed.

    Another release of a package may have files of the same size and date, by which Python recognises what it compiled;
    installing it changes the folder of packages.
    """
    if not sys.dont_write_bytecode:
        return
    installed = Path(sysconfig.get_path("purelib")).stat().st_mtime_ns
    folder = CACHES / f"{sys.implementation.cache_tag}-{installed}"
    for old_cache in CACHES.glob("*"):
        if old_cache != folder:
            shutil.rmtree(old_cache, ignore_errors=True)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(folder)
    sys.dont_write_bytecode = False
