"""A workflow that runs an agent at GitHub, without a host of one's own."""

from importlib.resources import files
from pathlib import Path

from arena_agent import __version__
from arena_agent.arena_api import arena_address
from arena_agent.loading import UnusableAgent


def write_workflow(agent_file: Path, url: str) -> Path:
    """Writes the workflow beside the agent's file. Raises UnusableAgent, or InvalidAddress."""
    text = files("arena_agent").joinpath("texts/workflow.yml").read_text("utf-8")
    values = {"AGENT_FILE": agent_file.name, "ARENA_URL": arena_address(url), "KIT_VERSION": __version__}
    for name, value in values.items():
        text = text.replace(name, value)
    path = agent_file.parent / ".github" / "workflows" / "arena.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UnusableAgent(f"{path}: {error.strerror}") from None
    return path
