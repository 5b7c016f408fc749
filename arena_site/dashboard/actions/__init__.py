"""All actions by name, and as the dashboard groups them."""

from arena_site.dashboard.action import Action
from arena_site.dashboard.actions import applications, cohorts, limits, lineups, maintenance, markets, runs, tasks
from foundation.bulk import rows_by

GROUPS: dict[str, dict[str, Action]] = {
    "Models": rows_by("name", (
        runs.StartCohort(), runs.RunDecisions("decisions"), runs.RunForecasts("forecasts"), runs.EnqueueJob("costs"),
        runs.EnqueueJob("missed_decisions"), tasks.RetryTasks(), tasks.ReleaseClaim(), limits.SetSpendCap(),
        limits.PauseModels(), limits.ResumeModels(),
    )),
    "Markets": rows_by("name", (
        runs.EnqueueJob("sync"), runs.EnqueueJob("resolutions"), markets.SettleMarket(), markets.ReverseSettlement(),
    )),
    "External agents": rows_by("name", (
        applications.ApproveApplication(), applications.RejectApplication(), runs.EnqueueJob("openings"),
        tasks.ReadSealedAnswer(),
    )),
    "Line-ups": rows_by("name", (
        runs.EnqueueJob("check_lineup"), maintenance.WithdrawFamily(), lineups.AddModel(), lineups.ProposeLineUp(),
        lineups.ApproveLineUp(), lineups.RejectLineUp(),
    )),
    "Alerts and schedules": rows_by("name", (
        runs.EnqueueJob("alerts"), maintenance.AcknowledgeAlerts(), maintenance.SendTestAlert(),
        maintenance.PauseSchedules(), maintenance.ResumeSchedules(), maintenance.BeginMaintenance(),
        maintenance.EndMaintenance(),
    )),
    "Results and data": rows_by("name", (
        runs.EnqueueJob("snapshots"), runs.EnqueueJob("scores"), runs.EnqueueJob("ledger"), runs.EnqueueJob("backup"),
        runs.EnqueueJob("archive"), runs.EnqueueJob("prune"),
        cohorts.VoidWeek(),
    )),
}  # fmt: skip
ACTIONS: dict[str, Action] = {}
for group in GROUPS.values():
    ACTIONS |= group
