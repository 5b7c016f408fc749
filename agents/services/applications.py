"""Applications of makers: address confirmed by mail, approved where the operator wants to, token shown once.

A link names an application by a signature, and goes to its address alone. Opening one changes nothing; its button does.
"""

import re
import unicodedata
from datetime import datetime, timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.core.signing import BadSignature, Signer
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from agents.models import Application, Family, Maker, Registration
from agents.services.registrations import check_name, register_external_agent

CLOSED, REQUEST, OPEN = REGISTRATION_MODES = ("closed", "request", "open")
"""Values of ARENA_REGISTRATION: nobody applies; the operator approves; a confirmed address suffices."""
AGENTS_PER_MAKER = 3
AGENTS_PER_DOMAIN, DOMAIN_PERIOD = 12, timedelta(days=30)
"""One who owns a domain has as many mailboxes as wanted; a public one has many makers, so its limit is by time."""
LINK_LIFETIME = timedelta(days=7)
"""From the application, or from its approval, on."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 .\-]*")
Status = Application.Status


class ApplicationRefused(Exception):
    """The link or the step is not valid, or not any more; the message says why."""


def submit_application(application: Application, *, at: datetime) -> None:
    """Stores a filled-in application and mails the link that confirms its address. Raises ValidationError."""
    application.name = " ".join(unicodedata.normalize("NFKC", application.name).split())
    application.address = application.address.lower()
    application.requested_at = at
    if not NAME.fullmatch(application.name):
        raise ValidationError({"name": "use letters from a to z, digits, spaces, dots and dashes"})
    application.slug = check_name(application.name)
    application.full_clean()
    current = Application.objects.exclude(status=Status.REJECTED).filter(_is_current(at))
    reserved = current.filter(slug=application.slug, status__in=(Status.WAITING, Status.APPROVED))
    if Family.objects.filter(slug=application.slug).exists() or reserved.exists():
        raise ValidationError({"name": f"{application.slug} is taken"})
    domain = application.address.rpartition("@")[2]
    of_domain = current.filter(address__endswith=f"@{domain}")
    mailboxes = list(map(mailbox, of_domain.values_list("address", flat=True)))
    if mailboxes.count(mailbox(application.address)) >= AGENTS_PER_MAKER:
        raise ValidationError({"address": f"{AGENTS_PER_MAKER} agents of this maker are registered or applied for"})
    if of_domain.filter(requested_at__gt=at - DOMAIN_PERIOD).count() >= AGENTS_PER_DOMAIN:
        raise ValidationError(
            {"address": f"{AGENTS_PER_DOMAIN} of {domain} applied in {DOMAIN_PERIOD.days} days: ask the operator"}
        )
    application.save()
    send_link(application, "Confirm your address to register")


def mailbox(address: str) -> str:
    """The mailbox of an address in small letters: without the tag that a maker may write after a plus."""
    name, _, domain = address.rpartition("@")
    return f"{name.partition('+')[0]}@{domain}"


def _is_current(at: datetime) -> Q:
    """Applications that may still lead to a token, or whose agent has one in force, its first or a later one."""
    since = at - LINK_LIFETIME
    pending = Q(requested_at__gt=since) | Q(decided_at__gt=since) | Q(status=Status.WAITING)
    in_force = Registration.objects.filter(family=OuterRef("registration__family"), revoked_at=None)
    return Q(registration=None) & pending | Q(registration__isnull=False) & Q(Exists(in_force))


def send_link(application: Application, subject: str) -> None:
    """Mails the maker the link to the application's page, under the arena's own address whatever host was asked."""
    key = _signer().sign(str(application.pk))
    text = (
        f"{subject}: {application.name}\n\n{settings.ARENA_SITE_URL}/agents/application/?key={key}\n\n"
        f"The link is valid for {LINK_LIFETIME.days} days. If you did not apply, ignore this mail.\n"
    )
    send_mail(f"{subject} {application.name}", text, None, [application.address])


def find_application(key: str, *, at: datetime) -> Application:
    """The application that a link names. Raises ApplicationRefused for a forged link and for one that has expired."""
    try:
        application = Application.objects.get(pk=_signer().unsign(key))
    except (BadSignature, Application.DoesNotExist) as error:
        raise ApplicationRefused("this link is not valid") from error
    start = application.decided_at or application.requested_at
    if application.status in (Status.UNCONFIRMED, Status.APPROVED) and at >= start + LINK_LIFETIME:
        raise ApplicationRefused("this link has expired: apply again")
    return application


def confirm_address(application: Application, *, approved: bool, at: datetime) -> bool:
    """Records that the maker reads mail at the address; False if that was recorded before."""
    decision = {"status": Status.APPROVED, "decided_at": at} if approved else {"status": Status.WAITING}
    unconfirmed = Application.objects.filter(pk=application.pk, status=Status.UNCONFIRMED)
    return bool(unconfirmed.update(confirmed_at=at, **decision))


def decide_application(application: Application, *, approved: bool, by: str, at: datetime) -> bool:
    """Approves or rejects an application that waits; False if none does any more."""
    status = Status.APPROVED if approved else Status.REJECTED
    waiting = Application.objects.filter(pk=application.pk, status=Status.WAITING)
    return bool(waiting.update(status=status, decided_at=at, decided_by=by))


def register_applicant(application: Application, *, at: datetime) -> Registration:
    """The registration of an approved application, with its token, once. Raises ApplicationRefused."""
    approved = Application.objects.filter(pk=application.pk, status=Status.APPROVED)
    with transaction.atomic():
        # One at a time: an UPDATE locks the row on PostgreSQL and the database on SQLite.
        if not approved.update(status=Status.APPROVED):
            raise ApplicationRefused("the token was shown already, or the application is not approved")
        if Family.objects.filter(slug=application.slug).exists():
            raise ApplicationRefused(f"{application.slug} was registered by somebody else: apply with another name")
        maker, _ = Maker.objects.get_or_create(
            address=application.address, defaults={"name": application.maker_name, "confirmed_at": at}
        )
        registration = register_external_agent(
            name=application.name, protocol=application.protocol, track=application.track, maker=maker, at=at
        )
        approved.update(status=Status.REGISTERED, registration=registration)
    return registration


def _signer() -> Signer:
    return Signer(salt="agents.application")
