"""The ledger's verification in this process, after tests in which models were asked."""

from django.db.models import Max
from django.test import override_settings

from agents.models import Decision, Elicitation
from foundation.models import Run
from scoring.models import Leaderboard


def ledger_violations() -> list[str]:
    """The lines of `verify_ledger` at the newest run's instant; none where no model was to be asked.

    Left out are leaderboards, which a test that calls services without their command leaves to the next job, and
    methodologies, whose rules tests change in place.
    """
    at = Run.objects.aggregate(newest=Max("at"))["newest"]
    if at is None or not (Decision.objects.exists() or Elicitation.objects.exists()):
        return []
    from scoring.exports.verification.ledger_audit import ledger_checks  # loads SciPy, which the controller needs not

    checks = ledger_checks(at)
    del checks[str(Leaderboard._meta.verbose_name_plural)]  # two fifths of the time
    with override_settings(ARENA_CLOCK=at):  # seals that a test leaves closed are not overdue
        violations = [line for check in checks.values() for line in check()]
    return [line for line in violations if not line.startswith("methodology ")]
