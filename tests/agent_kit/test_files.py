"""Files that the kit writes for other services: a workflow of GitHub, and a folder for Hugging Face."""

import json
from pathlib import Path

import pytest
import yaml

import arena_agent
from arena_agent.cli import main
from tests.agent_kit.datasets import write_dataset
from tests.lazy_modules import pl


def test_workflow_pins_its_actions_has_one_secret_and_installs_from_the_arena(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARENA_AGENT_URL", raising=False)
    assert main(["init", "cautious", "--github"]) == 2
    assert "needs the arena's address" in capsys.readouterr().err
    assert main(["init", "cautious", "--github", "--json", "--url", "https://arena.example/"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert written == {"file": "cautious.py", "workflow": ".github/workflows/arena.yml"}
    text = Path(written["workflow"]).read_text()
    (job,) = yaml.safe_load(text)["jobs"].values()
    actions = [step["uses"] for step in job["steps"] if "uses" in step]
    assert [len(action.partition("@")[2]) for action in actions] == [40, 40, 40]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    version = arena_agent.__version__
    assert commands[0] == f'pip install --index-url https://arena.example/kit/simple "arena-agent=={version}"'
    assert commands[1].startswith("arena-agent run cautious.py --url https://arena.example --for ${{ ")
    assert text.count("${{ secrets.") - text.count("# OPENROUTER") == 1
    assert main(["init", "cautious", "--github", "--url", "https://arena.example"]) == 2
    assert "File exists" in capsys.readouterr().err


def test_folder_for_hugging_face_has_the_rows_and_a_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = write_dataset(tmp_path / "forecasts-2026w12", tasks=6), tmp_path / "hub"
    assert main(["dataset", str(data), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == sorted(path.name for path in out.iterdir())
    _, header, card = (out / "README.md").read_text().split("---\n", 2)
    facts = yaml.safe_load(header)
    assert (facts["license"], facts["pretty_name"]) == ("cc-by-4.0", "Forecaster Arena, forecasts-2026w12")
    for config in facts["configs"]:
        (file,) = config["data_files"]
        rows = pl.read_parquet(out / file["path"])
        assert (file["path"], rows.height > 5) == (f"{config['config_name']}.parquet", True)
    tasks = pl.read_parquet(out / "tasks.parquet").to_dicts()
    lines = (data / "tasks.jsonl").read_text().splitlines()
    assert [row["questions"] for row in tasks] == [json.loads(line)["blocks"]["QUESTIONS"] for line in lines]
    outcomes = pl.read_parquet(out / "outcomes.parquet")
    assert outcomes["outcome"].sum() == 6
    assert json.loads((data / "manifest.json").read_text())["sha256"] in card
    assert main(["dataset", str(data), "--out", str(out)]) == 2
    assert "it is no empty folder" in capsys.readouterr().err
