"""Registrations of external agents and their tokens, which are shown once and stored as hashes."""

import hashlib
import re
import secrets
import unicodedata
from datetime import datetime, timedelta
from decimal import Decimal

from django.core.exceptions import ValidationError
from django.db import transaction

from agents.lineup_2026 import EFFECTIVE_FROM
from agents.models import AgentVersion, Family, Maker, Registration, Release
from agents.models.family import name_slug
from markets.services.cache_versions import save_competition_row

PREFIX = "arena_"
"""Recognisable to scanners for leaked secrets."""
TOKEN_BYTES = 32
LAST_USE_PRECISION = timedelta(minutes=1)
"""Precision of a token's last use, so that most requests need no write."""
COLOR = "#64748b"
VENDOR = "external"
RESERVED = ("market", "uniform", "ensemble", "new", "application", "owner")
"""The reference forecasters, and pages beside those of agents."""


def register_external_agent(
    *, name: str, protocol: str, at: datetime, track: str = Family.Track.CLOSED, maker: Maker | None = None
) -> Registration:
    """The registration, from `at` on, of the external agent of this name; with its token, which is stored nowhere.

    The name of a revoked registration means the same agent again. Raises ValidationError as `check_name` does, and
    for another track than the agent has.
    """
    token = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    with transaction.atomic():
        slug = check_name(name)
        family = Family.objects.filter(slug=slug).first()
        if family is not None and family.track != track:
            raise ValidationError({"track": f"{slug} is of the {family.track} track, which never changes"})
        registration = Registration(
            family=family or _create_family(slug, " ".join(name.split()), track, maker, at),
            protocol=protocol,
            token_sha256=hash_token(token),
            registered_at=at,
        )
        registration.full_clean()
        registration.save()
    registration.token = token
    return registration


def check_name(name: str) -> str:
    """The slug for a new registration's name. Raises ValidationError if it is invalid, taken or registered."""
    slug = name_slug(name)
    if not slug:
        raise ValidationError({"name": f"{name!r} holds no letter or digit"})
    if slug in RESERVED or _letters(name) in _names_of_models() or _resembles_agent(name, slug):
        raise ValidationError({"name": f"{slug} is the name of another forecaster"})
    if Registration.objects.filter(family__slug=slug, revoked_at=None).exists():
        raise ValidationError({"name": f"{slug} is registered already: revoke that first"})
    return slug


def _letters(name: str) -> str:
    """The letters and digits of a name by which two names are the same to a reader."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", name).casefold())


def _names_of_models() -> set[str]:
    """The names of the models that compete, as `_letters` compares them."""
    names = set()
    for slug, display_name in Family.objects.filter(external=False).values_list("slug", "display_name"):
        names |= {_letters(slug), _letters(display_name)}
    releases = Release.objects.filter(family__external=False)
    for model_id, display_name in releases.values_list("model_id", "display_name"):
        names |= {_letters(model_id), _letters(model_id.rpartition("/")[2]), _letters(display_name)}
    return names


def _resembles_agent(name: str, slug: str) -> bool:
    names = Family.objects.filter(external=True).exclude(slug=slug).values_list("display_name", flat=True)
    return _letters(name) in map(_letters, names)


def _create_family(slug: str, name: str, track: str, maker: Maker | None, at: datetime) -> Family:
    family = Family(
        slug=slug,
        display_name=name,
        provider="External",
        color=COLOR,
        active=False,
        external=True,
        track=track,
        maker=maker,
    )
    family.full_clean()
    save_competition_row(family)
    Release.objects.create(
        family=family,
        model_id=f"{VENDOR}/{slug}",
        display_name=name,
        price_prompt=Decimal(0),
        price_completion=Decimal(0),
        effective_from=EFFECTIVE_FROM,
    )
    AgentVersion.objects.create(family=family, number=1, began_at=at)
    return family


def add_version(family: Family, *, note: str, at: datetime) -> AgentVersion:
    """The next version of an external agent, from `at` on. Raises ValidationError for a note that is too long."""
    last = family.versions.order_by("-number").first()
    version = AgentVersion(family=family, number=last.number + 1 if last else 1, began_at=at, note=note)
    version.full_clean()
    version.save()
    return version


def rotate_token(registration: Registration, *, at: datetime) -> Registration | None:
    """The registration that follows on one in force, without a gap, with a new token; None if it is not in force."""
    token = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    with transaction.atomic():
        if not revoke_registration(registration, at=at):
            return None
        successor = Registration.objects.create(
            family=registration.family, protocol=registration.protocol, token_sha256=hash_token(token), registered_at=at
        )
    successor.token = token
    return successor


def revoke_registration(registration: Registration, *, at: datetime) -> bool:
    """Revokes a registration and its token; True if it was in force. The agent's records stay."""
    return bool(Registration.objects.filter(pk=registration.pk, revoked_at=None).update(revoked_at=at))


def find_registration(token: str, *, now: datetime) -> Registration | None:
    """The registration in force with this token, its last use recorded; None for an unknown token."""
    live = Registration.objects.filter(token_sha256=hash_token(token), revoked_at=None)
    registration = live.select_related("family").first()
    last = registration.last_used_at if registration else None
    if registration and (last is None or not last <= now < last + LAST_USE_PRECISION):
        Registration.objects.filter(pk=registration.pk).update(last_used_at=now)
    return registration


def hash_token(token: str) -> str:
    """SHA-256 of a token. With 256 random bits a token needs no slow password hash."""
    return hashlib.sha256(token.encode()).hexdigest()
