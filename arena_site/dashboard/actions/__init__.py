"""All actions, by name, in the order of the dashboard."""

from arena_site.dashboard.action import Action
from arena_site.dashboard.actions import applications, cohorts, limits, lineups, maintenance, markets, runs, tasks
from foundation.bulk import rows_by

ACTIONS: dict[str, Action] = rows_by(
    "name",
    (
        runs.StartCohort(),
        *runs.ENQUEUE_ACTIONS,
        runs.BuildExport(),
        tasks.RetryTasks(),
        tasks.ReleaseClaim(),
        tasks.ReadSealedAnswer(),
        markets.SettleMarket(),
        markets.ReverseSettlement(),
        cohorts.VoidWeek(),
        maintenance.AcknowledgeAlerts(),
        maintenance.SendTestAlert(),
        maintenance.PauseSchedules(),
        maintenance.ResumeSchedules(),
        limits.SetSpendCap(),
        limits.PauseModels(),
        limits.ResumeModels(),
        maintenance.BeginMaintenance(),
        maintenance.EndMaintenance(),
        maintenance.WithdrawFamily(),
        lineups.AddModel(),
        applications.ApproveApplication(),
        applications.RejectApplication(),
        lineups.ProposeLineUp(),
        lineups.ApproveLineUp(),
        lineups.RejectLineUp(),
    ),
)

GROUPS = {
    "Models": (
        "start_cohort", "run_decisions", "run_forecasts", "retry", "release-claim", "set-cap", "pause-models",
        "resume-models", "reconcile_costs", "missed_decisions",
    ),
    "Markets": ("sync_markets", "check_resolutions", "settle", "reverse"),
    "External agents": ("approve-agent", "reject-agent"),
    "Line-ups": ("check_lineup", "add-model", "propose-line-up", "approve-line-up", "reject-line-up", "withdraw"),
    "Alerts and schedules": (
        "acknowledge", "send_alerts", "test-alert", "pause", "resume", "maintenance", "end-maintenance",
    ),
    "Results and data": (
        "take_snapshots", "compute_scores", "verify_ledger", "publish_archive", "export",
        "void-week", "read-sealed", "backup", "prune",
    ),
}  # fmt: skip
"""The names of all actions, as the dashboard groups them."""
