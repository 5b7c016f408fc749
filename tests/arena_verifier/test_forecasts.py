"""Forecast answers: their parsing, lenient in form, and the check of each question's probabilities."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_verifier.answer_texts import Malformed, extract_object
from arena_verifier.forecasts import (
    EXACT_TOLERANCE,
    MAX_FORECASTS,
    SUM_TOLERANCE,
    PromptQuestion,
    StatedForecast,
    check_forecasts,
    parse_cut_forecasts,
    parse_forecasts,
)
from tests.captured import CAPTURED

RACE = PromptQuestion("88", ("Alpha", "Beta", "Other"), exclusive=True)
COIN = PromptQuestion("7", ("YES", "NO"), exclusive=True)
PANEL = PromptQuestion("9", ("rain", "wind"), exclusive=False)
RACE_VECTOR = {"Alpha": 0.5, "Beta": 0.3, "Other": 0.2}
COIN_VECTOR = {"YES": 0.4, "NO": 0.6}


def answer(*forecasts):
    """The text of an answer with these pairs of a question's id and probabilities by option."""
    return json.dumps({"forecasts": [{"question_id": i, "probabilities": p} for i, p in forecasts]})


def yes_answer(value):
    """The text of an answer to question 7 with one probability, that of YES, as raw JSON."""
    return f'{{"forecasts": [{{"question_id": "7", "probabilities": {{"YES": {value}}}}}]}}'


def stated_forecast(question="7", rationale="", **probabilities):
    return StatedForecast(question, tuple((name, Decimal(value)) for name, value in probabilities.items()), rationale)


def check(question, *vectors):
    (result,) = check_forecasts(
        parse_forecasts(answer(*((question.question_id, vector) for vector in vectors))), [question]
    )
    return result


def case(name, *values):
    return pytest.param(*values, id=name)


# Parsing


def test_documented_answer_is_parsed():
    text = (
        '{"forecasts": [{"question_id": "88", "probabilities": {"Alpha": 0.5, "Beta": 0.3, "Other": 0.2},'
        ' "rationale": "Alpha leads."}]}'
    )
    assert parse_forecasts(text) == (stated_forecast("88", "Alpha leads.", Alpha="0.5", Beta="0.3", Other="0.2"),)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        case("a number", "0.40", "0.40"),
        case("a whole number", "1", "1"),
        case("a power of ten", "4e-1", "0.4"),
        case("text", '"0.4"', "0.4"),
        case("padded text", '" 0.4\u00a0"', "0.4"),
        case("percent", '"40%"', "0.4"),
        case("percent set apart", '"12.5 %"', "0.125"),
        case("no percent sign, nothing divided", "40", "40"),
        case("no percent sign in text either", '"40"', "40"),
        case("negative, not checked here", "-0.1", "-0.1"),
    ],
)
def test_probability_is_taken_as_written(value, number):
    (forecast,) = parse_forecasts(yes_answer(value))
    assert forecast.probabilities == (("YES", Decimal(number)),)


@pytest.mark.parametrize(
    "wrapped",
    [
        case("a fence", "```json\n{}\n```"),
        case("prose", "I lean to no.\n{}\nThat is all."),
        case("thinking", '<think>{{"forecasts": []}}</think>{}'),
        case("repeated", "{0}\n{0}"),
    ],
)
def test_text_around_the_object_is_ignored(wrapped):
    assert parse_forecasts(wrapped.format(yes_answer("0.4"))) == (stated_forecast(YES="0.4"),)


