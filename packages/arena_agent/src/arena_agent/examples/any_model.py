"""A model by any OpenAI-compatible address, asked with the arena's own prompts and a hint of one's own.

`MODEL_URL`, `MODEL_NAME` and `MODEL_KEY` name it: a gateway, or a server on this machine.
"""

import os

from arena_agent import ArenaTask, ModelAgent

HINT = "Begin with the base rate of such events, then say what speaks for more and for less.\n\n"


class AnyModel(ModelAgent):
    name = "any-model"
    track = "closed"
    base_url = os.environ.get("MODEL_URL", "http://127.0.0.1:11434/v1")
    model = os.environ.get("MODEL_NAME", "llama3.1")
    key_variable = "MODEL_KEY" if "MODEL_KEY" in os.environ else ""
    concurrency = 2

    def messages(self, task: ArenaTask) -> tuple[str, str]:
        system, user = super().messages(task)
        return system, HINT + user
