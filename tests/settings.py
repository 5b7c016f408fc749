"""The arena's settings for tests: quick password hashing, and addresses at which no real service answers.

The suite runs on SQLite, or on PostgreSQL with ARENA_TESTS_ON=postgres.
"""

import gc
import os
import tempfile
from pathlib import Path

from manage import ALLOCATION_THRESHOLD
from tests import bytecode
from tests.databases import postgres_url

gc.set_threshold(ALLOCATION_THRESHOLD)
# Before most imports, and before pytest-xdist starts its workers, which inherit it.
bytecode.cache()
# Before the settings are read: a test that names no server must reach none.
for name in ("OPENROUTER_BASE_URL", "GAMMA_BASE_URL", "CLOB_BASE_URL", "KALSHI_BASE_URL"):
    os.environ[name] = "http://127.0.0.1:9"
os.environ["OPENROUTER_API_KEY"] = ""
os.environ["ARENA_LINEUP"] = "unchecked"  # tests of the check itself bring a catalogue
os.environ.setdefault("SECRET_KEY", "only-for-tests")
os.environ.setdefault("ARENA_EXPORT_DIR", str(Path(tempfile.gettempdir(), "arena-test-exports")))
os.environ.setdefault("ARENA_BACKUP_DIR", str(Path(tempfile.gettempdir(), "arena-test-backups")))
# Before pytest-xdist starts its workers, so that they inherit the server that was found or started.
if os.environ.get("ARENA_TESTS_ON") == "postgres":
    os.environ["DATABASE_URL"] = postgres_url()

from arena_site.settings import *  # noqa: E402, F403

ARENA_ANY_DATE = True  # tests play on dates and clocks of their own
ARENA_API_RATE = 0
PAGE_CACHE_S = 0  # tests change rows without a run
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
WHITENOISE_AUTOREFRESH = True  # files are found when requested; each test client would list them all
