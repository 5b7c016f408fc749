"""A whole made season, stored from the markets to the boards."""

from collections.abc import Callable
from datetime import timedelta

from django.db import connection, transaction

from agents.models import Agent, Family
from cohorts.models import Cohort, Methodology
from markets.models import Market
from markets.services.cache_versions import Scope, renew_versions
from scoring.services.family_totals import family_total_drift
from scoring.services.scores import compute_scores
from tests.benchmarks.generator.forecasts import forecasts_store
from tests.benchmarks.generator.history import chains_store, runs_store, snapshots_store
from tests.benchmarks.generator.listings import listings_store, universes_store
from tests.benchmarks.generator.plan import Plan
from tests.benchmarks.generator.portfolios import season_store

VERSION = "scale"
"""The methodology of made cohorts: the newest one with as many decision weeks as it takes."""
Progress = Callable[..., None]


def season_make(plan: Plan, progress: Progress = lambda finished_count, of, step="": None) -> None:
    """Stores the plan's season in an arena without one, then scores and ranks it, and links its records to chains."""
    steps = plan.agents + 4
    with transaction.atomic():
        progress(0, steps, "markets")
        methodology = _methodology(plan)
        listings = listings_store(plan)
        progress(1, steps, "universes")
        weeks = universes_store(plan, methodology, listings)
        agents = _agents(plan, methodology)
        ends = sorted((one for one in listings if one.ends_at), key=lambda one: (one.ends_at, one.market.pk))
        for place, agent in enumerate(agents):
            progress(place + 2, steps, str(agent))
            snapshots_store(plan, agent, place, season_store(plan, agent, place, weeks, ends))
        Agent.objects.bulk_update(agents, ["cash", "journal_length"], batch_size=100)
        _follow()
        progress(plan.agents + 2, steps, "forecasts")
        for _ in forecasts_store(plan, methodology, listings):
            pass
        runs_store(plan)
    _analyze()
    progress(plan.agents + 3, steps, "scores")
    renew_versions(*Scope)
    for _ in family_total_drift(repair=True):
        pass
    compute_scores(at=plan.end)
    with transaction.atomic():
        chains_store()
    progress(steps, steps)


def _analyze() -> None:
    """Does what PostgreSQL's autovacuum does minutes after tables have grown."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # In a transaction, as in a test, nothing can be vacuumed.
            cursor.execute("ANALYZE" if connection.in_atomic_block else "VACUUM (ANALYZE)")


def _methodology(plan: Plan) -> Methodology:
    rules = Methodology.objects.forecasting() or Methodology.objects.current()
    rules.pk, rules.version, rules.title = None, VERSION, f"A made season with {plan.decision_weeks} decision weeks"
    rules.published_at, rules.decision_weeks = plan.begin - timedelta(days=1), plan.decision_weeks
    rules.save(force_insert=True)
    return rules


def _agents(plan: Plan, methodology: Methodology) -> list[Agent]:
    """The agents of every cohort, by cohort and family; their cash follows once they have played."""
    cohorts = [
        Cohort(number=number + 1, week_start=start, methodology=methodology, started_at=start)
        for number in range(plan.size.cohorts)
        for start in [plan.begin + number * timedelta(weeks=1)]
    ]
    Cohort.objects.bulk_create(cohorts)
    agents = []
    for cohort in cohorts:
        for family in Family.objects.active():
            release = family.releases.first()
            assert release is not None
            agents.append(
                Agent(
                    cohort=cohort, family=family, release=release, model_id=release.model_id,
                    display_name=release.display_name, price_prompt=release.price_prompt,
                    price_completion=release.price_completion,
                )
            )  # fmt: skip
    return Agent.objects.bulk_create(agents, batch_size=100)


def _follow() -> None:
    Market.objects.filter(trades__isnull=False).update(traded=True)
