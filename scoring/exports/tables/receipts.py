"""Tables of external agents: the register of receipts, the keys that sign them, and attempts without an answer."""

from agents.models import Attempt, Receipt, SigningKey
from scoring.exports.dictionary import record_table

RECEIPTS = record_table(Receipt, "receipts",
        "Receipts of accepted answers of external agents, up to the end of the archive. "
        "The canonical JSON of a body (agent, version, task, answer_sha256, prompt_sha256, nonce, "
        "received_at, sequence, previous) is hashed and signed.", """
        sequence
        call integer row submission__call_id - The call that holds the answer.
        family=agent version task answer_sha256 prompt_sha256 nonce received_at previous sha256 signature key_id
    """, order=("sequence",),
        recomputed="all but call version received_at key_id")  # fmt: skip
SIGNING_KEYS = record_table(SigningKey, "signing_keys", "The public keys that sign receipts and heads.", """
        key_id=fingerprint public_key began_at ended_at
    """, recomputed="key_id")  # fmt: skip
ATTEMPTS = record_table(Attempt, "attempts", "Tasks of external agents without an accepted answer.", """
        id family=registration__family__slug version agent universe batch kind reason noted_at
    """)  # fmt: skip
AGENT_TABLES = (RECEIPTS, SIGNING_KEYS, ATTEMPTS)
