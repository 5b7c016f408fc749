"""Records of operation: versions of the data that responses are made from, and requests to venues."""

from __future__ import annotations

from django.db import models


class CacheVersion(models.Model):
    """The version of one scope of data, renewed in the transaction that changes the data.

    Random, not counted: a transaction rolled back and a backup restored bring back the version of the data that they
    bring back, and no later state of the data ever gets the same version.
    """

    class Scope(models.TextChoices):
        COMPETITION = "competition", "families, cohorts, methodologies and agents"
        SNAPSHOTS = "snapshots", "snapshots"
        LEADERBOARDS = "leaderboards", "current leaderboards"

    scope = models.CharField(max_length=20, choices=Scope.choices, unique=True)
    version = models.CharField(max_length=32)

    class Meta:
        ordering = ["scope"]

    def __str__(self) -> str:
        return f"{self.scope} {self.version}"


class VenueTraffic(models.Model):
    """The requests to a venue: how many, how many failed, and how long they took."""

    venue = models.CharField(max_length=20, unique=True)
    requests = models.BigIntegerField(default=0)
    failures = models.BigIntegerField(default=0)
    latency_s = models.FloatField(default=0, help_text="Mean of the last run that asked, in seconds.")

    class Meta:
        default_permissions = ("view",)
        ordering = ["venue"]

    def __str__(self) -> str:
        return self.venue
