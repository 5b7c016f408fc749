import json
from dataclasses import asdict
from decimal import Decimal
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from arena_verifier.answer_texts import MAX_CHARACTERS, Malformed, extract_object
from arena_verifier.decisions import Answer, Bet, Sell, parse_answer
from tests.captured import CAPTURED

HOLD = '{"action": "HOLD"}'
ONE_BET = '{"market_id": "7", "side": "YES", "amount": 500}'
BET = f'{{"action": "BET", "bets": [{ONE_BET}]}}'
SELL = '{"action": "SELL", "sells": [{"position_id": "3", "percentage": 50}]}'


def bet(amount="500", *, market="7", side="YES"):
    return Answer("BET", bets=(Bet(market, side, Decimal(amount)),))


def held(reasoning=""):
    return Answer("HOLD", reasoning=reasoning)


def sold(percentage="50", *, position="3"):
    return Answer("SELL", sells=(Sell(position, Decimal(percentage)),))


def betting(amount='"500"', *, market='"7"', side='"YES"'):
    """The text of an answer with one bet, its values as raw JSON."""
    return f'{{"action": "BET", "bets": [{{"market_id": {market}, "side": {side}, "amount": {amount}}}]}}'


def selling(percentage="50", *, position='"3"'):
    return f'{{"action": "SELL", "sells": [{{"position_id": {position}, "percentage": {percentage}}}]}}'


def holding(reasoning):
    return f'{{"action": "HOLD", "reasoning": {reasoning}}}'


def case(name, text, expected):
    return pytest.param(text, expected, id=name)


