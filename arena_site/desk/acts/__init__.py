"""Every act there is, by its name."""

from arena_site.desk.act import Act
from arena_site.desk.acts import lineups, markets, reversals, runs, tasks, tokens, upkeep

ACTS: dict[str, Act] = {
    act.name: act
    for act in (
        runs.Sync(),
        runs.StartCohort(),
        runs.Decisions(),
        runs.Forecasts(),
        runs.Resolutions(),
        runs.Snapshots(),
        runs.Scores(),
        runs.Ledger(),
        runs.BuildExport(),
        tasks.RetryDecision(),
        tasks.ReleaseClaim(),
        markets.Settle(),
        reversals.Reverse(),
        upkeep.Acknowledge(),
        upkeep.Pause(),
        upkeep.Resume(),
        upkeep.Withdraw(),
        lineups.Propose(),
        lineups.Approve(),
        lineups.Reject(),
        lineups.Check(),
        tokens.MakeToken(),
        tokens.RevokeToken(),
    )
}
