"""The arena's settings, for tests: quick hashing, no waiting, and never the real services."""

import os

# Before the settings are read: a test that forgets to name a server must reach nobody.
for name in ("OPENROUTER_BASE_URL", "GAMMA_BASE_URL", "CLOB_BASE_URL", "KALSHI_BASE_URL"):
    os.environ[name] = "http://127.0.0.1:9"
os.environ["OPENROUTER_API_KEY"] = ""
os.environ.setdefault("SECRET_KEY", "only-for-tests")

from arena_site.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