ACCEPTED = [
    # What stands around the object
    case("a bare hold", HOLD, held()),
    case("a bare bet", BET, bet()),
    case("a bare sell", SELL, sold()),
    case("a json fence", f"```json\n{BET}\n```", bet()),
    case("a fence without a language", f"```\n{BET}\n```", bet()),
    case("a fence in another language", f"~~~JavaScript\n{BET}\n~~~", bet()),
    case("a fence with braces in its tag", f"```{{.json}}\n{BET}\n```", bet()),
    case("a fence that never closes", f"```json\n{BET}", bet()),
    case("prose before and after", f'I\'d bet, 5" of snow.\n\n{BET}\nThat\'s "all".', bet()),
    case("closed thinking", f"<think>Hold? {HOLD} No.</think>{BET}", bet()),
    case("thinking after the object", f"{BET}<thinking>Was {HOLD} better?</thinking>", bet()),
    case("a reasoning block in capitals", f"<REASONING>{HOLD}</Reasoning>{BET}", bet()),
    case("thinking that breaks off a draft", f'<think>{{"action": "BET", "be</think>{HOLD}', held()),
    case("thinking inside thinking", f"<think>a<think>b</think>{HOLD}</think>{BET}", bet()),
    case("thinking the template opened", f"Perhaps {HOLD}.</think>\n{BET}", bet()),
    case("template thinking with a broken draft", f'Say {{"action": ... or {{</think>{BET}', bet()),
    case("template thinking closed in capitals", f'Say {{"action": </THINK>{BET}', bet()),
    case("a closing tag inside the reasoning", holding('"</think>"'), held("</think>")),
    case("a whole block inside the reasoning", holding('"<think>x</think>"'), held("<think>x</think>")),
    case("a byte order mark", f"\ufeff{HOLD}", held()),
    case("zero-width blanks between the words", '{\u200b"action"\u2060:\ufeff"HOLD"\u00a0}', held()),
    case("braces in prose", f"The set {{maybe}} or {{YES, NO}}.\n{HOLD}", held()),
    case("a quoted set in prose", f'Sides {{"YES", "NO"}}.\n{HOLD}', held()),
    case("brackets in prose", f"As noted [1], p in [0.4, 0.6) and [[1]](link): {HOLD}", held()),
    case("the same object twice", f"{BET}\nAgain:\n{BET}", bet()),
    case(
        "the same object reordered",
        f'{SELL} {{"sells": [{{"percentage": 50.0, "position_id": "3"}}], "action": "SELL"}}',
        sold(),
    ),
    # The object itself
    case("trailing commas", '{"action": "BET", "bets": [{"market_id": "7", "side": "YES", "amount": 500,},],}', bet()),
    case("a trailing comma before a line break", '{"action": "HOLD",\n}', held()),
    case("a comma and a bracket inside text", holding('"a,] b,}"'), held("a,] b,}")),
    case("braces and escaped quotes inside text", holding('"{ \\" } } \\\\"'), held('{ " } } \\')),
    case("raw line breaks inside text", holding('"one\n\ttwo"'), held("one\n\ttwo")),
    case("an object quoted inside the reasoning", holding(json.dumps(BET)), held(BET)),
    case("a key said twice alike", '{"action": "HOLD", "action": "HOLD"}', held()),
    case("unknown keys", '{"action": "HOLD", "confidence": 0.3, "plan": {"bets": [1]}}', held()),
    case("null reasoning", holding("null"), held()),
    case("NUL and half a pair in the reasoning", holding('"a\\u0000\\ud83d"'), held("a\ufffd\ufffd")),
    case("a hold with empty lists", '{"action": "HOLD", "bets": [], "sells": null}', held()),
    case("a bet with empty sells", f'{BET[:-1]}, "sells": []}}', bet()),
    case("a sell with null bets", f'{SELL[:-1]}, "bets": null}}', sold()),
    case("the action in lower case", '{"action": "hold"}', held()),
    case("the action mixed and padded", '{"action": " Hold\\n"}', held()),
    case(
        "two bets in order",
        '{"action": "BET", "bets": [{"market_id": 2, "side": "NO", "amount": 60},'
        ' {"market_id": 1, "side": "YES", "amount": 50}]}',
        Answer("BET", bets=(Bet("2", "NO", Decimal(60)), Bet("1", "YES", Decimal(50)))),
    ),
    # Fields
    case("a side verbatim", betting(side='"yes"'), bet(side="yes")),
    case("a padded side", betting(side='"\u00a0Los Angeles Lakers "'), bet(side="Los Angeles Lakers")),
    case("a whole-number market", betting(market="1204"), bet(market="1204")),
    case("a padded market", betting(market='" 1204\u200b"'), bet(market="1204")),
    case("a whole-number position", selling(position="31"), sold(position="31")),
    case("an unknown market is not judged", betting(market='"no such"'), bet(market="no such")),
    case("a number as text", betting('"500.00"'), bet("500.00")),
    case("dollars", betting('"$500"'), bet()),
    case("dollars and a blank", betting('"$ 500.50 "'), bet("500.50")),
    case("a currency after it", betting('"500 USD"'), bet()),
    case("a currency in lower case", betting('"500usd"'), bet()),
    case("groups with decimals", betting('"1,250.00"'), bet("1250.00")),
    case("dollars in millions", betting('"$1,250,000.50"'), bet("1250000.50")),
    case("a fraction as written", betting("0.1"), bet("0.1")),
    case("more places than a float keeps", betting("512.123456789012345678"), bet("512.123456789012345678")),
    case("a power of ten", betting("5e2"), bet("500")),
    case("a negative amount is not judged", betting("-5"), bet("-5")),
    case("a negative text is not judged", betting('"-$5"'), bet("-5")),
    case("zero is not judged", betting("0"), bet("0")),
    case("a huge amount is not judged", betting("1e400"), bet("1e400")),
    case("a percentage with its sign", selling('"50%"'), sold()),
    case("a percentage as text", selling('"50"'), sold()),
    case("a fractional percentage", selling("33.5"), sold("33.5")),
    case("a percentage set apart", selling('"33.5 %"'), sold("33.5")),
    case("a percentage beyond 100 is not judged", selling("250"), sold("250")),
    case(
        "as many bets as allowed",
        BET.replace(ONE_BET, ", ".join([ONE_BET] * 200)),
        Answer("BET", bets=bet().bets * 200),
    ),
]

