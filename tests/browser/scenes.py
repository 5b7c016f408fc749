"""Something to do for every act of the desk, laid out in a played season: `python -m tests.browser.scenes FILE`.

Prints as JSON what each act is told that has something to choose, the instants at which to do it, and the session of
somebody of each role who has logged in: it holds on a site with the same SECRET_KEY. A process of its own, as whoever
drives a browser can not use the database.
"""

import json
import os
import sys
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.season.full_season import ROLES

NIGHT, LATER = "the night", "the week after"
"""Shortly after the newest freeze at which models failed; and a week later, with neither a cohort nor questions yet."""


def main(file: Path) -> None:
    os.environ |= {"DATABASE_URL": f"sqlite:///{file}", "DJANGO_SETTINGS_MODULE": "arena_site.settings"}
    import django

    django.setup()
    print(json.dumps(laid_out(), default=str))


def laid_out() -> tuple[dict[str, dict[str, Any]], dict[str, Any], dict[str, str]]:
    from django.contrib.auth.models import User
    from django.utils import timezone

    from agents.models import Decision, Family, Release
    from agents.services.lineups import propose_lineup
    from arena_site import jobs
    from arena_site.models import OperatorToken
    from arena_site.operator_tokens import issue_operator_token
    from markets.models import Alert, Market

    now = timezone.now()
    jobs.install()
    jobs.pause("scores")
    failed, dead = Decision.objects.filter(status="failed").order_by("-universe__week_start", "pk")[:2]
    night = failed.week_start + timedelta(minutes=40)
    lease = {"lease_id": uuid.uuid4(), "lease_until": now - timedelta(hours=1)}
    Decision.objects.filter(pk=dead.pk).update(status="claimed", **lease)
    playing = list(Release.objects.filter(pk__lte=6))
    line_up = propose_lineup(releases=playing[:5], by="ann", reason="A try.", at=night)
    issue_operator_token(owner=User.objects.get(username="operator"), name="old", scope="exports", at=now)
    stuck = Market.objects.filter(status="closed", traded=True).earliest("pk")
    won = Market.objects.filter(status="resolved", question="Will it snow in Rome?").get()
    loser = won.outcomes.exclude(pk=won.winning_outcome_id).get()
    told = {
        "export": {"formats": ["parquet"]},
        "retry-decision": {"decision": failed.pk},
        "release-claim": {"decision": dead.pk},
        "settle": {"market": stuck.pk, "result": f"outcome-{stuck.outcomes.get(side='YES').pk}", "source": "the venue"},
        "reverse": {"market": won.pk, "result": f"outcome-{loser.pk}", "source": "the venue, read again"},
        "acknowledge": {"alert": [Alert.objects.filter(cleared_at=None).earliest("pk").pk]},
        "pause": {"schedule": ["sync", "prune"]},
        "resume": {"schedule": ["scores"]},
        "withdraw": {"family": Family.objects.get(slug="grok-4").slug},
        "propose-line-up": {"release": [release.pk for release in playing[:6]]},
        "approve-line-up": {"line_up": line_up.pk},
        "reject-line-up": {"line_up": line_up.pk},
        "make-token": {"name": "nightly", "scope": "exports", "days": 30},
        "revoke-token": {"token": OperatorToken.objects.get().pk},
    }
    return told, {NIGHT: night, LATER: night + timedelta(weeks=1)}, {role: session_of(role) for role in ROLES}


def session_of(name: str) -> str:
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.get(username=name))
    return client.cookies[settings.SESSION_COOKIE_NAME].value


if __name__ == "__main__":
    main(Path(sys.argv[1]))
