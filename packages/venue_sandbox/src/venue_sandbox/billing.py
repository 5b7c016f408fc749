"""The gateway's billing: the cost of each generation, published with a delay, the key's limit and the credits."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from venue_sandbox.http_messages import Refusal, Reply, Request, zulu

BYOK_FEE = Decimal("0.05")
"""The gateway's share of the provider's price where the provider bills the customer's own key."""
DELAY = timedelta(minutes=1)
"""By the sandbox's clock: for so long after its answer a generation is not found."""
MAX_STORED = 10_000
NO_CREDIT = "This request requires more credits, or fewer max_tokens. To increase, visit the settings page."


class Billing:
    """The bills of one key. BYOK costs count beside its usage, and against neither its limit nor the credits."""

    def __init__(self) -> None:
        self._bills: dict[str, tuple[datetime, dict[str, Any]]] = {}
        self._usage = self._byok_usage = Decimal(0)
        self._limit: Decimal | None = None
        self._credits = Decimal(10_000)

    def set_limits(self, request: Request) -> Reply:
        """Sets the key's limit and the account's credits in US dollars: `{"limit": 5, "credits": 20}`, or one."""
        body = request.json()
        if "limit" in body:
            self._limit = None if body["limit"] is None else Decimal(str(body["limit"]))
        self._credits = Decimal(str(body.get("credits", self._credits)))
        return self.key(request)

    def check_funds(self, worst_case: Decimal) -> None:
        """Raises Refusal for a key at its limit, and for a request that might cost more than the credits left."""
        if self._limit is not None and self._usage >= self._limit:
            raise refused(403, "Key limit exceeded (total limit). Manage it in the key's settings.")
        if worst_case > self._credits - self._usage:
            raise refused(402, NO_CREDIT)

    def add(self, completion: dict[str, Any], at: datetime) -> None:
        """Bills a completion."""
        usage, upstream = completion["usage"], completion["usage"]["cost_details"]["upstream_inference_cost"]
        self._usage += usage["cost"]
        self._byok_usage += upstream if usage["is_byok"] else 0
        self._bills[completion["id"]] = (
            at,
            {
                "id": completion["id"],
                "model": completion["model"],
                "provider_name": completion["provider"],
                "created_at": zulu(at),
                "total_cost": usage["cost"],
                "usage": usage["cost"],
                "is_byok": usage["is_byok"],
                "upstream_inference_cost": upstream,
                "native_tokens_prompt": usage["prompt_tokens"],
                "native_tokens_completion": usage["completion_tokens"],
            },
        )
        if len(self._bills) > MAX_STORED:
            del self._bills[next(iter(self._bills))]

    def generation(self, request: Request) -> Reply:
        at, bill = self._bills.get(request.parameter("id") or "", (request.at, {}))
        if request.at < at + DELAY:
            raise refused(404, "Generation not found")
        return Reply(200, {"data": bill})

    def key(self, request: Request) -> Reply:
        data = {
            "label": "sk-or-v1-sand...box",
            "limit": self._limit,
            "limit_remaining": None if self._limit is None else max(self._limit - self._usage, Decimal(0)),
            "limit_reset": None,
            "include_byok_in_limit": False,
            "is_free_tier": False,
            "usage": self._usage,
            "byok_usage": self._byok_usage,
        }
        return Reply(200, {"data": data})

    def credits(self, request: Request) -> Reply:
        return Reply(200, {"data": {"total_credits": self._credits, "total_usage": self._usage}})


def refused(status: int, message: str, headers: dict[str, str] | None = None) -> Refusal:
    """The gateway's refusal of a request."""
    return Refusal(Reply(status, {"error": {"message": message, "code": status}}, headers or {}))
