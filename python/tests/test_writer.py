"""Files written from Python."""

from __future__ import annotations

import datetime
import time
from pathlib import Path

import osmium
import pyarrow
import pytest
from conftest import DATA, rows_of_osmium, some_files

import pbfhogg


@pytest.mark.parametrize("name", [name for name in some_files() if name.endswith(".osm.pbf")])
def test_a_table_comes_back(name: str, tmp_path: Path) -> None:
    """What is read from a table that was written equals what was written, to others, too."""
    copy = tmp_path / "copy.osm.pbf"
    with pbfhogg.Writer(copy) as writer:
        writer.table(pbfhogg.read(DATA / name))
    assert writer.objects == sum(len(batch) for batch in pbfhogg.read(DATA / name).batches())
    # The writer sorts.
    order = {"node": 0, "way": 1, "relation": 2}
    expected = sorted(rows_of_osmium(DATA / name), key=lambda row: (order[row["type"]], row["id"]))
    assert rows_of_osmium(copy) == expected
    assert pbfhogg.info(copy)["sorted"] and pbfhogg.check(copy, index=True) is not None


def test_objects_of_all_kinds(tmp_path: Path) -> None:
    """All fields, in any order."""
    path = tmp_path / "all.osm.pbf"
    moment = datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=datetime.timezone.utc)
    with pbfhogg.Writer(path) as writer:
        writer.relation(3, [("way", 2, "outer"), ("node", -1, "")], tags=[("type", "multipolygon")])
        writer.way(2, (-1, 5_000_000_000), tags={"name": "Ä"}, version=2, timestamp=moment, changeset=4, uid=5, user="Ö")
        writer.node(5_000_000_000, 90, -180)
        writer.node(-1, -52.5, 13.4000001, timestamp=1_000_000_000)
    found = {(one.type, one.id): one for one in pbfhogg.objects(path)}
    way, node = found["way", 2], found["node", -1]
    assert (way.refs, way.tags, way.version) == ([-1, 5_000_000_000], {"name": "Ä"}, 2)
    assert (way.timestamp, way.changeset, way.uid, way.user) == (moment.timestamp(), 4, 5, "Ö")
    assert (node.lat, node.lon, node.timestamp, node.version) == (-52.5, 13.4000001, 1_000_000_000, None)
    assert found["relation", 3].members == [("way", 2, "outer"), ("node", -1, "")]
    assert osmium.FileProcessor(str(path)).header is not None


def test_nothing_is_left_of_a_failed_write(tmp_path: Path) -> None:
    """An exception leaves the old file, or none."""
    path = tmp_path / "x.osm.pbf"
    with pytest.raises(RuntimeError):
        with pbfhogg.Writer(path) as writer:
            writer.node(1, 1, 1)
            raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    path.write_text("mine")
    with pytest.raises(pbfhogg.Error, match="exist"):
        pbfhogg.Writer(path)
    with pbfhogg.Writer(path, overwrite=True) as writer:
        writer.node(1, 1, 1)
    assert pbfhogg.info(path)["nodes"] == 1
    with pytest.raises(ValueError, match="closed"):
        writer.node(2, 1, 1)
    with pbfhogg.Writer(tmp_path / "y.osm.pbf") as writer:
        for arguments in ((1, 91, 0), (1, float("nan"), 0)):
            with pytest.raises(ValueError, match="lat, lon"):
                writer.node(*arguments)
        with pytest.raises(ValueError, match="members"):
            writer.relation(1, [("street", 1, "")])
        with pytest.raises(ValueError, match="kind"):
            writer.table(pbfhogg.read("helsinki.osm.pbf", kinds="node"))


def test_times_without_a_zone_are_in_utc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As DuckDB and polars give them."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    path = tmp_path / "times.osm.pbf"
    with pbfhogg.Writer(path) as writer:
        writer.node(1, 0, 0, timestamp=datetime.datetime(2001, 9, 9, 1, 46, 40))
    monkeypatch.undo()
    time.tzset()
    assert [one.timestamp for one in pbfhogg.objects(path)] == [1_000_000_000]


def test_a_node_needs_a_whole_place(tmp_path: Path) -> None:
    """A node that is not deleted."""
    with pbfhogg.Writer(tmp_path / "places.osm.pbf") as writer:
        for place in ((None, 13.4), (52.5, None), (None, None)):
            with pytest.raises(ValueError, match="has a location"):
                writer.node(1, *place)
        row = pyarrow.table({"id": [1], "lat": [52.5], "lon": pyarrow.array([None], pyarrow.float64())})
        with pytest.raises(ValueError, match="has no location"):
            writer.table(row, kind="node")
        writer.node(1, None, None, visible=False)


def test_a_writer_is_closed_twice(tmp_path: Path) -> None:
    """At the end of the block as well."""
    path = tmp_path / "closed.osm.pbf"
    with pbfhogg.Writer(path) as writer:
        writer.node(1, 0, 0)
        writer.close()
        assert path.exists()
    writer.close()
    assert writer.objects == 1
