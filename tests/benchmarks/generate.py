"""`python -m tests.benchmarks.generate`: fills the empty database of DATABASE_URL with a made arena of any size."""

import os
import sys

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "arena_site.settings")
    django.setup()
    from tests.benchmarks.generator.command import Command

    Command().run_from_argv([sys.argv[0], "generate", *sys.argv[1:]])
