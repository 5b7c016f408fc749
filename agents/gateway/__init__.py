"""The model gateway: OpenRouter, or any service that speaks its protocol."""
