"""Tables of the forecast protocol: questions, requests, forecasts and their scores."""

from scoring.exports.dictionary import ArchiveTable, columns

FORECAST_TABLES = (
    ArchiveTable("questions", "Questions put to forecasters. Texts belong to their venues.", columns("""
        id integer row - The question.
        source text - Its venue.
        event_key text - Shared by the questions of one event.
        market integer row market_id - Its market, if it is about a single one.
        options_sha256 text sha - Hash of the source, the event or market, and the options.
        text text - The question.
        rules text - Its resolution rules.
        category text - Its category.
        exclusive boolean - Does exactly one option happen?
        status text - open, closed, resolved or cancelled.
        closes_at time - Scheduled close, which follows its markets while it is open.
        first_asked_at time - First time in a question set.
        closed_at time - First time seen closed.
        resolved_at time - Time of resolution.
    """), "markets.Question", batch_size=500,
        chained="options_sha256 text rules exclusive",
    ),
    ArchiveTable("question_options", "Possible answers to questions.", columns("""
        question integer row question_id - The question.
        index integer - Its place among the question's options.
        name text - Its name.
        outcome integer row outcome_id - The outcome that pays if it happens.
        happened boolean - True if the option happened; null until resolved, and where its own market was cancelled.
    """), "markets.QuestionOption", ("question_id", "index"),
        recomputed="happened",
        chained="index name",
    ),
    ArchiveTable("question_sets", "The questions of a day, frozen together.", columns("""
        id integer row - The set.
        day time - 00:00 UTC of the day.
        methodology text - The methodology's version.
        part integer - 0 for the set of the day; 1 and up for questions added later that day.
        universe integer row universe_id - The universe whose prices it uses, on the day of decisions.
        frozen_at time - Time of the freeze.
        sha256 text sha - Hash of its entries.
        evidence_sha256 text sha - Hash over its evidence; empty where none was gathered.
        evidence_dropped json - Reason to the number of texts that were not shown for it.
        left_out json - Condition to the reason why it is not asked on this day.
    """), "markets.QuestionSet",
        recomputed="sha256 evidence_sha256",
        chained="day part",
    ),
    ArchiveTable("question_entries", "Questions of question sets, with the frozen prices of their options.", columns("""
        id integer row - The entry.
        question_set integer row question_set_id - The set.
        question integer row question_id - The question.
        position integer - Its place in the set.
        batch integer - The number of its question batch in each arm.
        reason text - selected (by the rule) or traded (its market was traded).
        prices json - By option: price (mid), ask, no_ask (US dollars a share) and stale.
        facts json - What a prompt may show besides: event, volume_24h_usd (US dollars), and spread by option.
        closes_on text - Day of the scheduled close at the freeze, as prompts show it (YYYY-MM-DD).
    """), "markets.QuestionEntry", ("question_set_id", "position"),
        chained="question_set question position batch reason prices facts",
    ),
    ArchiveTable("evidence", "Snippets about the questions of question sets, as conditions with evidence show them. "
        "Texts belong to their publishers.", columns("""
        entry integer row entry_id - The entry of its question.
        position integer - Its place among the snippets of its question, from 1.
        title text - Its title.
        source text - The publisher, or the host of the address.
        url text - Its address.
        published_at time - As its source states; null if it does not.
        retrieved_at time - When it was retrieved; never after the freeze.
        text text - The snippet.
        sha256 text sha - Hash of the text.
        states_outcome boolean - Does it state what happened? Null until its question has resolved.
    """), "markets.EvidenceSnippet", ("entry__question_set_id", "entry__position", "position"), batch_size=500,
        recomputed="all but states_outcome",
    ),
    ArchiveTable("question_batches", "Questions that are put in one request, in one arm.", columns("""
        id integer row - The batch.
        question_set integer row question_set_id - The set.
        arm text - The condition's name.
        number integer - Its number in the set and arm.
    """), "markets.QuestionBatch",
        chained="question_set arm number",
    ),
    ArchiveTable("elicitations", "Requests of forecasts: a question batch put to a release.", columns("""
        id integer row - The elicitation.
        batch integer row batch_id - The batch.
        methodology text methodology__version - The methodology's version.
        family text family__slug - The family's slug.
        release integer row release_id - The release.
        model_id text release__model_id - The requested model.
        status text - claimed, answered (under seal), completed, failed or missed.
        declined boolean - Was there no readable answer?
        refusals integer - Answers without a valid forecast.
        error text - The last error.
        made_at time - When the answer was recorded.
        nonce text - 32 random bytes in hex, part of its record in the chain.
        sample integer - Its number among the samples, from 1.
        samples integer - How many samples are asked of the release.
    """), "agents.Elicitation",
        recomputed="samples",
        chained="batch methodology family model_id status declined refusals error made_at nonce sample",
    ),
    ArchiveTable("forecasts", "Accepted forecasts: one probability per option.", columns("""
        id integer row - The forecast.
        elicitation integer row elicitation_id - The elicitation.
        call integer row call_id - The call.
        entry integer row entry_id - The entry.
        question integer row question_id - The question.
        family text family__slug - The family's slug.
        release integer row release_id - The release.
        methodology text - The methodology's version.
        arm text - The condition's name.
        probabilities json - Probability by option.
        stated json - The number by option as the model wrote it.
        normalised boolean - Was it divided by its sum, which was not exactly 1?
        rationale text - The model's rationale.
        made_at time - When the answer was recorded.
        samples json - Sample to its probabilities, of those that were read; null of a single one.
        samples_asked integer - How many samples were asked.
        samples_read integer - How many of them could be read.
        log_odds_mean json - Option to the probability of the samples' mean clipped log odds; null of a single one.
        spread number - Standard deviation of the samples' clipped log odds, mean over options; null of one.
        searches integer - Searches that the model made; null where it had none to make.
        excluded text - Why it counts on no board; empty if it does.
    """), "agents.Forecast", batch_size=500,
        recomputed="all but id call",
    ),
    ArchiveTable("refused_forecasts", "Forecasts in answers that broke the rules.", columns("""
        call integer row call_id - The call.
        entry integer row entry_id - The entry.
        stated json - The forecast as the model wrote it.
        reason text - The broken rule.
    """), "agents.RefusedForecast",
        recomputed="all",
    ),
    ArchiveTable("forecast_scores", "Scores of forecasts on resolved questions.", columns("""
        forecast integer row forecast_id - The forecast.
        brier number - Brier score: mean over options, lower is better.
        log number - Natural logarithm of the probability of the outcome, clipped at 1e-6.
        spherical number - Spherical score.
        accuracy number - 1 if the most probable option happened, shared among ties.
        market_brier number - The Brier score of the market's prices on the same question.
        resolved_at time - Time of the question's resolution.
        scored_at time - Time of scoring.
    """), "scoring.ForecastScore",
        recomputed="all but scored_at",
    ),
)  # fmt: skip