def test_trailing_commas_and_numeric_ids_are_accepted():
    text = '{"forecasts": [{"question_id": 7, "probabilities": {"YES": 0.4, "NO": 0.6,},},],}'
    assert parse_forecasts(text) == (stated_forecast(YES="0.4", NO="0.6"),)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        case("no object", "I say 40%.", "no JSON object"),
        case("two objects", f"{yes_answer('0.4')} {yes_answer('0.5')}", "two different JSON objects"),
        case("truncated", yes_answer("0.4")[:-2], "never closed"),
        case("no forecasts", '{"probabilities": {"YES": 0.4}}', "forecasts is missing: it must be a list"),
        case("null forecasts", '{"forecasts": null}', "forecasts must not be empty"),
        case("no forecast", '{"forecasts": []}', "forecasts must not be empty"),
        case("an object of forecasts", '{"forecasts": {"7": {}}}', "forecasts must be a list, not an object"),
        case("a forecast that is a number", '{"forecasts": [0.4]}', "forecasts[0] must be an object, not 0.4"),
        case("no question", '{"forecasts": [{"probabilities": {}}]}', "forecasts[0].question_id is missing"),
        case("no probabilities", '{"forecasts": [{"question_id": 7}]}', "forecasts[0].probabilities is missing"),
        case(
            "a list of probabilities",
            '{"forecasts": [{"question_id": 7, "probabilities": [0.4, 0.6]}]}',
            "forecasts[0].probabilities must be an object, not a list",
        ),
        case("a true probability", yes_answer("true"), 'forecasts[0].probabilities["YES"] must be a number, not true'),
        case("a null probability", yes_answer("null"), 'probabilities["YES"] must be a number, not null'),
        case("a nested probability", yes_answer('{"p": 0.4}'), "must be a number, not an object"),
        case("a word", yes_answer('"likely"'), 'must be a plain number such as 0.4 or 40%, not "likely"'),
        case("a range", yes_answer('"0.3-0.4"'), 'not "0.3-0.4"'),
        case("odds", yes_answer('"2:1"'), 'not "2:1"'),
        case("a comma for a point", yes_answer('"0,4"'), 'not "0,4"'),
        case("dollars", yes_answer('"$0.40"'), 'not "$0.40"'),
        case("NaN", yes_answer("NaN"), "NaN is not a JSON number"),
        case("NaN as text", yes_answer('"NaN"'), 'not "NaN"'),
        case("an option given twice", yes_answer('0.4, "YES": 0.5'), '"YES" is given twice with different values'),
        case(
            "a rationale of numbers",
            yes_answer("0.4")[:-3] + ', "rationale": 4}]}',
            "forecasts[0].rationale must be text",
        ),
        case("too many", answer(*[(k, {}) for k in range(MAX_FORECASTS + 1)]), "at most 1000 forecasts, not 1001"),
    ],
)
def test_malformed_answer_is_refused_with_its_reason(text, reason):
    with pytest.raises(Malformed) as refusal:
        parse_forecasts(text)
    assert reason in refusal.value.reason
    assert "\n" not in refusal.value.reason


# Checking


def test_complete_vector_is_accepted_as_stated():
    result = check(RACE, {"Alpha": "50%", "Beta": "0.30", "Other": 0.2})
    assert result.probabilities == {"Alpha": 0.5, "Beta": 0.3, "Other": 0.2}
    assert result.stated == {"Alpha": "0.50", "Beta": "0.30", "Other": "0.2"}
    assert (result.normalised, result.reason) == (False, "")


def test_results_are_in_the_order_of_questions_without_unknown_ones():
    forecasts = parse_forecasts(answer(("9", {"rain": 0.9, "wind": 0.8}), ("1", {"YES": 1}), ("88", RACE_VECTOR)))
    results = check_forecasts(forecasts, [RACE, COIN, PANEL])
    assert [result.question_id for result in results] == ["88", "7", "9"]
    assert [result.reason for result in results] == ["", "question 7: no forecast", ""]


def test_option_names_match_by_casefold_if_unambiguous():
    result = check(COIN, {" yes": 0.4, "No": 0.6})
    assert result.probabilities == {"YES": 0.4, "NO": 0.6}
    assert result.stated == {"YES": "0.4", "NO": "0.6"}


def test_exact_name_takes_precedence_over_casefold():
    question = PromptQuestion("5", ("US", "us"), exclusive=True)
    assert check(question, {"us": 0.1, "US": 0.9}).probabilities == {"US": 0.9, "us": 0.1}
    assert check(question, {"Us": 0.1, "US": 0.9}).reason == 'question 5: "Us" may mean 2 of its options'


