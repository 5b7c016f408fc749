"""Words of refusals of an account or a release; apart from the gateway's client, which is not loaded at start."""

KEY_LIMIT = "Key limit exceeded"
"""How the message begins when a key's own spend limit is reached."""
RELEASE_REFUSED = "the gateway has no such release any more: "
"""How the reason of every task begins that was due for a release that the gateway does not have."""
