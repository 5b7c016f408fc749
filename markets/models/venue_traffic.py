"""Requests to venues, counted over all runs."""

from django.db import models


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
