"""Pages of the played season, at least one of each kind, by name."""

from dataclasses import dataclass

from tests.season.running_site import Site

MARKETS = {
    "market resolved": "market.status = 'resolved' AND question LIKE '%rain%'",
    "market cancelled": "market.status = 'cancelled'",
    "market awaiting resolution": "market.status = 'closed'",
    "market held": "market.status = 'active' AND question LIKE '%sun%'",
    "market with a hostile question": "question LIKE '%<script>%'",
    "market with an endless word": "question LIKE '%honorific%'",
    "market of the second venue": "source = 'kalshi'",
}
DECISIONS = {
    "decision with refusals": "EXISTS (SELECT 1 FROM agents_instruction i JOIN agents_modelcall c ON c.id = i.call_id"
    " WHERE c.decision_id = decision.id AND NOT i.executed)",
    "decision to sell": "action = 'SELL'",
    "decision by fallback": "fallback AND error LIKE '%malformed%'",
    "decision missed": "decision.status = 'missed' AND error LIKE '%503%'",
    "decision failed": "decision.status = 'failed'",
    "decision with hostile reasoning": "reasoning LIKE '%<script>%'",
    "decision of an external agent": "EXISTS (SELECT 1 FROM agents_submission s JOIN agents_modelcall c"
    " ON c.id = s.call_id WHERE c.decision_id = decision.id)",
}
QUESTIONS = {
    "question resolved": "question.status = 'resolved'",
    "question open": "question.status = 'open' AND market_id IS NOT NULL",
    "question of a race": "question.status = 'open' AND market_id IS NULL",
    "question with a hostile text": "text LIKE '%<script>%'",
}
FIXED = {
    "leaderboard": "/",
    "findings": "/findings/",
    "glossary": "/glossary/",
    "leaderboard of a day": "/?as_of=2026-03-23",
    "trading": "/trading/",
    "trading of a version": "/trading/?methodology=v2",
    "trading of a category": "/trading/?category=Weather",
    "trading of a range": "/trading/?range=1W",
    "cohorts": "/cohorts/",
    "cohort": "/cohorts/1/",
    "cohort just started": "/cohorts/3/",
    "cohort complete": "/cohorts/4/",
    "agent": "/cohorts/1/gpt-5.2/",
    "trades": "/cohorts/1/gpt-5.2/trades/",
    "agent of a failing model": "/cohorts/1/qwen-3/",
    "external agent": "/cohorts/1/guest/",
    "board of agents": "/agents/",
    "board of agents who trade": "/agents/?protocol=trading",
    "record of an external agent": "/agents/guest/",
    "registration of an agent": "/agents/new/",
    "application without its link": "/agents/application/",
    "owner of an agent": "/agents/owner/",
    "families": "/models/",
    "family": "/models/gpt-5.2/",
    "external family": "/models/guest/",
    "markets": "/markets/",
    "questions": "/questions/",
    "decisions": "/decisions/?sort=week",
    "search": "/search/?q=rain",
    "universe": "/universes/1/",
    "universe’s entry": "/universes/1/1/",
    "forecasts": "/forecasts/",
    "forecasts without prices": "/forecasts/?arm=blind",
    "forecasts of a category": "/forecasts/?category=Weather",
    "calibration": "/calibration/",
    "comparisons": "/compare/",
    "comparison": "/compare/gpt-5.2/grok-4.1/",
    "comparison with oneself": "/compare/?first=gpt-5.1&second=gpt-5.1",
    "methodology": "/methodology/",
    "methodology of a version": "/methodology/v1/",
    "about": "/about/",
    "corrections": "/corrections/",
    "data": "/data/",
    "datasets": "/datasets/",
    "kit": "/kit/",
    "conditions": "/conditions/",
    "disagreements": "/disagreements/",
    "forecasts by time": "/time/",
    "forecasts by cost": "/costs/",
    "luck and risk": "/risk/",
    "API documentation": "/api/docs/",
    "not found": "/no/such/page/",
}
FORECASTS = {
    "forecast scored": "question_id IN (SELECT id FROM markets_question WHERE status = 'resolved')",
    "external forecast": "release_id IN (SELECT id FROM agents_release WHERE model_id = 'external/guest')",
}
NAMES = [*FIXED, *MARKETS, *DECISIONS, *QUESTIONS, *FORECASTS]
LAYOUTS = (
    "leaderboard", "cohort", "agent", "registration of an agent", "decisions", "calibration", "comparison",
    "methodology", "decision with refusals", "question resolved",
)  # fmt: skip
"""A page of each layout; the others, made of the same parts, are thorough."""
STATUS = {"not found": 404, "application without its link": 410}
FOREIGN = {"API documentation"}
"""Drawn by a library: it must obey the policy, but neither its words nor its looks are ours."""


@dataclass(frozen=True)
class Places:
    """The path of each place."""

    paths: dict[str, str]

    @classmethod
    def of(cls, site: Site) -> "Places":
        paths = dict(FIXED)
        for table, kinds, path in (
            ("markets_market AS market", MARKETS, "/markets/{}/"),
            ("agents_decision AS decision", DECISIONS, "/decisions/{}/"),
            ("markets_question AS question", QUESTIONS, "/questions/{}/"),
            ("agents_forecast AS forecast", FORECASTS, "/forecasts/{}/"),
        ):
            alias = table.split()[-1]
            for name, condition in kinds.items():
                (row_id, *_) = site.rows(f"SELECT {alias}.id FROM {table} WHERE {condition} ORDER BY 1") or [None]
                assert row_id is not None, f"the season has no {name}"
                paths[name] = path.format(row_id[0])
        return cls(paths)

    def __getitem__(self, name: str) -> str:
        return self.paths[name]