REFUSED = [
    # No object, or no certain one
    case("nothing", "", "no JSON object in the answer"),
    case("only prose", "I would rather hold this week.", "no JSON object in the answer"),
    case("only braces in prose", "{maybe}", "no JSON object in the answer"),
    case("only an action", '"HOLD"', "no JSON object"),
    case("a Python dict", "{'action': 'HOLD'}", "no JSON object"),
    case("smart quotes", "{“action”: “HOLD”}", "no JSON object"),
    case("bare keys", '{action: "HOLD"}', "no JSON object"),
    case("an object inside a Python dict", f"{{'answer': {HOLD}}}", "line 1 is not valid JSON"),
    case("an object inside doubled braces", f"{{{HOLD}}}", "line 1 is not valid JSON"),
    case("an object only in thinking", f"<think>{BET}</think>", "no JSON object outside the thinking"),
    case("an object only in template thinking", f"{BET}</think> Done.", "outside the thinking"),
    case("thinking that never closes", f"<think>Perhaps {BET}", "begins with <think> is never closed"),
    case("two different objects", f"{HOLD}\n{BET}", "two different JSON objects"),
    case("two amounts", f"{betting('500')} or {betting('600')}", "two different JSON objects"),
    case("true is not 1", '{"action": "HOLD", "x": 1} {"action": "HOLD", "x": true}', "two different"),
    case("an empty object beside it", f"{{}} {HOLD}", "two different JSON objects"),
    case("an array", f"[{HOLD}]", "must be a JSON object, not an array"),
    case("an array of two", f"[{HOLD}, {HOLD}]", "must be a JSON object, not an array"),
    case("an array that starts with a scalar", f'[1, "]", {HOLD}]', "must be a JSON object, not an array"),
    case("an array broken off", f"[{HOLD},", "the array that opens on line 1 is never closed"),
    case("a wrapped object", f'{{"answer": {HOLD}}}', "action is missing"),
    case("an object broken off", BET[:-1], "the object that opens on line 1 is never closed"),
    case("broken off after an inner object", f'Bet:\n{{"plan": {HOLD}, "bets": [', "line 2 is never closed"),
    case("broken off inside text", f'{{"plan": {HOLD}, "reasoning": "since }} and', "never closed"),
    case("a broken object before a whole one", f'{{"action": BET}}\n{HOLD}', "line 1 is not valid JSON"),
    case("a broken object, then thinking", f'{{"action": BET}}<think></think>{HOLD}', "not valid JSON"),
    case("a comment", '{"action": "HOLD", // calm\n"bets": []}', "line 1 is not valid JSON"),
    case("a missing comma", 'So:\n{"action": "HOLD"\n"bets": []}', "line 3 is not valid JSON: Expecting ','"),
    case("two trailing commas", '{"action": "HOLD",,}', "not valid JSON"),
    case("a comma in an empty list", '{"action": "HOLD", "bets": [,]}', "not valid JSON"),
    case("a blank inside a number", betting("5\u200b00"), "not valid JSON"),
    case("NaN", betting("NaN"), "NaN is not a JSON number"),
    case("Infinity", betting("Infinity"), "Infinity is not a JSON number"),
    case("-Infinity in an unknown key", '{"action": "HOLD", "x": [-Infinity]}', "-Infinity is not"),
    case("a number of endless digits", betting("9" * 5000), "more than 1,000 digits"),
    case("a number of endless zeros", betting("1e999999999"), "more than 1,000 digits"),
    case("a number no decimal can hold", betting("1e99999999999999999999"), "more than 1,000 digits"),
    case("a key said twice differently", '{"action": "HOLD", "action": "BET"}', '"action" is given twice'),
    case("an amount said twice", betting('5, "amount": 6'), '"amount" is given twice with different'),
    case("a deep key said twice", '{"action": "HOLD", "x": [{"z": 1, "z": true}]}', '"z" is given twice'),
    case("absurd nesting", '{"action":' * 5_000 + "1" + "}" * 5_000, "nested too deeply"),
    case("absurd nesting of lists", '{"x":' + "[" * 5_000 + "]" * 5_000 + "}", "nested too deeply"),
    case("half a million objects", "{}" * 499_000, "more than 10,000 objects and lists"),
    case("a text beyond all measure", HOLD + " " * MAX_CHARACTERS, "longer than 1,000,000 characters"),
    # The action and its lists
    case("no action", '{"bets": []}', 'action is missing: it must be "BET", "SELL" or "HOLD"'),
    case("an unknown action", '{"action": "BUY"}', 'action must be "BET", "SELL" or "HOLD", not "BUY"'),
    case("two actions", '{"action": ["BET", "SELL"]}', "not a list"),
    case("a null action", '{"action": null}', "action must be"),
    case("a bet without bets", '{"action": "BET"}', 'bets must not be empty when action is "BET"'),
    case("a bet with an empty list", '{"action": "BET", "bets": []}', "bets must not be empty"),
    case("a sell without sells", '{"action": "SELL", "sells": null}', "sells must not be empty"),
    case("a hold with bets", BET.replace("BET", "HOLD"), 'bets must be empty when action is "HOLD"'),
    case("a hold with sells", SELL.replace("SELL", "HOLD"), 'sells must be empty when action is "HOLD"'),
    case("a bet with sells", f"{BET[:-1]}, {SELL[19:]}", 'sells must be empty when action is "BET"'),
    case("a sell with bets", f"{SELL[:-1]}, {BET[18:]}", 'bets must be empty when action is "SELL"'),
    case("bets as an object", '{"action": "BET", "bets": {}}', "bets must be a list, not an object"),
    case("sells as text", '{"action": "HOLD", "sells": ""}', 'sells must be a list, not ""'),
    case("a bet that is text", '{"action": "BET", "bets": ["YES"]}', 'bets[0] must be an object, not "YES"'),
    case("a bet in a nested list", '{"action": "BET", "bets": [[]]}', "bets[0] must be an object"),
    case(
        "one bet too many",
        BET.replace(ONE_BET, ", ".join([ONE_BET] * 201)),
        "bets must hold at most 200 instructions, not 201",
    ),
    case("reasoning as a list", holding('["calm"]'), "reasoning must be text, not a list"),
    case("reasoning as a number", holding("1.50"), "reasoning must be text, not 1.50"),
    # Fields
    case("no market", '{"action": "BET", "bets": [{"side": "NO", "amount": 9}]}', "bets[0].market_id is missing"),
    case("no side", '{"action": "BET", "bets": [{"market_id": 7, "amount": 9}]}', "bets[0].side is missing"),
    case("no amount", '{"action": "BET", "bets": [{"market_id": 7, "side": "NO"}]}', "bets[0].amount is missing"),
    case("no position", '{"action": "SELL", "sells": [{"percentage": 5}]}', "position_id is missing"),
    case("no percentage", '{"action": "SELL", "sells": [{"position_id": 3}]}', "percentage is missing"),
    case(
        "the second bet at fault",
        BET.replace("}]", '}, {"market_id": 7, "side": "NO", "amount": true}]'),
        "bets[1].amount must be a number, not true",
    ),
    case("a null market", betting(market="null"), "market_id must be text or a whole number, not null"),
    case("a true market", betting(market="true"), "market_id must be text or a whole number, not true"),
    case("a fractional market", betting(market="1204.0"), "must be text or a whole number, not 1204.0"),
    case("a blank market", betting(market='" "'), "bets[0].market_id must not be empty"),
    case("a list of positions", selling(position="[3]"), "sells[0].position_id must be text"),
    case("a true side", betting(side="true"), "bets[0].side must be text, not true"),
    case("a null side", betting(side="null"), "bets[0].side must be text, not null"),
    case("a blank side", betting(side='"\u200b"'), "bets[0].side must not be empty"),
    case("a null amount", betting("null"), "bets[0].amount must be a number, not null"),
    case("a false amount", betting("false"), "bets[0].amount must be a number, not false"),
    case("an amount in an object", betting('{"usd": 5}'), "bets[0].amount must be a number, not an object"),
    case(
        "an amount in words",
        betting('"five hundred"'),
        'bets[0].amount must be a plain number such as 500 or 500.00, not "five hundred"',
    ),
    case("an empty amount", betting('""'), 'not ""'),
    case("a comma that may be a point", betting('"1,250"'), 'not "1,250"'),
    case("groups of the wrong size", betting('"12,50.00"'), 'not "12,50.00"'),
    case("a continental amount", betting('"1.250,00"'), 'not "1.250,00"'),
    case("a range", betting('"500-600"'), 'not "500-600"'),
    case("an amount in percent", betting('"50%"'), 'not "50%"'),
    case("a power of ten as text", betting('"1e3"'), 'not "1e3"'),
    case("euros", betting('"€500"'), 'not "€500"'),
    case("NaN as text", betting('"NaN"'), 'not "NaN"'),
    case("digits of another script", betting('"\u0665\u0660\u0660"'), "amount must be a plain number"),
    case("digits set apart", betting('"1 250"'), 'not "1 250"'),
    case("an endless amount as text", betting(f'"{"9" * 5000}"'), "bets[0].amount must be a plain number"),
    case("a percentage in dollars", selling('"$50"'), "sells[0].percentage must be a plain number such as 50"),
    case("a percentage in words", selling('"half"'), 'not "half"'),
    case("a true percentage", selling("true"), "sells[0].percentage must be a number, not true"),
]


