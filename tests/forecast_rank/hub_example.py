"""The forecasts of the hubverse's example hub, `hubExamples::forecast_outputs`, written as files of a hub.

The figures that hubEvals and scoringutils publish for them are in its article "Getting started with hubEvals" and in
its test data `exp_pairwise_scores.csv`.
"""

from datetime import date, timedelta
from pathlib import Path

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
HEADINGS = "location,reference_date,horizon,target_end_date,target,output_type,output_type_id,value"
TARGET = "wk inc flu hosp"
MODELS = ("Flusight-baseline", "MOBS-GLEAM_FLUH", "PSI-DICE")
OBSERVED = {
    ("25", "2022-11-19"): (79, 221, 446, 578),
    ("48", "2022-11-19"): (1230, 1929, 2139, 1781),
    ("25", "2022-12-17"): (694, 769, 733, 466),
    ("48", "2022-12-17"): (1462, 1225, 1434, 1170),
}
"""By location and reference date, a number for each horizon in weeks."""
QUANTILES = {
    ("Flusight-baseline", "25", "2022-11-19"): (
        (22, 31, 45, 51, 57, 71, 80), (5, 21, 38, 51, 64, 81, 97), (0, 12, 33, 51, 69, 90, 105),
        (0, 5, 29, 51, 73, 97, 112),
    ),
    ("Flusight-baseline", "48", "2022-11-19"): (
        (905, 958, 1032, 1052, 1072, 1146, 1199), (854, 915, 1007, 1052, 1098, 1190, 1250),
        (823, 881, 980, 1052, 1124, 1222, 1279), (798, 855, 961, 1052, 1143, 1248, 1306),
    ),
    ("Flusight-baseline", "25", "2022-12-17"): (
        (531, 557, 575, 582, 589, 607, 633), (496, 536, 566, 582, 598, 629, 668), (454, 518, 558, 582, 606, 646, 709),
        (439, 498, 551, 582, 613, 666, 724),
    ),
    ("Flusight-baseline", "48", "2022-12-17"): (
        (1588, 1674, 1765, 1791, 1817, 1909, 1994), (1537, 1602, 1726, 1791, 1857, 1981, 2043),
        (1464, 1560, 1688, 1791, 1894, 2022, 2118), (1407, 1521, 1664, 1791, 1919, 2061, 2176),
    ),
    ("MOBS-GLEAM_FLUH", "25", "2022-11-19"): (
        (32, 34, 38, 43, 50, 58, 63), (31, 33, 38, 45, 53, 64, 72), (27, 30, 35, 43, 53, 67, 76),
        (25, 28, 33, 43, 56, 73, 86),
    ),
    ("MOBS-GLEAM_FLUH", "48", "2022-11-19"): (
        (1003, 1039, 1101, 1172, 1236, 1290, 1320), (858, 900, 983, 1072, 1163, 1246, 1289),
        (616, 656, 729, 820, 917, 1007, 1059), (482, 521, 594, 688, 795, 900, 958),
    ),
    ("MOBS-GLEAM_FLUH", "25", "2022-12-17"): (
        (435, 460, 514, 596, 713, 858, 952), (446, 485, 563, 664, 803, 975, 1097), (349, 390, 469, 575, 705, 863, 955),
        (224, 258, 324, 408, 512, 631, 706),
    ),
    ("MOBS-GLEAM_FLUH", "48", "2022-12-17"): (
        (1303, 1403, 1632, 1958, 2286, 2562, 2719), (1031, 1120, 1343, 1671, 2028, 2345, 2540),
        (648, 713, 862, 1095, 1362, 1632, 1783), (400, 444, 539, 685, 871, 1059, 1181),
    ),
    ("PSI-DICE", "25", "2022-11-19"): (
        (30, 38, 51, 66, 83, 101, 114), (44, 54, 72, 90, 111, 133, 147), (65, 78, 100, 121, 146, 174, 190),
        (88, 106, 132, 159, 187, 212, 230),
    ),
    ("PSI-DICE", "48", "2022-11-19"): (
        (953, 1001, 1088, 1172, 1256, 1336, 1388), (1033, 1082, 1155, 1226, 1289, 1361, 1408),
        (1071, 1110, 1174, 1233, 1284, 1342, 1372), (1082, 1109, 1151, 1195, 1233, 1270, 1290),
    ),
    ("PSI-DICE", "25", "2022-12-17"): (
        (260, 327, 495, 648, 734, 793, 822), (290, 378, 496, 613, 712, 788, 843), (116, 194, 321, 512, 704, 847, 936),
        (0, 0, 0, 410, 832, 1037, 1138),
    ),
    ("PSI-DICE", "48", "2022-12-17"): (
        (1526, 1577, 1658, 1736, 1811, 1888, 1927), (1268, 1341, 1457, 1578, 1691, 1794, 1845),
        (963, 1044, 1194, 1342, 1490, 1630, 1721), (690, 773, 914, 1077, 1240, 1396, 1490),
    ),
}  # fmt: skip
"""By model, location and reference date, seven quantiles for each horizon."""


def task(location: str, reference: str, horizon: int) -> str:
    """The cells of a task's columns."""
    return f"{location},{reference},{horizon},{target_end(reference, horizon)},{TARGET}"


def target_end(reference: str, horizon: int) -> str:
    return (date.fromisoformat(reference) + timedelta(weeks=horizon)).isoformat()


def write_hub(folder: Path, locations: tuple[str, ...] = ("25", "48")) -> Path:
    """Writes a hub with a file for each model and round, without model_id, and its target data; returns its folder."""
    targets = ["location,target_end_date,target,output_type,output_type_id,oracle_value"]
    for (model, location, reference), forecasts in QUANTILES.items():
        if location not in locations:
            continue
        file = folder / "model-output" / model / f"{reference}-{model}.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        rows = [] if file.exists() else [HEADINGS]
        for horizon, values in enumerate(forecasts):
            cells = task(location, reference, horizon)
            rows += [f"{cells},quantile,{level},{value}" for level, value in zip(LEVELS, values, strict=True)]
            rows.append(f"{cells},median,NA,{values[3]}")
        with file.open("a") as text:
            text.write("\n".join(rows) + "\n")
    for (location, reference), observed in OBSERVED.items():
        for horizon, number in enumerate(observed):
            cells = f"{location},{target_end(reference, horizon)},{TARGET}"
            targets += [f"{cells},{kind},NA,{number}" for kind in ("quantile", "median")]
    (folder / "target-data").mkdir(parents=True)
    (folder / "target-data" / "oracle-output.csv").write_text("\n".join(targets) + "\n")
    return folder
