"""Files of forecast hubs: figures published by hubEvals and scoringutils, and what hubs get wrong."""

from pathlib import Path

import pytest

import forecast_rank as fr
from tests.forecast_rank.hub_example import MODELS, write_hub


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return write_hub(tmp_path / "hub")


class TestPublishedFigures:
    """What the article "Getting started with hubEvals" prints of the same forecasts."""

    def test_scores_and_coverage_are_those_of_hubevals(self, hub: Path) -> None:
        forecasters = fr.rank(hub, format="hub", bootstrap=0).to_dict()["forecasters"]
        printed = {
            "crps": (329, 315, 228),
            "absolute_error": (401.875, 416.375, 277),
            "held_0.5": (0, 0.25, 0.375),
            "held_0.8": (0, 0.5, 0.5),
            "held_0.9": (0.125, 0.5625, 0.5),
        }
        for figure, values in printed.items():
            assert [forecasters[model][figure] for model in MODELS] == pytest.approx(values, rel=0.002), figure

    def test_relative_skill_is_that_of_scoringutils(self, hub: Path) -> None:
        options = {"format": "hub", "bootstrap": 0, "baseline": "Flusight-baseline"}
        forecasters = fr.rank(hub, **options).to_dict()["forecasters"]
        skill = [forecasters[model]["relative_skill"] for model in MODELS]
        scaled = [forecasters[model]["scaled_relative_skill"] for model in MODELS]
        assert skill == pytest.approx([1.15, 1.10, 0.794], abs=0.005)
        assert scaled == pytest.approx([1, 0.957, 0.692], abs=0.0005)

    @pytest.mark.parametrize(
        ("location", "wis", "skill", "scaled"),
        [
            (
                "25",
                (179.944642857143, 162.6875, 139.369642857143),
                (1.12612125846186, 1.01812340354839, 0.872196666228429),
                (1, 0.904097490299596, 0.774513987436612),
            ),
            (
                "48",
                (478.964285714286, 467.791071428571, 316.535714285714),
                (1.15711681669639, 1.13012375159286, 0.764710039995535),
                (1, 0.976672134814704, 0.660875400790396),
            ),
        ],
    )
    def test_each_location_has_the_figures_of_hubevals_tests(
        self, tmp_path: Path, location: str, wis: tuple[float, ...], skill: tuple[float, ...], scaled: tuple[float, ...]
    ) -> None:
        hub = write_hub(tmp_path / "hub", (location,))
        forecasters = fr.rank(hub, format="hub", bootstrap=0, baseline=MODELS[0]).to_dict()["forecasters"]
        assert [forecasters[model]["crps"] for model in MODELS] == pytest.approx(wis)
        assert [forecasters[model]["relative_skill"] for model in MODELS] == pytest.approx(skill)
        assert [forecasters[model]["scaled_relative_skill"] for model in MODELS] == pytest.approx(scaled)

    def test_medians_are_scored_by_the_absolute_error(self, hub: Path) -> None:
        report = fr.rank(hub, format="hub", bootstrap=0, output_type="median")
        assert [report.ranked("absolute_error")[model][1] for model in MODELS] == [401.875, 416.375, 277]
