"""Tables of questions, and of what was stated about them."""

from scoring.exports.dictionary import Table, columns

FORECASTS = (
    Table("questions", "What forecasters are asked. Texts belong to their venues.", columns("""
        id integer row - The question.
        source text - Its venue.
        event_key text - What questions of one event share.
        market integer row market_id - The one market it is about.
        options_sha256 text sha - Of the source, the event or market, and the options.
        text text - What is asked.
        rules text - How it resolves.
        category text - Its category.
        exclusive boolean - Does exactly one option happen?
        status text - open, closed, resolved or cancelled.
        closes_at time - Nominal end.
        first_asked_at time - When.
        closed_at time - When.
        resolved_at time - When.
    """), "markets.Question", chunk=500),
    Table("question_options", "Answers to questions.", columns("""
        question integer row question_id - The question.
        index integer - Its place.
        name text - Its name.
        outcome integer row outcome_id - The outcome that pays if it happens.
        happened boolean - Did it?
    """), "markets.QuestionOption", ("question_id", "index")),
    Table("question_sets", "The questions of a day, frozen at once.", columns("""
        id integer row - The set.
        day time - 00:00 UTC of the day.
        methodology text - The methodology's version.
        part integer - Later parts add what had to be asked besides.
        universe integer row universe_id - Whose prices are theirs, on the day of decisions.
        frozen_at time - When.
        sha256 text sha - Of its entries.
    """), "markets.QuestionSet"),
    Table("question_entries", "Questions of sets, with their options' frozen prices.", columns("""
        id integer row - The entry.
        question_set integer row question_set_id - The set.
        question integer row question_id - The question.
        position integer - Its place.
        sheet integer - The number of its sheets.
        reason text - chosen or played.
        prices json - Option to price (mid), ask, no_ask and stale, US dollars a share.
        twin integer row twin_id - The same question at the other venue.
    """), "markets.QuestionEntry", ("question_set_id", "position")),
    Table("question_sheets", "The questions of one request, in one arm.", columns("""
        id integer row - The sheet.
        question_set integer row question_set_id - The set.
        arm text - priced or blind.
        number integer - Its number.
    """), "markets.QuestionSheet"),
    Table("elicitations", "A sheet put to a release.", columns("""
        id integer row - The elicitation.
        sheet integer row sheet_id - The sheet.
        methodology text methodology__version - The methodology's version.
        family text family__slug - The family's slug.
        release integer row release_id - The release.
        model_id text release__model_id - The model asked.
        status text - claimed, completed, failed or missed.
        declined boolean - Nothing said, or nothing readable?
        refusals integer - Answers of which nothing could be taken.
        error text - What went wrong.
        made_at time - The instant of the run.
    """), "agents.Elicitation"),
    Table("forecasts", "Probabilities that were stated.", columns("""
        id integer row - The forecast.
        elicitation integer row elicitation_id - The elicitation.
        call integer row call_id - The call.
        entry integer row entry_id - The entry.
        question integer row question_id - The question.
        family text family__slug - The family's slug.
        release integer row release_id - The release.
        methodology text - The methodology's version.
        arm text - priced or blind.
        probabilities json - Option to probability.
        stated json - Option to what was said.
        normalised boolean - Was the sum not exactly 1?
        rationale text - Why.
        made_at time - When.
    """), "agents.Forecast", chunk=500),
    Table("refused_forecasts", "Questions for which an answer gave nothing that could be taken.", columns("""
        call integer row call_id - The call.
        entry integer row entry_id - The entry.
        stated json - What was said.
        reason text - Why it was refused.
    """), "agents.RefusedForecast"),
    Table("forecast_scores", "Scores of forecasts on questions that resolved.", columns("""
        forecast integer row forecast_id - The forecast.
        brier number - Mean form.
        log number - Natural logarithm of the probability of what happened, clipped at 1e-6.
        spherical number - Spherical score.
        accuracy number - Was the top option right? Ties share.
        market_brier number - The market's on the same question.
        resolved_at time - When the question resolved.
        scored_at time - When this was scored.
    """), "scoring.ForecastScore"),
)  # fmt: skip
