"""The layout that a database was made with."""

from django.db import models
from django.db.models import Q


class DatabaseLayout(models.Model):
    """The only row says what the initial migrations were when they made the database, and who made and migrated it."""

    ONLY = 1

    layout = models.CharField(max_length=12, help_text="Hash over the initial migrations.")
    made_by = models.CharField(max_length=20, help_text="Version that made the database.")
    migrated_by = models.CharField(max_length=20, help_text="Version that migrated it last.")

    class Meta:
        default_permissions = ("view",)
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="one_layout")]

    def __str__(self) -> str:
        return self.layout
