"""Imports at startup: every command, worker and test process pays for them."""

import os
import subprocess
import sys

import pytest

SCHEMA_GENERATOR = ("drf_spectacular.openapi", "drf_spectacular.plumbing", "arena_site.schema")
TEST_TOOLS = ("rest_framework.test", "django.test", "unittest")
PLOTTING = ("matplotlib",)
SCORING = ("forecast_rank", "numpy", "polars", "scipy")
SANDBOX = ("venue_sandbox",)
CLIENTS = ("httpx", "stamina")
VALIDATION = ("pydantic",)
GATEWAY = ("agents.gateway", "arena_site.dashboard.actions")
PAGES = ("jinja2", "arena_site.pages.environment")
TERMINAL = ("rich",)
HEAVY = SCHEMA_GENERATOR + TEST_TOOLS + PLOTTING + SCORING + SANDBOX + CLIENTS + TERMINAL + VALIDATION + GATEWAY + PAGES
SETUP = "import django; django.setup()"
CHECKS = f"{SETUP}; from django.core.checks import run_checks; run_checks()"


@pytest.mark.parametrize("code", [SETUP, CHECKS], ids=["setup", "checks"])
def test_startup_leaves_heavy_modules_unloaded(code: str) -> None:
    program = f"{code}; import sys; print(*sys.modules)"
    env = os.environ | {"DJANGO_SETTINGS_MODULE": "arena_site.settings", "DEBUG": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert set(HEAVY) & set(done.stdout.split()) == set()


def test_process_that_watches_over_worker_and_web_loads_no_django() -> None:
    program = "import arena_site.supervisor, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"django", "httpx", "psycopg"} & set(done.stdout.split()) == set()
