"""Tables of objects."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any, Dict, List

import duckdb
import polars
import pyarrow
import pytest
from conftest import DATA, rows_of_osmium, some_files

import pbfhogg


def rows(table: pbfhogg.Table) -> List[Dict[str, Any]]:
    """Return the rows of a table, with times as seconds."""
    found = table.to_arrow().to_pylist()
    for row in found:
        if row.get("timestamp") is not None:
            row["timestamp"] = row["timestamp"].timestamp()
    return found


@pytest.mark.parametrize("name", some_files())
def test_values_are_those_of_osmium(name: str) -> None:
    """All columns of all objects."""
    found = rows(pbfhogg.read(DATA / name))
    for row in found:
        row.pop("visible", None)
    assert found == rows_of_osmium(DATA / name)


@pytest.mark.parametrize("name", some_files())
def test_objects_are_the_rows(name: str) -> None:
    """The iterator has the values of the table."""
    expected = rows_of_osmium(DATA / name)
    for found, row in zip(pbfhogg.objects(DATA / name), expected, strict=True):
        assert (found.type, found.id, found.version, found.timestamp) == (
            row["type"],
            row["id"],
            row["version"],
            row["timestamp"],
        )
        assert (found.changeset, found.uid, found.user) == (row["changeset"], row["uid"], row["user"])
        assert (found.lat, found.lon, found.refs) == (row["lat"], row["lon"], row["refs"])
        assert found.tags == dict(row["tags"])
        members = row["members"]
        expected_members = members and [(one["type"], one["ref"], one["role"]) for one in members]
        assert (found.members or None) == (expected_members or None)


def with_index(path: Path, directory: Path) -> Path:
    """Return a copy of a file with a table of contents, in small blobs."""
    copy = directory / f"indexed-{path.name}"
    pbfhogg.repack(path, copy, objects_per_blob=500)
    return copy


@pytest.mark.parametrize("is_indexed", [False, True])
def test_selections_are_those_of_a_loop(helsinki: Path, tmp_path: Path, is_indexed: bool) -> None:
    """Kinds, tags, ids and boxes, and all of them together."""
    path = with_index(helsinki, tmp_path) if is_indexed else helsinki
    every = rows_of_osmium(helsinki)
    random.seed(1)
    tests = {
        "highway": lambda tags: "highway" in tags,
        "building=yes": lambda tags: tags.get("building") == "yes",
        "name": lambda tags: "name" in tags,
    }
    for kinds in (None, "node", "way", ["way", "relation"]):
        for tag, test in tests.items():
            found = rows(pbfhogg.read(path, kinds=kinds, tags=tag, columns=["type", "id"]))
            wanted = [kinds] if isinstance(kinds, str) else kinds or ["node", "way", "relation"]
            expected = [row for row in every if row["type"] in wanted and test(dict(row["tags"]))]
            assert found == [{"type": row["type"], "id": row["id"]} for row in expected]
    ways = [row["id"] for row in every if row["type"] == "way"]
    some = sorted(random.sample(ways, 20))
    assert [row["id"] for row in rows(pbfhogg.read(path, kinds="way", ids=some))] == some
    mixed = pbfhogg.read(path, ids=[f"w{some[0]}", f"n{every[5]['id']}"], columns=["type", "id"])
    assert rows(mixed) == [{"type": "node", "id": every[5]["id"]}, {"type": "way", "id": some[0]}]
    assert rows(pbfhogg.read(path, ids=[])) == []


@pytest.mark.parametrize("is_indexed", [False, True])
def test_boxes_select_what_has_a_node_inside(helsinki: Path, tmp_path: Path, is_indexed: bool) -> None:
    """Nodes in the box, ways with such a node, relations with such a member."""
    path = with_index(helsinki, tmp_path) if is_indexed else helsinki
    west, south, east, north = box = (24.940, 60.168, 24.945, 60.172)
    every = rows_of_osmium(helsinki)
    inside: Dict[str, set] = {"node": set(), "way": set()}
    expected = []
    for row in every:
        if row["type"] == "node":
            is_inside = row["lat"] is not None and west <= row["lon"] <= east and south <= row["lat"] <= north
        elif row["type"] == "way":
            is_inside = not inside["node"].isdisjoint(row["refs"])
        else:
            is_inside = any(one["ref"] in inside.get(one["type"], set()) for one in row["members"])
        if is_inside:
            if row["type"] in inside:
                inside[row["type"]].add(row["id"])
            expected.append({"type": row["type"], "id": row["id"]})
    assert rows(pbfhogg.read(path, bbox=box, columns=["type", "id"])) == expected
    named = rows(pbfhogg.read(path, bbox=box, kinds="way", tags="name", columns=["id"]))
    names = {row["id"] for row in every if row["type"] == "way" and dict(row["tags"]).get("name") is not None}
    assert [row["id"] for row in named] == [
        row["id"] for row in expected if row["type"] == "way" and row["id"] in names
    ]


@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_splits_make_up_the_file(helsinki: Path, tmp_path: Path, is_indexed: bool, count: int) -> None:
    """Each object is in one split, in order, and splits may be sent to other processes."""
    path = with_index(helsinki, tmp_path) if is_indexed else helsinki
    splits = pickle.loads(pickle.dumps(pbfhogg.splits(path, count)))
    assert 1 <= len(splits) <= count
    parts = [rows(pbfhogg.read(path, split=split, columns=["type", "id"])) for split in splits]
    assert sum(parts, []) == rows(pbfhogg.read(path, columns=["type", "id"]))
    for split, part in zip(splits, parts):
        assert split.objects in (len(part), None) and (split.objects is not None) == is_indexed
        assert split.kinds is None or set(split.kinds) == {row["type"] for row in part}


def test_others_take_tables(helsinki: Path) -> None:
    """Arrow, DuckDB, polars and pandas."""
    table = pbfhogg.read(helsinki, kinds="way", tags="highway", columns=["id", "tags", "refs"])
    expected = table.to_arrow()
    assert expected.num_rows > 1000
    assert pyarrow.table(table) == expected
    assert pyarrow.RecordBatchReader.from_stream(table).read_all() == expected
    ways = table
    counted = duckdb.sql("select count(*), sum(len(refs)), count(distinct tags['name']) from ways")
    count, refs, names = counted.fetchall()[0]
    assert count == expected.num_rows
    assert refs == sum(len(row["refs"]) for row in expected.to_pylist())
    assert names == len({dict(row["tags"])["name"] for row in expected.to_pylist() if "name" in dict(row["tags"])})
    frame = polars.DataFrame(table)
    assert frame.equals(table.to_polars()) and frame["id"].to_list() == expected["id"].to_pylist()
    pandas_frame = table.to_pandas()
    assert pandas_frame["id"].tolist() == expected["id"].to_pylist()
    assert pandas_frame["tags"][0] == dict(expected["tags"][0].as_py())
    batches = list(table.batches())
    assert sum(len(batch) for batch in batches) == expected.num_rows
    assert [pyarrow.record_batch(batch) for batch in batches] == expected.to_batches()


def test_locations_of_ways() -> None:
    """Locations that a file has in its ways are there if they are asked for."""
    located = pbfhogg.read("loc_on_ways.osm.pbf", kinds="way", columns=["id", "refs", "locations"])
    found = rows(located)
    assert found and all(len(row["locations"]) == len(row["refs"]) for row in found)
    assert all(pbfhogg.read("helsinki.osm.pbf", kinds="way", columns=["locations"]).to_arrow()["locations"].is_null())


def test_tables_have_the_columns_that_are_asked_for(helsinki: Path) -> None:
    """The order is that of the argument, and no column at all is a count."""
    assert pbfhogg.read(helsinki, columns=["refs", "id"]).column_names == ["refs", "id"]
    assert "lat" not in pbfhogg.read(helsinki, kinds="way").column_names
    assert "type" not in pbfhogg.read(helsinki, kinds="way").column_names
    nothing = pbfhogg.read(helsinki, kinds="relation", columns=[])
    assert sum(len(batch) for batch in nothing.batches()) == len(rows(pbfhogg.read(helsinki, kinds="relation")))


def test_histories_tell_deletions(tmp_path: Path) -> None:
    """Deleted versions are seen, and come back as they are."""
    table = pbfhogg.read("deleted_nodes.osh.pbf")
    assert "visible" in table.column_names and "visible" not in pbfhogg.read("helsinki.osm.pbf").column_names
    deleted = [row["visible"] for row in rows(table)]
    assert False in deleted
    with pbfhogg.Writer(tmp_path / "copy.osh.pbf") as writer:
        writer.table(table)
    assert [one.visible for one in pbfhogg.objects(tmp_path / "copy.osh.pbf")] == deleted


def test_splits_of_another_file_are_refused(helsinki: Path, tmp_path: Path) -> None:
    """A file that has changed since it was divided is seen."""
    path = with_index(helsinki, tmp_path)
    split = pbfhogg.splits(path, 3)[1]
    pbfhogg.repack(helsinki, path, objects_per_blob=400, overwrite=True)
    with pytest.raises(pbfhogg.Error, match="divided"):
        pbfhogg.read(path, split=split)
