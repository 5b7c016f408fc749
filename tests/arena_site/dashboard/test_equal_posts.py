"""Two equal posts at the same instant, by one or by two people: one job is queued and one run starts."""

import pytest

from cohorts.models import Cohort
from tests.arena_site.dashboard.accounts import perform, sign_in
from tests.faults.processes import BARRIER_S, FORK, CommandRunner

FORMS = {"sync_markets": {}, "run_forecasts": {}, "start_cohort": {}}


def _results() -> dict[str, object]:
    """What the database holds after the posts."""
    from django_q.models import OrmQ

    from arena_site.models import AuditEntry

    return {
        "queue": sorted((message.task["func"], message.task["args"]) for message in OrmQ.objects.all()),
        "audit": sorted(AuditEntry.objects.values_list("action", "result")),
        "cohorts": Cohort.objects.count(),
    }


@pytest.mark.parametrize("roles", [("operator", "operator"), ("operator", "administrator")])
def test_equal_posts_start_one_run(offline_arena: CommandRunner, roles: tuple[str, str]) -> None:
    name = offline_arena.migrated()
    offline_arena.read(name, lambda: [sign_in(role).get("/admin/").status_code for role in set(roles)])
    start = FORK.Barrier(len(roles))

    def post_as(role: str) -> int:
        client = sign_in(role)
        for action, form in FORMS.items():
            start.wait(BARRIER_S)
            assert perform(client, action, **form).status_code == 302
        return 0

    children = [offline_arena.start(name, lambda role=role: post_as(role)) for role in roles]  # type: ignore[misc]
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0]
    assert offline_arena.read(name, _results) == {
        "queue": [
            ("arena_site.jobs.forecasts", ()), ("arena_site.jobs.sync", ()),
        ],
        "audit": sorted((action, result) for action in FORMS for result in ("done", "unchanged")),
        "cohorts": 1,
    }  # fmt: skip
