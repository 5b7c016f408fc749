"""Django's `makemigrations`, to which another help_text is no change: no database holds it."""

from typing import Any

from django.core.management.commands import makemigrations
from django.db import models
from django.db.migrations.autodetector import MigrationAutodetector


class FieldAutodetector(MigrationAutodetector):
    """The changes of models without those of help texts, which are the meanings of fields in archives and the API."""

    def deep_deconstruct(self, obj: Any) -> Any:
        deconstructed = super().deep_deconstruct(obj)
        if isinstance(obj, models.Field):
            deconstructed[2].pop("help_text", None)
        return deconstructed


class Command(makemigrations.Command):
    autodetector = FieldAutodetector
