"""The OpenAPI document: its views, descriptions, rules and existing values."""
