"""A scratch database for measurements, on SQLite or PostgreSQL, with the tests' settings."""

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def scratch_database(*, postgres: bool = False) -> Iterator[None]:
    """An empty, migrated database that is gone afterwards. Call before anything of Django is imported."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    with tempfile.TemporaryDirectory() as folder:
        if postgres:
            os.environ["ARENA_TESTS_ON"] = "postgres"
        else:
            os.environ.pop("ARENA_TESTS_ON", None)  # of a suite on PostgreSQL that started us
            os.environ["DATABASE_URL"] = f"sqlite:///{folder}/scratch.sqlite3"
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connection

        if postgres:
            connection.settings_dict["TEST"]["NAME"] = f"test_scratch_{uuid.uuid4().hex[:12]}"
        made = connection.creation.create_test_db(verbosity=0) if postgres else None
        call_command("migrate", verbosity=0)
        try:
            yield
        finally:
            if made:
                connection.creation.destroy_test_db(made, verbosity=0)
            connection.close()
