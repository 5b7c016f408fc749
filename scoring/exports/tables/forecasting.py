"""Tables of the forecast protocol: questions, requests, forecasts and their scores."""

from agents.models import Elicitation, Forecast, RefusedForecast
from markets.models import EvidenceSnippet, Question, QuestionBatch, QuestionEntry, QuestionOption, QuestionSet
from scoring.exports.dictionary import record_table
from scoring.models import ForecastScore

FORECAST_TABLES = (
    record_table(Question, "questions", "Questions put to forecasters. Texts belong to their venues.", """
        id source event_key market options_sha256 text rules category exclusive status closes_at first_asked_at
        closed_at resolved_at
    """, batch_size=500,
        chained="options_sha256 text rules exclusive",
    ),
    record_table(QuestionOption, "question_options", "Possible answers to questions.", """
        question index name outcome happened
    """, order=("question_id", "index"),
        recomputed="happened",
        chained="index name",
    ),
    record_table(QuestionSet, "question_sets", "The questions of a day, frozen together.", """
        id day methodology part universe frozen_at sha256 evidence_sha256 evidence_dropped left_out
    """,
        recomputed="sha256 evidence_sha256",
        chained="day part",
    ),
    record_table(QuestionEntry, "question_entries",
        "Questions of question sets, with the frozen prices of their options.", """
        id question_set question position batch reason prices facts closes_on
    """, order=("question_set_id", "position"),
        chained="question_set question position batch reason prices facts",
    ),
    record_table(EvidenceSnippet, "evidence",
        "Snippets about the questions of question sets, as conditions with evidence show them. "
        "Texts belong to their publishers.", """
        entry position title source url published_at retrieved_at text sha256 states_outcome
    """, order=("entry__question_set_id", "entry__position", "position"), batch_size=500,
        recomputed="all but states_outcome",
    ),
    record_table(QuestionBatch, "question_batches", "Questions that are put in one request, in one arm.", """
        id question_set arm number
    """,
        chained="question_set arm number",
    ),
    record_table(Elicitation, "elicitations", "Requests of forecasts: a question batch put to a release.", """
        id batch methodology=methodology__version family=family__slug release model_id=release__model_id status declined
        refusals error made_at nonce sample samples
    """,
        recomputed="samples",
        chained="batch methodology family model_id status declined refusals error made_at nonce sample",
    ),
    record_table(Forecast, "forecasts", "Accepted forecasts: one probability per option.", """
        id elicitation call entry question family=family__slug release methodology arm probabilities stated normalised
        rationale made_at samples samples_asked samples_read log_odds_mean spread searches excluded
    """, batch_size=500,
        recomputed="all but id call",
    ),
    record_table(RefusedForecast, "refused_forecasts", "Forecasts in answers that broke the rules.", """
        call entry stated reason
    """,
        recomputed="all",
    ),
    record_table(ForecastScore, "forecast_scores", "Scores of forecasts on resolved questions.", """
        forecast brier log spherical accuracy market_brier resolved_at scored_at
    """,
        recomputed="all but scored_at",
    ),
)  # fmt: skip
