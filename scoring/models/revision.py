"""Which state of things an answer was made from."""

from __future__ import annotations

from django.db import models


class Revision(models.Model):
    """A token that the database itself renews with every change of a thing: what was made under it is still true.

    Random, not counted, so that a transaction taken back and a backup restored bring an old token with its old state.
    """

    thing = models.CharField(max_length=20, unique=True)
    token = models.CharField(max_length=32)

    def __str__(self) -> str:
        return f"{self.thing} {self.token}"
