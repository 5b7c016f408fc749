"""Captured answers of real services, which lie beside the project and are no part of it.

Tests that compare with them are marked `captured`.
"""

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
CAPTURED = Path(os.environ.get("ARENA_CAPTURED", PROJECT.parent / "shared" / "data"))