@pytest.mark.parametrize(("text", "answer"), ACCEPTED)
def test_unambiguous_answer_is_accepted(text, answer):
    assert parse_answer(text) == answer


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_ambiguous_answer_is_refused_with_its_reason(text, reason):
    with pytest.raises(Malformed) as refusal:
        parse_answer(text)
    assert reason in refusal.value.reason
    assert str(refusal.value) == refusal.value.reason
    assert "\n" not in refusal.value.reason
    assert len(refusal.value.reason) < 150


def test_reason_of_a_bet_is_read_where_it_is_asked_for():
    reasoned = f'{ONE_BET[:-1]}, "reason": "stale"}}'
    assert parse_answer(BET.replace(ONE_BET, reasoned)).bets[0].reason is None
    assert parse_answer(BET.replace(ONE_BET, reasoned), bet_reasons=True).bets[0].reason == "stale"
    assert parse_answer(BET, bet_reasons=True).bets[0].reason == ""
    with pytest.raises(Malformed, match=r"^bets\[0\].reason must be text, not 7$"):
        parse_answer(BET.replace(ONE_BET, f'{ONE_BET[:-1]}, "reason": 7}}'), bet_reasons=True)


def test_amount_keeps_its_decimal_places():
    assert str(parse_answer(betting("500.10")).bets[0].amount) == "500.10"


