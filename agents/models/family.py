"""Families, their releases, and the line-ups that name one release per family."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Lower

from agents.model_ids import alias_fault
from agents.prices import TokenPrices, clean_overrides, parse_overrides
from cohorts.models import Methodology
from foundation.fields import CostField
from foundation.row_hashes import RowHashField

EXTERNAL_WINDOW = timedelta(minutes=15)
"""How long after a freeze agents of the closed track may answer: unlike models, they could wait for news."""

ANSWER_PARAMETERS = ("temperature", "reasoning", "seed", "response_format")


def parameter_support(supported: list[str] | None) -> tuple[list[str], list[str]] | None:
    """The parameters on which answers depend: those that a release honours and those that it does not, if known."""
    if supported is None:
        return None
    honoured = [name for name in ANSWER_PARAMETERS if name in supported]
    return honoured, [name for name in ANSWER_PARAMETERS if name not in honoured]


def name_slug(name: str) -> str:
    """A name as it stands in an address; empty if it holds no letter or digit."""
    return re.sub(r"[^a-z0-9.]+", "-", name.casefold()).strip("-.")


class FamilyQuerySet(models.QuerySet["Family"]):
    def active(self) -> FamilyQuerySet:
        return self.filter(active=True)

    def named(self, slug: str) -> Family | None:
        """The family that shows, or of which a release showed, the name of this slug: `gpt-5.2` finds GPT-5.2."""
        if namesake := next((family for family in self if name_slug(family.display_name) == slug), None):
            return namesake
        releases = Release.objects.filter(family__in=self).order_by("-effective_from").select_related("family")
        return next((release.family for release in releases if name_slug(release.display_name) == slug), None)

    def with_release(self, at: datetime) -> FamilyQuerySet:
        """Adds `release`, the model id behind each family at an instant (the same as `Family.release_at`)."""
        entries = LineUpEntry.objects.filter(line_up=LineUp.objects.in_force(at), family=OuterRef("pk"))
        releases = Release.objects.filter(family=OuterRef("pk"), effective_from__lte=at)
        newest = releases.order_by("-effective_from", "-pk").values("model_id")[:1]
        return self.annotate(release=Coalesce(Subquery(entries.values("release__model_id")[:1]), Subquery(newest)))

    def with_version(self, at: datetime) -> FamilyQuerySet:
        """Adds `version`, the number of each external agent's version at an instant."""
        versions = AgentVersion.objects.filter(family=OuterRef("pk"), began_at__lte=at).order_by("-number")
        return self.annotate(version=Subquery(versions.values("number")[:1]))


class Maker(models.Model):
    """A person or group with external agents. The address is private: no page, API or archive shows it."""

    name = models.CharField(max_length=80)
    address = models.EmailField(unique=True, help_text="Private; in small letters.")
    confirmed_at = models.DateTimeField(help_text="The first time that the address was confirmed by mail.")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(address=Lower("address")), name="maker_address_in_small_letters")
        ]
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name