@pytest.mark.parametrize(
    ("vector", "reason"),
    [
        case("one side only", {"YES": 0.4}, '"NO" has no probability'),
        case("no probabilities", {}, '"YES" has no probability'),
        case("an unknown option", {"YES": 0.4, "NO": 0.6, "MAYBE": 0}, '"MAYBE" is none of its options'),
        case("an option twice", {"YES": 0.4, "NO": 0.6, "no": 0.6}, '"NO" is named twice'),
        case("percents without a sign", {"YES": 40, "NO": 60}, '"YES" is given 40, which is outside [0, 1]'),
        case("negative", {"YES": -0.1, "NO": 1.1}, '"YES" is given -0.1, which is outside [0, 1]'),
        case("a tiny negative", {"YES": -1e-7, "NO": 1}, '"YES" is given -1E-7, which is outside [0, 1]'),
        case("above one", {"YES": 0, "NO": "101%"}, '"NO" is given 1.01, which is outside [0, 1]'),
        case("far too much", {"YES": 0.6, "NO": 0.6}, "the probabilities of its 2 options sum to 1.2, not 1"),
        case("just too little", {"YES": "0.479999", "NO": 0.5}, "sum to 0.979999, not 1"),
        case("all zero", {"YES": 0, "NO": 0}, "sum to 0, not 1"),
    ],
)
def test_invalid_vector_is_refused_with_question_and_option(vector, reason):
    result = check(COIN, vector)
    assert result.reason.startswith("question 7: ")
    assert reason in result.reason
    assert result.probabilities is None
    assert result.normalised is False
    assert set(result.stated) == set(vector)


@pytest.mark.parametrize(
    ("vector", "normalised"),
    [
        case("exactly one", {"YES": 0.4, "NO": 0.6}, False),
        case("rounded thirds of a binary", {"YES": "0.3333333", "NO": "0.6666666"}, False),
        case("a hundredth short", {"YES": 0.33, "NO": 0.66}, True),
        case("at the upper limit", {"YES": 0.42, "NO": 0.6}, True),
        case("at the lower limit", {"YES": 0.38, "NO": 0.6}, True),
    ],
)
def test_small_error_of_the_sum_is_normalised_and_marked(vector, normalised):
    result = check(COIN, vector)
    assert result.normalised is normalised
    assert sum(result.probabilities.values()) == pytest.approx(1, abs=EXACT_TOLERANCE)
    ratio = float(vector["YES"]) / float(vector["NO"])
    assert result.probabilities["YES"] / result.probabilities["NO"] == pytest.approx(ratio)
    assert result.stated == {option: str(value) for option, value in vector.items()}


def test_options_that_are_not_exclusive_need_no_sum():
    result = check(PANEL, {"rain": 0.9, "wind": 0.8})
    assert (result.probabilities, result.normalised) == ({"rain": 0.9, "wind": 0.8}, False)


def test_same_vector_twice_counts_once():
    result = check(COIN, COIN_VECTOR, {"no": "60%", "yes": "0.40"})
    assert result.probabilities == COIN_VECTOR


def test_two_vectors_for_one_question_are_refused():
    assert check(COIN, COIN_VECTOR, {"YES": 0.5, "NO": 0.5}).reason == 'question 7: "YES" is given as 0.4 and as 0.5'
    assert check(COIN, COIN_VECTOR, {"YES": 0.4}).reason == 'question 7: "NO" has no probability'


def test_invalid_forecast_does_not_affect_the_others():
    race, coin = check_forecasts(parse_forecasts(answer(("88", RACE_VECTOR), ("7", {"YES": 0.4}))), [RACE, COIN])
    assert race.probabilities == RACE_VECTOR
    assert coin.probabilities is None


def test_reason_is_one_short_line_for_any_option_name():
    result = check(PromptQuestion("5", ("A\nB" * 100, "C"), exclusive=True), {"C": 1})
    assert "\n" not in result.reason
    assert len(result.reason) < 150


# Properties

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=10)
options = st.lists(names, min_size=2, max_size=6, unique_by=lambda name: name.strip().casefold())
parts = st.decimals(min_value=0, max_value=1, places=6)


@given(options, st.data())
def test_vector_that_sums_to_one_is_accepted_exactly(option_names, data):
    weights = data.draw(
        st.lists(st.integers(0, 100), min_size=len(option_names), max_size=len(option_names)).filter(any)
    )
    shares = [Decimal(weight) / sum(weights) for weight in weights]
    result = check_forecasts(
        parse_forecasts(answer(("5", dict(zip(option_names, map(str, shares), strict=True))))),
        [PromptQuestion("5", tuple(option_names), exclusive=True)],
    )[0]
    assert result.reason == ""
    assert list(result.probabilities.items()) == [(n, float(p)) for n, p in zip(option_names, shares, strict=True)]


