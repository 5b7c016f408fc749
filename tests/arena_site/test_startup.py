"""Imports at startup: every command, worker and test process pays for them."""

import os
import subprocess
import sys

import pytest

SCHEMA_GENERATOR = ("drf_spectacular.generators", "drf_spectacular.views", "arena_site.schema")
PLOTTING = ("matplotlib", "mpld3")
SCORING = ("forecast_rank", "numpy", "polars", "scipy")
SANDBOX = ("arena_site.sandbox",)
CLIENTS = ("httpx", "stamina")
VALIDATION = ("pydantic",)
TERMINAL = ("rich",)
HEAVY = SCHEMA_GENERATOR + PLOTTING + SCORING + SANDBOX + CLIENTS + TERMINAL + VALIDATION
SETUP = "import django; django.setup()"
URLS = f"{SETUP}; from django.core.checks.urls import check_url_config; check_url_config(None)"


@pytest.mark.parametrize("code", [SETUP, URLS], ids=["setup", "urls"])
def test_startup_leaves_heavy_modules_unloaded(code: str) -> None:
    program = f"{code}; import sys; print(*sys.modules)"
    env = os.environ | {"DJANGO_SETTINGS_MODULE": "arena_site.settings", "DEBUG": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert set(HEAVY) & set(done.stdout.split()) == set()
