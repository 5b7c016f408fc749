"""Tables of external agents: the register of receipts, the keys that sign them, and attempts without an answer."""

from scoring.exports.dictionary import ArchiveTable, columns

RECEIPTS = ArchiveTable("receipts", "Receipts of accepted answers of external agents, up to the end of the archive. "
        "The canonical JSON of a body (agent, version, task, answer_sha256, prompt_sha256, nonce, "
        "received_at, sequence, previous) is hashed and signed.", columns("""
        sequence integer - Its place in the register, from 1.
        call integer row submission__call_id - The call that holds the answer.
        family text agent - The agent: its family's slug.
        version text - The version of the agent that answered.
        task text - batch-ID, or agent-ID-universe-ID.
        answer_sha256 text sha - Hash of the answer as sent, secrets redacted.
        prompt_sha256 text sha - Hash of the prompt that was shown.
        nonce text - 32 random bytes in hex.
        received_at time - Time that was compared with the deadline.
        previous text sha - Hash of the receipt before it; 64 zeros for the first.
        sha256 text sha - Hash of the body.
        signature text - Ed25519 over the body, hex.
        key_id text - The key in `signing_keys`.
    """), "agents.Receipt", ("sequence",),
        recomputed="all but call version received_at key_id")  # fmt: skip
SIGNING_KEYS = ArchiveTable("signing_keys", "The public keys that sign receipts and heads.", columns("""
        key_id text fingerprint - Beginning of the public key's SHA-256.
        public_key text - Ed25519, hex.
        began_at time - Beginning of its use; empty for the first.
        ended_at time - End of its use; empty while it is in use.
    """), "agents.SigningKey", recomputed="key_id")  # fmt: skip
ATTEMPTS = ArchiveTable("attempts", "Tasks of external agents without an accepted answer.", columns("""
        id integer row - The attempt.
        family text registration__family__slug - The agent: its family's slug.
        version text - The agent's version.
        agent integer row agent_id - The agent in its cohort, of a decision.
        universe integer row universe_id - The universe of the decision.
        batch integer row batch_id - Or the batch of questions.
        kind text - refused, late or missed.
        reason text - The reason.
        noted_at time - When it was noted.
    """), "agents.Attempt")  # fmt: skip
AGENT_TABLES = (RECEIPTS, SIGNING_KEYS, ATTEMPTS)
