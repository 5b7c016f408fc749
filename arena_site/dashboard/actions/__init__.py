"""All actions, by name."""

from arena_site.dashboard.action import Action
from arena_site.dashboard.actions import lineups, maintenance, markets, runs, tasks, tokens

ACTIONS: dict[str, Action] = {
    action.name: action
    for action in (
        runs.SyncMarkets(),
        runs.StartCohort(),
        runs.RunDecisions(),
        runs.RunForecasts(),
        runs.CheckResolutions(),
        runs.TakeSnapshots(),
        runs.ComputeScores(),
        runs.VerifyLedger(),
        runs.BuildExport(),
        tasks.RetryDecision(),
        tasks.ReleaseClaim(),
        markets.SettleMarket(),
        markets.ReverseSettlement(),
        maintenance.AcknowledgeAlerts(),
        maintenance.PauseSchedules(),
        maintenance.ResumeSchedules(),
        maintenance.WithdrawFamily(),
        lineups.ProposeLineUp(),
        lineups.ApproveLineUp(),
        lineups.RejectLineUp(),
        lineups.CheckLineUp(),
        tokens.MakeToken(),
        tokens.RevokeToken(),
    )
}
