"""Line-ups: proposed by a person or by the catalogue's check, previewed, then approved for cohorts to come."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max

from agents.models import LineUp, LineUpEntry, Release
from cohorts.models import Cohort
from cohorts.weeks import WEEK, week_start
from markets.models import Alert

ALERT = "line-up-proposed"


@dataclass(frozen=True, slots=True)
class Change:
    """What a line-up does to one family: `before` is None where it comes in, `after` where it leaves."""

    family: str
    before: Release | None
    after: Release | None

    @property
    def says(self) -> str:
        if self.before is None or self.after is None:
            release = self.after or self.before
            return f"{self.family} {'comes in' if self.after else 'leaves'}: {_told(release)}"
        if self.before.model_id == self.after.model_id:
            return (
                f"{self.family} stays with {self.after.model_id}: {_prices(self.before)} becomes {_prices(self.after)}"
            )
        return f"{self.family}: {_told(self.before)} becomes {_told(self.after)}"


@dataclass(frozen=True, slots=True)
class LineUpPreview:
    """From when on a line-up would count, and what it would change."""

    effective_from: datetime
    changes: tuple[Change, ...]
    withdrawn: tuple[str, ...]
    """Families that it lists and that are withdrawn: they do not play all the same."""


def lineup_propose(
    *, releases: Sequence[Release], by: str, reason: str, at: datetime, findings: Iterable[str] = ()
) -> LineUp:
    """A proposal of these releases, in their order. Nothing plays by it until it is approved.

    Raises ValidationError for a list that can not be one.
    """
    check_releases(releases, at=at)
    with transaction.atomic():
        line_up = LineUp.objects.create(proposed_at=at, proposed_by=by, reason=reason, findings=list(findings))
        LineUpEntry.objects.bulk_create(
            LineUpEntry(line_up=line_up, family_id=release.family_id, release=release, position=position)
            for position, release in enumerate(releases, start=1)
        )
        Alert.objects.raise_once(ALERT, str(line_up.pk), f"Line-up {line_up.pk} is proposed by {by}: {reason}", at)
    return line_up


def check_releases(releases: Sequence[Release], *, at: datetime) -> None:
    """Raises ValidationError where these releases can not make a line-up that would be approved at `at`."""
    if not releases:
        raise ValidationError({"releases": "a line-up needs at least one release"})
    seen: set[int] = set()
    for release in releases:
        if release.family.external:
            raise ValidationError({"releases": f"{release.family} is external: it plays by its registration"})
        if release.family_id in seen:
            raise ValidationError({"releases": f"{release.family} has two releases in it"})
        if release.effective_from > effective_from(at=at):
            raise ValidationError(
                {"releases": f"{release} may play from {release.effective_from:%Y-%m-%d %H:%M} UTC on, not before"}
            )
        seen.add(release.family_id)


def lineup_preview(line_up: LineUp, *, at: datetime) -> LineUpPreview:
    """What approving a line-up at `at` would come to."""
    before = _releases(upcoming())
    after = _releases(line_up)
    changes = tuple(
        Change((after.get(family) or before[family]).family.slug, before.get(family), after.get(family))
        for family in dict.fromkeys([*after, *before])
        if before.get(family) != after.get(family)
    )
    withdrawn = tuple(release.family.slug for release in after.values() if not release.family.active)
    return LineUpPreview(effective_from(at=at), changes, withdrawn)


def lineup_approve(line_up: LineUp, *, by: str, reason: str, at: datetime) -> bool:
    """Lets cohorts play by a line-up, from the next week on; those that have started keep what they froze.

    False where it was decided on before.
    """
    check_releases([entry.release for entry in _entries(line_up)], at=at)
    return _decide(line_up, LineUp.Status.APPROVED, by, reason, at, effective_from(at=at))


def lineup_reject(line_up: LineUp, *, by: str, reason: str, at: datetime) -> bool:
    """Ends a proposal. False where it was decided on before."""
    return _decide(line_up, LineUp.Status.REJECTED, by, reason, at, None)


def _decide(line_up: LineUp, status: str, by: str, reason: str, at: datetime, from_: datetime | None) -> bool:
    with transaction.atomic():
        Alert.objects.clear(ALERT, str(line_up.pk), at)
        still_open = LineUp.objects.filter(pk=line_up.pk, status=LineUp.Status.PROPOSED)
        decided = {"decided_at": at, "decided_by": by, "decided_because": reason}
        return bool(still_open.update(status=status, effective_from=from_, **decided))


def effective_from(*, at: datetime) -> datetime:
    """The start of the first week after `at` that has no cohort yet, nor any after it."""
    newest = Cohort.objects.aggregate(newest=Max("week_start"))["newest"]
    after = max(at, newest) if newest else at
    return week_start(after) + WEEK


def upcoming() -> LineUp | None:
    """The line-up that was approved last, in force already or from the next week on."""
    return LineUp.objects.approved().first()


def _entries(line_up: LineUp) -> list[LineUpEntry]:
    return list(line_up.entries.select_related("release__family").order_by("position"))


def _releases(line_up: LineUp | None) -> dict[int, Release]:
    return {entry.family_id: entry.release for entry in _entries(line_up)} if line_up else {}


def _told(release: Release | None) -> str:
    return f"{release} at {_prices(release)}" if release else "nothing"


def _prices(release: Release) -> str:
    return f"${release.price_prompt * 10**6:.6g} and ${release.price_completion * 10**6:.6g} per million tokens"
