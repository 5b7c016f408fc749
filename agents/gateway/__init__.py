"""The model gateway: OpenRouter, or any service that speaks its protocol."""

from agents.gateway.client import Gateway
from agents.gateway.completions import Completion, GatewayFailure
from agents.gateway.model_ids import same_model

__all__ = ["Completion", "Gateway", "GatewayFailure", "same_model"]
