"""The reverse geocoder."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy
import polars
import pyarrow
import pytest

import pbfhogg


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of Helsinki."""
    directory = tmp_path_factory.mktemp("index") / "helsinki"
    data = Path(__file__).parents[2] / "tests" / "data" / "helsinki.osm.pbf"
    pbfhogg.build_geocode_index(data, directory)
    return directory


def test_answers_are_those_of_the_program(index: Path) -> None:
    """One by one, and all at once, whatever holds the places."""
    random.seed(7)
    places = [(random.uniform(60.1641, 60.1791), random.uniform(24.9352, 24.9534)) for _ in range(300)]
    geocoder = pbfhogg.Geocoder(index)
    lats, lons = zip(*places)
    table = geocoder.reverse_many(lats, lons).to_arrow()
    assert table.num_rows == len(places)
    page = (Path(__file__).parents[2] / "reference" / "python.md").read_text()
    listed = page.split("a row for each place, in order:")[1].split("\n\n")[0]
    assert table.column_names == listed.split("`")[1::2]
    for (lat, lon), row in zip(places, table.to_pylist()):
        answer = geocoder.reverse(lat, lon)
        assert (row["label"] or "") == answer["label"]
        assert row["street"] == answer["address"].get("street")
        assert row["house_number"] == answer["address"].get("house_number")
    for lat, lon in places[:3]:
        words = [sys.executable, "-m", "pbfhogg", "geocode", str(index), f"{lat:.7f}", f"{lon:.7f}", "--json"]
        printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert json.loads(printed) == geocoder.reverse(round(lat, 7), round(lon, 7))
    for array in (numpy.array, pyarrow.array, polars.Series, list):
        assert geocoder.reverse_many(array(lats), array(lons)).to_arrow() == table


def test_places_that_are_none(index: Path) -> None:
    """A wrong place is an error alone, and an empty row among many."""
    geocoder = pbfhogg.Geocoder(index, languages=["sv"])
    with pytest.raises(ValueError, match="lat, lon"):
        geocoder.reverse(91, 0)
    rows = geocoder.reverse_many([60.17, float("nan"), 100.0], [24.94, 24.94, 24.94]).to_arrow().to_pylist()
    assert rows[0]["label"] and rows[1]["label"] is None and rows[2]["osm_id"] is None
    with pytest.raises(ValueError, match="lons"):
        geocoder.reverse_many([60.17], [])
    assert geocoder.reverse_many([], []).to_arrow().num_rows == 0
    with pytest.raises(pbfhogg.Error):
        pbfhogg.Geocoder(index.parent)
