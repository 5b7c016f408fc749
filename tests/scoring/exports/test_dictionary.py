"""Columns of an archive that are declared by the name of a model's field."""

import pytest
from django.core.exceptions import FieldDoesNotExist

from agents.models import Agent, Receipt, Trade
from scoring.exports.dictionary import record_table
from tests.arena_site.api_promises import openapi_document


def test_field_gives_its_column_kind_unit_meaning_and_path() -> None:
    names = "id agent side=outcome__side market=outcome__market kind shares price amount implied_confidence executed_at"
    table = record_table(Trade, "trades", "Purchases and sales.", names)
    columns = [(column.name, column.kind, column.unit, column.path, column.meaning) for column in table.columns]
    assert columns == [
        ("id", "integer", "id", "id", "The trade."),
        ("agent", "integer", "id", "agent_id", "The agent."),
        ("side", "text", "", "outcome__side", "The outcome's side."),
        ("market", "integer", "id", "outcome__market_id", "The outcome's market."),
        ("kind", "text", "", "kind", "BUY or SELL."),
        ("shares", "decimal", "shares", "shares", "Number of shares."),
        ("price", "decimal", "US dollars a share", "price", "The side's price in the universe."),
        ("amount", "decimal", "US dollars", "amount", "Amount paid for a purchase or received for a sale."),
        ("implied_confidence", "number", "", "implied_confidence",
         "The amount as a share of the largest legal bet, at most 1."),
        ("executed_at", "time", "", "executed_at", "When the answer was recorded, at the prices of its universe."),
    ]  # fmt: skip
    receipts = record_table(Receipt, "receipts", "Receipts.", "answer_sha256 nonce previous key_id").columns
    assert [column.unit for column in receipts] == ["SHA-256, hex", "", "SHA-256, hex", ""]
    assert [column.kind for column in receipts] == ["text"] * 4


def test_column_and_field_of_the_api_have_one_meaning() -> None:
    properties = openapi_document()["components"]["schemas"]["Trade"]["properties"]
    assert properties["amount"]["description"] == "Amount paid for a purchase or received for a sale."
    assert properties["kind"]["description"] == "BUY or SELL."


def test_field_without_a_meaning_is_no_column() -> None:
    with pytest.raises(ValueError, match=r"agents\.Agent\.journal_length has no help_text"):
        record_table(Agent, "agents", "Agents.", "id journal_length")
    with pytest.raises(FieldDoesNotExist):
        record_table(Agent, "agents", "Agents.", "id wealth")
