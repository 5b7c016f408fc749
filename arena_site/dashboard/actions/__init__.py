"""All actions, by name, in the order of the dashboard."""

from arena_site.dashboard.action import Action
from arena_site.dashboard.actions import lineups, maintenance, markets, runs, tasks

ACTIONS: dict[str, Action] = {
    action.name: action
    for action in (
        runs.StartCohort(),
        *runs.ENQUEUE_ACTIONS,
        runs.BuildExport(),
        tasks.RetryTasks(),
        tasks.ReleaseClaim(),
        tasks.ReadSealedAnswer(),
        markets.SettleMarket(),
        markets.ReverseSettlement(),
        maintenance.AcknowledgeAlerts(),
        maintenance.PauseSchedules(),
        maintenance.ResumeSchedules(),
        maintenance.BeginMaintenance(),
        maintenance.EndMaintenance(),
        maintenance.WithdrawFamily(),
        lineups.ProposeLineUp(),
        lineups.ApproveLineUp(),
        lineups.RejectLineUp(),
    )
}