class Family(models.Model):
    """A stable competitor slot. Its slug joins results over years; its display name may change."""

    class Track(models.TextChoices):
        CLOSED = "closed", "closed: only what the task shows"
        OPEN = "open", "open: tools, search, people"

    # Slugs carry dots ("gpt-5.1"), which Django's SlugField refuses.
    slug = models.CharField(
        max_length=60,
        unique=True,
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9.\-]*$", "a-z, 0-9, dots, dashes")],
        help_text="Its permanent name, in addresses and in other rows.",
    )
    display_name = models.CharField(max_length=80, help_text="Its name on pages.")
    provider = models.CharField(max_length=80, help_text="The company behind its models.")
    color = models.CharField(
        max_length=7,
        validators=[RegexValidator(r"^#[0-9a-f]{6}$", "must look like #1a2b3c")],
        help_text="Colour of its lines in charts.",
    )
    active = models.BooleanField(default=True, help_text="True if it plays in the next cohort.")
    external = models.BooleanField(
        default=False, help_text="True of an external agent, which submits its answers itself and is ranked apart."
    )
    track = models.CharField(
        max_length=6,
        choices=Track,
        blank=True,
        help_text="What an external agent may use: closed (what the task shows) or open; empty for models.",
    )
    maker = models.ForeignKey(Maker, on_delete=models.PROTECT, null=True, blank=True, related_name="families")
    row_sha256 = RowHashField(but=("slug", "display_name", "provider", "color", "active", "maker"))

    objects = FamilyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "families"
        constraints = [
            models.CheckConstraint(
                condition=Q(external=False) | Q(active=False), name="external_family_is_not_in_the_line_up"
            ),
            models.CheckConstraint(
                condition=Q(external=True, track__in=("closed", "open")) | Q(external=False, track="", maker=None),
                name="external_family_has_a_track",
            ),
        ]
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.display_name

    def release_at(self, at: datetime) -> Release | None:
        """The release that the line-up in force at an instant names; without one, the newest in effect."""
        line_up = LineUp.objects.in_force(at)
        entry = line_up and line_up.entries.filter(family=self).select_related("release").first()
        if entry:
            return entry.release
        return self.releases.filter(effective_from__lte=at).order_by("-effective_from", "-pk").first()

    def answer_window(self, methodology: Methodology, retry_window: timedelta) -> timedelta:
        """How long after a freeze an answer counts; `retry_window` is the protocol's, for models."""
        if not self.external:
            return retry_window
        return methodology.open_window if self.track == self.Track.OPEN else EXTERNAL_WINDOW


class AgentVersion(models.Model):
    """A version of an external agent: what its maker declared to have changed. The agent keeps its record."""

    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveSmallIntegerField(help_text="Its number, from 1 on.")
    began_at = models.DateTimeField(help_text="Time from which it is the agent's version.")
    note = models.CharField(max_length=200, blank=True, help_text="What changed, in the maker's own words.")
    row_sha256 = RowHashField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["family", "number"], name="one_agent_version_per_family_and_number"),
            models.CheckConstraint(condition=Q(number__gte=1), name="agent_versions_count_from_one"),
        ]
        ordering = ["family_id", "number"]

    def __str__(self) -> str:
        return f"{self.family} version {self.number}"


class Release(models.Model):
    """An exact model behind a family from an instant on, with its prices."""

    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="releases")
    model_id = models.CharField(max_length=120, help_text="The gateway's id of the model, such as openai/gpt-5.2.")
    display_name = models.CharField(max_length=80, help_text="Its name on pages.")
    price_prompt = CostField(help_text="US dollars per prompt token.")
    price_completion = CostField(help_text="US dollars per completion token.")
    effective_from = models.DateTimeField(
        help_text="Time from which it is the family's release and approved line-ups may contain it."
    )
    # From the gateway's catalogue, read when a cohort starts or the line-up is checked.
    canonical_slug = models.CharField(
        max_length=120, blank=True, help_text="The gateway's permanent name of the model."
    )
    supported_parameters: Any = models.JSONField(
        null=True,
        blank=True,
        help_text="The request parameters that it honours by the gateway's catalogue; null if unknown.",
    )
    context_length = models.PositiveIntegerField(null=True, blank=True, help_text="Tokens of prompt and answer.")
    max_completion_tokens = models.PositiveIntegerField(
        null=True, blank=True, help_text="Tokens that an answer may have; null if unknown."
    )
    released_on = models.DateField(
        null=True, blank=True, help_text="The day on which the gateway listed it (YYYY-MM-DD), if known."
    )
    knowledge_cutoff = models.DateField(
        null=True, blank=True, help_text="The end of what it knows, by the gateway's catalogue (YYYY-MM-DD), if known."
    )
    declared_cutoff = models.DateField(
        null=True, blank=True, help_text="The end of what it knows, as its maker declares it (YYYY-MM-DD), if declared."
    )
    price_overrides: Any = models.JSONField(
        default=list,
        blank=True,
        help_text=(
            "Prices that replace these under conditions (length of prompt, hour), as the gateway's catalogue "
            "states them. Estimates and limits take the highest that can apply."
        ),
    )

    schema_beside_search = models.BooleanField(
        null=True,
        blank=True,
        help_text="Does the model keep to an answer's schema beside a search tool, as `doctor --test-search` found? "
        "Where it was not tested, the schema is sent, and left out once it is refused.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["family", "effective_from"], name="one_release_per_family_and_instant"),
            models.CheckConstraint(
                condition=Q(price_prompt__gte=0, price_completion__gte=0), name="token_prices_not_negative"
            ),
        ]
        ordering = ["family_id", "-effective_from"]

    def __str__(self) -> str:
        return self.model_id

    def clean(self) -> None:
        if fault := alias_fault(self.model_id, {}):
            raise ValidationError({"model_id": f"{self.model_id} {fault}: give the id of one model."})
        try:
            self.price_overrides = clean_overrides(self.price_overrides)
        except ValueError as error:
            raise ValidationError({"price_overrides": str(error)}) from error

    @property
    def token_prices(self) -> TokenPrices:
        """US dollars per token, with the prices under conditions."""
        return TokenPrices(self.price_prompt, self.price_completion, parse_overrides(self.price_overrides))

    @property
    def cutoff(self) -> date | None:
        """The end of what the model knows: by the catalogue, else as declared; None if unknown."""
        return self.knowledge_cutoff or self.declared_cutoff

    def honours(self, parameter: str) -> bool:
        """Does the model honour a request parameter? Where the catalogue does not say, it counts as honoured."""
        return self.supported_parameters is None or parameter in self.supported_parameters


