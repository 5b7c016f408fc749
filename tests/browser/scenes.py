"""Work for every action of the dashboard, added to a played season: `python -m tests.browser.scenes FILE`.

Prints as JSON the form of each action that has one, the instants at which to perform it, and a session of each role,
valid on a site with the same SECRET_KEY. It is a process of its own, since a process that drives a browser can not use
the database.
"""

import json
import os
import sys
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.season.full_season import ROLES

SUNDAY_NIGHT, WEEK_LATER = "Sunday night", "a week later"
"""Shortly after the newest freeze at which models failed; and a week later, with neither a cohort nor questions yet."""


def main(file: Path) -> None:
    os.environ |= {"DATABASE_URL": f"sqlite:///{file}", "DJANGO_SETTINGS_MODULE": "arena_site.settings"}
    import django

    django.setup()
    print(json.dumps(prepare(), default=str))


def prepare() -> tuple[dict[str, dict[str, Any]], dict[str, Any], dict[str, str]]:
    from django.utils import timezone
    from django_q.models import Schedule

    from agents.models import Application, Decision, Family, Release, RunSetting
    from agents.services.lineups import propose_lineup
    from arena_site import jobs
    from foundation.models import Alert
    from markets.models import Market

    now = timezone.now()
    jobs.install()
    Schedule.objects.filter(name="scores").update(repeats=jobs.PAUSED)
    failed, expired = Decision.objects.filter(status="failed").order_by("-universe__week_start", "pk")[:2]
    night = failed.week_start + timedelta(minutes=40)
    lease = {"lease_id": uuid.uuid4(), "lease_until": now - timedelta(hours=1)}
    Decision.objects.filter(pk=expired.pk).update(status="claimed", **lease)
    releases = list(Release.objects.order_by("pk")[:6])
    RunSetting.objects.create(protocol="forecast", family=Family.objects.get(slug="grok-4"), paused=True)
    line_up = propose_lineup(releases=releases[:5], by="ann", reason="A try.", at=night)
    unresolved = Market.objects.filter(status="closed", traded=True).earliest("pk")
    resolved = Market.objects.get(status="resolved", question="Will it snow in Rome?")
    loser = resolved.outcomes.exclude(pk=resolved.winning_outcome_id).get()
    applicant = Application.objects.create(
        name="Guest", slug="guest", maker_name="Ada", address="ada@a.example", requested_at=night, status="waiting"
    )
    forms = {
        "retry": {"decision": [failed.pk]},
        "release-claim": {"decision": expired.pk},
        "settle": {
            "market": unresolved.pk,
            "result": f"outcome-{unresolved.outcomes.get(side='YES').pk}",
            "source": "the venue",
        },
        "reverse": {"market": resolved.pk, "result": f"outcome-{loser.pk}", "source": "the venue, read again"},
        "acknowledge": {"alert": [Alert.objects.filter(cleared_at=None).earliest("pk").pk]},
        "pause": {"schedule": ["sync", "prune"]},
        "resume": {"schedule": ["scores"]},
        "set-cap": {"protocol": "trading", "limit": "30.00"},
        "pause-models": {"protocol": ["trading"], "family": "grok-4"},
        "resume-models": {"protocol": ["forecast"], "family": "grok-4"},
        "withdraw": {"family": Family.objects.get(slug="grok-4").slug},
        "void-week": {"cohort": failed.cohort_id},
        "approve-agent": {"application": applicant.pk},
        "reject-agent": {"application": applicant.pk},
        "propose-line-up": {"release": [release.pk for release in releases[:6]]},
        "approve-line-up": {"line_up": line_up.pk},
        "reject-line-up": {"line_up": line_up.pk},
    }
    instants = {SUNDAY_NIGHT: night, WEEK_LATER: night + timedelta(weeks=1)}
    return forms, instants, {role: create_session(role) for role in ROLES}


def create_session(name: str) -> str:
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.get(username=name))
    return client.cookies[settings.SESSION_COOKIE_NAME].value


if __name__ == "__main__":
    main(Path(sys.argv[1]))