def test_object_keeps_integers_and_exact_fractions_apart():
    read = extract_object('{"a": 1, "b": 0.30, "c": "0.3"}')
    assert read == {"a": 1, "b": Decimal("0.30"), "c": "0.3"}
    assert [type(value) for value in read.values()] == [int, Decimal, str]


def test_object_of_any_shape_can_be_read():
    text = '{"forecasts": [{"question_id": "88"}]}'
    assert extract_object(f"Here: {text}") == json.loads(text)


@pytest.mark.parametrize(
    "piece",
    ["{", "[", "[[", '{"', "{a}", '{"a":', '["', "[1,", '",[",', '{"\\', "{,", " "]
    + ["<think>", "</think>", "{</think>"],
)
def test_a_megabyte_of_repeated_text_is_refused_fast(piece):
    began = process_time()
    with pytest.raises(Malformed):
        parse_answer(piece * (MAX_CHARACTERS // len(piece)))
    assert process_time() - began < 10, "reading takes more than linear time (quadratic would be minutes)"


# Properties

storable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
names = st.from_regex(r"[A-Za-z0-9](?:[\w {}\[\]\",<>/-]{0,20}[A-Za-z0-9])?", fullmatch=True)
numbers = st.decimals(min_value=-(10**9), max_value=10**9, allow_nan=False, places=2)
bets = st.builds(Bet, market_id=names, side=names, amount=numbers)
sells = st.builds(Sell, position_id=names, percentage=numbers)
answers = st.one_of(
    st.builds(Answer, st.just("HOLD"), reasoning=storable),
    st.builds(Answer, st.just("BET"), bets=st.lists(bets, min_size=1).map(tuple), reasoning=storable),
    st.builds(Answer, st.just("SELL"), sells=st.lists(sells, min_size=1).map(tuple), reasoning=storable),
)
prose = st.text(st.characters(exclude_characters="{[<"), max_size=40)
drafts = st.text(st.characters(exclude_characters="<"), max_size=40) | st.sampled_from([HOLD, BET, BET[:40]])
thinking = st.one_of(
    st.just(""),
    st.builds("<{0}>{1}</{0}>".format, st.sampled_from(["think", "Thinking", "reasoning"]), drafts),
    st.builds("{0}</think>".format, prose),
)
fences = st.sampled_from(["{0}", "```\n{0}\n```", "```json\n{0}\n```", "~~~python\n{0}"])


def as_json(answer, **style):
    content = {"action": answer.action, "reasoning": answer.reasoning}
    if answer.bets:
        content["bets"] = [asdict(bet) for bet in answer.bets]
    if answer.sells:
        content["sells"] = [asdict(sell) for sell in answer.sells]
    return json.dumps(content, default=str, **style)


@given(answers, st.booleans(), st.sampled_from([None, 2]), thinking, prose, fences, prose)
def test_answer_is_found_in_any_wrapping(answer, ascii_only, indent, thought, before, fence, after):
    fenced = fence.format(as_json(answer, ensure_ascii=ascii_only, indent=indent))
    assert parse_answer(f"{thought}{before}{fenced}{after}") == answer


@given(answers, st.data())
def test_truncated_answer_is_malformed(answer, data):
    text = as_json(answer, ensure_ascii=False)
    with pytest.raises(Malformed):
        parse_answer(text[: data.draw(st.integers(0, len(text) - 1))])


pieces = st.sampled_from(
    ["{", "}", "[", "]", '"', ",", ":", "\\", "\n", " ", "\u200b", "\ud800", "\0", "NaN", "1e5", "-", "0"]
    + ["9" * 1200, "null", "true", "```json", "<think>", "</think>", "</reasoning>"]
    + ['"action"', '"HOLD"', '"BET"', '"bets":', '"amount":', HOLD, BET, SELL]
)


@given(st.text() | st.lists(pieces, max_size=30).map("".join))
@example('{"action": "HOLD", "\ud800": 1, "\ud800": 2}')
def test_arbitrary_text_is_an_answer_or_malformed(text):
    try:
        answer = parse_answer(text)
    except Malformed as refusal:
        refusal.reason.encode()
    else:
        answer.reasoning.encode()


def captured_texts():
    for path in sorted(CAPTURED.glob("forecasts/kalshibench/*.jsonl")):
        yield from (json.loads(line)["raw_output"] for line in path.open(encoding="utf-8"))
    for line in (CAPTURED / "openrouter" / "chat.jsonl").open(encoding="utf-8"):
        body = json.loads(line)["body"]
        for choice in body.get("choices", []) if isinstance(body, dict) else []:
            yield choice.get("message", {}).get("content")


@pytest.mark.captured
def test_captured_model_answers_are_parsed_or_malformed():
    texts = [text for text in captured_texts() if isinstance(text, str)]
    assert len(texts) > 1_000
    read = 0
    for text in texts:
        try:
            parse_answer(text)
        except Malformed as refusal:
            read += refusal.reason.startswith("action is missing")  # an object, though no trading answer
    assert read > 0