class LineUpQuerySet(models.QuerySet["LineUp"]):
    def approved(self) -> LineUpQuerySet:
        """Approved line-ups, the latest to take effect first."""
        return self.filter(status=LineUp.Status.APPROVED).order_by("-effective_from", "-decided_at", "-pk")

    def in_force(self, at: datetime) -> LineUp | None:
        """The line-up of a cohort that starts at an instant."""
        return self.approved().filter(effective_from__lte=at).first()


class LineUp(models.Model):
    """A list of releases, one per family: proposed, then approved or rejected as a whole. Its entries never change."""

    class Status(models.TextChoices):
        PROPOSED = "proposed"
        APPROVED = "approved"
        REJECTED = "rejected"

    status = models.CharField(max_length=10, choices=Status.choices, default=Status.PROPOSED)
    proposed_at = models.DateTimeField()
    proposed_by = models.CharField(max_length=150)
    reason = models.TextField()
    findings: Any = models.JSONField(
        default=list, blank=True, help_text="Differences to the gateway's catalogue, one line each."
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=150, blank=True)
    decision_reason = models.TextField(blank=True)
    effective_from = models.DateTimeField(
        null=True, blank=True, help_text="Applies to cohorts that start from this time on, never to earlier ones."
    )
    row_sha256 = RowHashField()

    objects = LineUpQuerySet.as_manager()

    class Meta:
        verbose_name = "line-up"
        constraints = [
            models.CheckConstraint(
                condition=Q(status="proposed", decided_at=None, effective_from=None)
                | Q(status="approved", decided_at__isnull=False, effective_from__isnull=False)
                | Q(status="rejected", decided_at__isnull=False, effective_from=None),
                name="only_an_approved_line_up_takes_effect",
            )
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"line-up {self.pk}"

    def active_entries(self) -> models.QuerySet[LineUpEntry]:
        """The entries of families that are still active."""
        return self.entries.filter(family__active=True).select_related("family", "release")


class LineUpEntry(models.Model):
    """A family in a line-up, with the release that competes for it."""

    line_up = models.ForeignKey(LineUp, on_delete=models.PROTECT, related_name="entries")
    family = models.ForeignKey(Family, on_delete=models.PROTECT, related_name="line_up_entries")
    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="line_up_entries")
    position = models.PositiveSmallIntegerField()
    row_sha256 = RowHashField()

    class Meta:
        verbose_name_plural = "line-up entries"
        constraints = [
            models.UniqueConstraint(fields=["line_up", "family"], name="one_entry_per_line_up_and_family"),
            models.UniqueConstraint(fields=["line_up", "position"], name="one_entry_per_line_up_and_position"),
        ]
        ordering = ["line_up_id", "position"]

    def __str__(self) -> str:
        return f"{self.family}: {self.release}"
