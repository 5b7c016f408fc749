"""Files made to cost memory, time or a traceback: each ends with a sentence."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from string import ascii_uppercase

import pytest

from forecast_rank.cli import main
from forecast_rank.readers.formats import PUBLISHED_FORMATS
from tests.lazy_modules import pl

NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
MEMORY = 3 << 30
"""Address space of a run: NumPy's and polars' code and threads take two gigabytes of it before anything is read."""
LONG = (
    "forecaster,question,probability,outcome,weight\n"
    "ann,q1,0.5,1,1\nann,q2,0.5,0,1\nann,q3,0.5,0,1\nbob,q1,0.6,1,1\nbob,q2,0.4,0,1\nbob,q3,0.1,0,{}\n"
)


def workbook(path: Path, *cells: tuple[str, str]) -> None:
    """A workbook of one sheet with texts at the references of cells."""
    kind, part = "application/vnd.openxmlformats-officedocument.spreadsheetml", "PartName"
    rows = ""
    for reference, text in cells:
        number = reference.lstrip(ascii_uppercase)
        rows += f'<row r="{number}"><c r="{reference}" t="inlineStr"><is><t>{text}</t></is></c></row>'
    contents = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override {part}="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override {part}="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r" '
        f'Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{NAMESPACE}" xmlns:r="{RELATIONS}"><sheets>'
        '<sheet name="forecasts" sheetId="1" r:id="r"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r" '
        f'Type="{RELATIONS}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{NAMESPACE}"><sheetData>{rows}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)


def far_cell(folder: Path) -> list[str]:
    workbook(folder / "far.xlsx", ("A1", "question"), ("B1", "outcome"), ("C1", "ann"), ("XFD1048576", "1"))
    return [str(folder / "far.xlsx")]


def long_runs(folder: Path) -> list[str]:
    rows = 5_000_000
    frame = pl.select(
        pl.repeat("ann", rows, dtype=pl.Categorical).alias("forecaster"),
        pl.repeat("q", rows, dtype=pl.Categorical).alias("question"),
        pl.repeat(0.5, rows).alias("probability"),
        pl.repeat(1, rows, dtype=pl.Int8).alias("outcome"),
    )
    frame.write_parquet(folder / "runs.parquet")
    return [str(folder / "runs.parquet")]


def heading_of_spaces(folder: Path) -> list[str]:
    (folder / "a.csv").write_text(f"forecaster,question,outcome,probability{' ' * 30_000}x\nann,q,1,0.5\n")
    return [str(folder / "a.csv")]


def tags(folder: Path) -> list[str]:
    record = {"question_id": "q", "raw_output": "<answer>" * 20_000 + "</think" * 20_000}
    (folder / "kalshi__m.jsonl").write_text(json.dumps(record) + "\n")
    return [str(folder / "kalshi__m.jsonl"), "--format", "kalshibench"]


def open_quote(folder: Path) -> list[str]:
    (folder / "a.csv").write_text(LONG.format(1) + 'ann,"' + "x" * 5_000_000 + "\n")
    return [str(folder / "a.csv")]


def open_quote_of_a_publisher(folder: Path) -> list[str]:
    columns = "question_id,forecaster,type,probability_yes,resolution"
    (folder / "a.csv").write_text(f'{columns}\n1,ann,binary,0.5,"' + "x" * 5_000_000)
    return [str(folder / "a.csv"), "--format", "metaculus"]


COSTLY = [
    (far_cell, 2, "bytes expands to 1,099,511,627,776 bytes or more, above the limit of 1,073,741,824 bytes"),
    (long_runs, 2, "bytes expands to 1,280,000,000 bytes or more, above the limit of 1,073,741,824 bytes"),
    (heading_of_spaces, 2, "has no column 'probability'"),
    (tags, 1, "no answer is stated"),
    (open_quote, 2, "line 8: a cell is longer than 131,072 characters; is a quote never closed?"),
    (open_quote_of_a_publisher, 2, "a cell is longer than 131,072 characters; is a quote never closed?"),
]
"""Files, the exit code of the command about each, and a part of its sentence."""
LIMITED_COMMANDS = f"""
import contextlib, io, json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
from forecast_rank.cli import main
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        code = main(arguments)
    print(json.dumps([code, errors.getvalue()]))
"""


def test_file_that_would_cost_much_ends_with_a_sentence(tmp_path: Path) -> None:
    """In a process of its own with ten seconds of processor time, as signals do not end what runs outside Python."""
    commands = []
    for make, _, _ in COSTLY:
        folder = tmp_path / make.__name__
        folder.mkdir()
        commands.append(make(folder))
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED_COMMANDS, json.dumps(commands)], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    for (make, code, sentence), line in zip(COSTLY, ran.stdout.splitlines(), strict=True):
        result, errors = json.loads(line)
        assert result == code, (make, errors)
        assert sentence in errors, (make, errors)


@pytest.mark.parametrize("weight", ["1e30", "1e-30", "2000000", "1e308"])
def test_weight_beside_which_the_others_vanish_is_rejected(weight: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(LONG.format(weight))
    assert main([str(tmp_path / "a.csv"), "--out", str(tmp_path / "report.json"), "--bootstrap", "50"]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    (rejected,) = report["rejected"]
    assert rejected["row"] == 7
    assert "is not from 1e-06 to 1e+06: the median weight is 1" in rejected["why"]


@pytest.mark.parametrize("weights", [("1e-9", "1e9"), ("1e-3", "1e3"), ("1e-6", "1"), ("1", "1e6"), ("1e30", "1e30")])
@pytest.mark.parametrize("turn", [2, 3])
def test_weights_of_any_size_end_without_an_error(weights: tuple[str, str], turn: int, tmp_path: Path) -> None:
    lines = ["forecaster,question,event,probability,outcome,weight"]
    for number in range(24):
        weight = weights[number % turn == 0]
        for k, name in enumerate(("ann", "bob", "cy")):
            probability = 0.2 + 0.15 * ((number + k) % 4)
            lines.append(f"{name},q{number},e{number // 2},{probability},{number % 2},{weight}")
    (tmp_path / "a.csv").write_text("\n".join(lines))
    assert main([str(tmp_path / "a.csv"), "--bootstrap", "50", "--metrics", METRICS]) in (0, 1)


METRICS = "brier,log,adjusted_brier,thurstone_mosteller,bradley_terry,irt,weighted_brier,calibration,auc"


@pytest.mark.parametrize("format", [None, *PUBLISHED_FORMATS])
def test_missing_file_is_one_line(format: str | None, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    missing = str(tmp_path / "nothere.json")
    assert main([missing, *(("--format", format) if format else ())]) == 2
    assert capsys.readouterr().err == f"forecast-rank: {missing}: No such file or directory\n"
