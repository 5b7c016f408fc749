"""Whether a release keeps to an answer's schema beside a search tool: found out once, by a request that is paid for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from agents.gateway.client import Gateway
from agents.gateway.completions import GatewayFailure
from agents.gateway.finish_reasons import AnswerEnd
from agents.models import Elicitation, ModelCall, Release
from agents.models.task import PromptParts
from agents.services.conditions import conditions_on
from agents.services.model_calls import FORMAT_REFUSED, request_parameters
from cohorts.models import Methodology
from foundation.json_lines import json_line
from markets.models import QuestionBatch, QuestionSet
from markets.models.question import day_of

if TYPE_CHECKING:
    from markets.selection_rule import Condition

MAX_TOKENS = 4_000
QUESTION = {"question_id": "1", "question": "Will the sun rise tomorrow?", "exclusive": True, "options": ["YES", "NO"]}


@dataclass(frozen=True, slots=True)
class SchemaCheck:
    """The result of a check.

    keeps_schema : None where the check did not tell
    detail : the reason
    cost_usd : as stated by the gateway
    """

    keeps_schema: bool | None
    detail: str
    cost_usd: Decimal | None = None


def search_condition(methodology: Methodology | None) -> Condition | None:
    """The first condition with a search tool that is on; None without one."""
    rules = methodology.forecast_rules if methodology else None
    conditions = conditions_on(rules) if rules else []
    return next((condition for condition in conditions if condition.tools is not None), None)


def needs_check(release: Release) -> bool:
    """Whether a release takes a schema, and nobody has tested it beside a search tool."""
    takes_schema = "structured_outputs" in (release.supported_parameters or ())
    return takes_schema and release.schema_beside_search is None


def check_schema(
    release: Release, methodology: Methodology, condition: Condition, gateway: Gateway, *, at: datetime
) -> SchemaCheck:
    """Asks a made-up question as a run would, and stores at the release whether it kept to the schema."""
    rules = methodology.forecast_rules
    assert rules is not None
    columns = rules.question_columns
    block = "\n".join([json_line(columns), json_line(list(map(QUESTION.get, columns)))])
    batch = QuestionBatch(arm=condition.name, block=block, question_set=QuestionSet(day=day_of(at)))
    task = Elicitation(batch=batch, methodology=methodology, release=release, family=release.family)
    user = task.user_prompt(PromptParts())
    try:
        completion = gateway.complete(
            model=release.model_id,
            system=task.system_prompt,
            user=user,
            parameters=request_parameters(task, MAX_TOKENS),
            idempotency_key=ModelCall.fingerprint(f"search check:{release.model_id}:{at.isoformat()}", user),
        )
    except GatewayFailure as failure:
        keeps_schema = False if failure.status in FORMAT_REFUSED else None
        check = SchemaCheck(keeps_schema, failure.reason, failure.accounting.cost_usd)
    else:
        if completion.end == AnswerEnd.NORMAL:
            keeps_schema = _is_object(completion.content)
            detail = "it answered by the schema" if keeps_schema else "it ignored it"
            check = SchemaCheck(keeps_schema, detail, completion.cost_usd)
        else:
            check = SchemaCheck(None, f"the answer ended with {completion.finish_reason}", completion.cost_usd)
    if check.keeps_schema is not None:
        Release.objects.filter(pk=release.pk).update(schema_beside_search=check.keeps_schema)
    return check


def _is_object(content: str) -> bool:
    try:
        return isinstance(json.loads(content), dict)
    except ValueError:
        return False