@given(st.lists(parts, min_size=1, max_size=4), st.integers(1, 4), st.booleans())
def test_every_result_is_a_distribution_or_a_reason(values, count, exclusive):
    question = PromptQuestion("5", tuple("ABCD"[:count]), exclusive)
    (result,) = check_forecasts([StatedForecast("5", tuple(zip("ABCD", values, strict=False)), "why")], [question])
    assert (result.probabilities is None) == (result.reason != "")
    assert result.rationale == "why"
    off = abs(sum(values) - 1)
    if len(values) != count:
        assert result.probabilities is None
    elif not exclusive:
        assert list(result.probabilities.values()) == [float(value) for value in values]
    else:
        assert (result.probabilities is None) == (off > SUM_TOLERANCE)
        if result.probabilities is not None:
            assert abs(sum(result.probabilities.values()) - 1) <= EXACT_TOLERANCE
            assert all(0 <= p <= 1 for p in result.probabilities.values())
            assert result.normalised == (off >= Decimal(str(EXACT_TOLERANCE))) or off == Decimal(str(EXACT_TOLERANCE))


@given(st.lists(st.builds(StatedForecast, names, st.lists(st.tuples(names, parts)).map(tuple), names)).map(tuple))
def test_stored_forecasts_are_read_back_unchanged(forecasts):
    stored = json.loads(json.dumps([forecast.as_json() for forecast in forecasts]))
    assert tuple(map(StatedForecast.from_json, stored)) == forecasts


# Answers that break off

WHOLE = answer(("1", COIN_VECTOR), ("2", COIN_VECTOR), ("3", COIN_VECTOR)).removesuffix("]}")
FAULTY = '{"question_id": "4", "probabilities": 0.4}'


@pytest.mark.parametrize(
    ("text", "questions"),
    [
        case("between forecasts", WHOLE, "123"),
        case("in a text with braces", WHOLE + ', {"question_id": "}}}}', "123"),
        case("in a forecast", WHOLE + ', {"question_id": "4", "probabilities": {"YES": 1}', "123"),
        case("after a faulty forecast", f"{WHOLE}, {FAULTY}, {FAULTY}, {{", "123"),
        case("after a faulty last forecast", f"{WHOLE}, {FAULTY}]}}", "123"),
        case("in prose after thinking", f"<think>{WHOLE}</think> Here: {WHOLE}, {{", "123"),
        case("in a repetition", f"{WHOLE}]}} Again: {WHOLE[:-3]}", "123"),
        case("in the first forecast", '{"forecasts": [{"question_id": "1"', ""),
        case("before any", "I think", ""),
    ],
)
def test_whole_forecasts_before_a_cut_are_kept(text, questions):
    assert [forecast.question_id for forecast in parse_cut_forecasts(text)] == list(questions)


@pytest.mark.parametrize("last", ["{}, " * 40, '{"a": ' * 40 + "}" * 40, '"' + "}" * 40, ""])
def test_a_cut_answer_is_parsed_few_times(last, monkeypatch):
    parts = []
    read = extract_object
    monkeypatch.setattr(
        "arena_verifier.forecasts.extract_object", lambda *arguments: parts.append(1) or read(*arguments)
    )
    parse_cut_forecasts(f"{WHOLE}, {last}")
    assert len(parts) <= 8


pieces = st.sampled_from(
    ["{", "}", "[", "]", '"', ",", ":", "\ud800", "\0", "NaN", "null", "<think>", '"forecasts":', '"question_id":']
    + ['"probabilities":', '"7"', "0.4", '"40%"', yes_answer("0.4"), answer(("7", COIN_VECTOR))]
)


@given(st.text() | st.lists(pieces, max_size=30).map("".join))
def test_arbitrary_text_is_parsed_or_malformed(text):
    try:
        forecasts = parse_forecasts(text)
    except Malformed as refusal:
        refusal.reason.encode()
    else:
        for result in check_forecasts(forecasts, [COIN, RACE]):
            json.dumps(result.stated).encode()
            (result.reason + result.rationale).encode()


@pytest.mark.captured
def test_real_answers_to_another_prompt_are_all_refused_with_a_reason():
    """1,800 answers that give one confidence in prose: none of them states a vector, and none is guessed."""
    files = sorted(CAPTURED.glob("forecasts/kalshibench/*.jsonl"))
    texts = [json.loads(line)["raw_output"] for path in files for line in path.open(encoding="utf-8")]
    assert len(texts) == 1_800
    for text in texts:
        with pytest.raises(Malformed) as refusal:
            parse_forecasts(text or "")
        assert refusal.value.reason
