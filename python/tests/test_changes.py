"""Change files, and augmented diffs."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any, Dict, List
from xml.etree import ElementTree

import duckdb
import pyarrow.parquet
import pytest
from conftest import DATA

import pbfhogg

DAY = DATA / "000466354.osc.gz"


def changes_of_the_text() -> List[Dict[str, Any]]:
    """Return the rows of the change file as a plain parser reads them."""
    rows = []
    for section in ElementTree.fromstring(gzip.decompress(DAY.read_bytes())):
        for item in section:
            place = item.attrib
            members = [{**member.attrib, "ref": int(member.attrib["ref"])} for member in item.iter("member")]
            rows.append(
                {
                    "action": section.tag,
                    "type": item.tag,
                    "id": int(place["id"]),
                    "version": int(place["version"]),
                    "changeset": int(place["changeset"]),
                    "uid": int(place["uid"]),
                    "user": place["user"],
                    "tags": [(tag.attrib["k"], tag.attrib["v"]) for tag in item.iter("tag")],
                    "lat": float(place["lat"]) if "lat" in place else None,
                    "lon": float(place["lon"]) if "lon" in place else None,
                    "refs": [int(node.attrib["ref"]) for node in item.iter("nd")] if item.tag == "way" else None,
                    "members": members if item.tag == "relation" else None,
                }
            )
    return rows


def test_changes_are_those_of_the_text() -> None:
    """All columns of all changes, in the order of the file."""
    found = pbfhogg.changes(DAY).to_arrow().to_pylist()
    for row in found:
        assert row.pop("timestamp").year > 2000
    assert found == changes_of_the_text()
    nodes = pbfhogg.changes(DAY, kinds="node", columns=["id", "action"])
    expected = [(row["id"], row["action"]) for row in changes_of_the_text() if row["type"] == "node"]
    assert [(row["id"], row["action"]) for row in nodes.to_arrow().to_pylist()] == expected


def test_wrong_change_files() -> None:
    """A file that has no changes, and one that is not there."""
    with pytest.raises(pbfhogg.Error, match="PBF"):
        pbfhogg.changes(DATA / "helsinki.osm.pbf").to_arrow()
    with pytest.raises(pbfhogg.Error, match="not-there"):
        pbfhogg.changes("not-there.osc")
    with pytest.raises(ValueError, match="columns: .*there are action, type"):
        pbfhogg.changes(DAY, columns=["visible"])


@pytest.fixture
def day(tmp_path: Path) -> Path:
    """A change file for Helsinki: roads that move, a node that goes, and one that comes."""
    before, after = DATA / "helsinki.osm.pbf", tmp_path / "after.osm.opl"
    pbfhogg.cat([before], after)
    lines = after.read_text().split("\n")
    moved = [index for index, line in enumerate(lines) if line.startswith("n")][5::50]
    for index in moved:
        lines[index] = lines[index].replace(" y60.", " y60.0")
    lines.insert(0, "n-7 v1 dV c7 t2024-01-01T00:00:00Z i7 uMaria Tnatural=tree x24.94 y60.17")
    after.write_text("\n".join(lines))
    changes = tmp_path / "day.osc"
    pbfhogg.diff(before, after, changes, format="osc")
    return changes


def test_actions_are_those_of_the_program(day: Path, tmp_path: Path) -> None:
    """The table has the rows that the program writes."""
    table = tmp_path / "day.parquet"
    summary = pbfhogg.augmented_diff(DATA / "helsinki.osm.pbf", day, table)
    expected = pyarrow.parquet.read_table(table).to_pylist()
    assert summary["written"] if "written" in summary else expected
    found = pbfhogg.augmented_diff(DATA / "helsinki.osm.pbf", [day]).to_arrow()
    assert found.column_names == pyarrow.parquet.read_table(table).column_names
    rows = found.to_pylist()
    for row, wanted in zip(rows, expected, strict=True):
        box, wanted_box = row.pop("bbox"), wanted.pop("bbox")
        assert (box is None) == (wanted_box is None)
        for edge in box or ():
            assert abs(box[edge] - wanted_box[edge]) < 1e-5
    assert rows == expected
    assert {row["action"] for row in rows} == {"create", "modify"} and any(row["indirect"] for row in rows)


def test_actions_are_selected(day: Path) -> None:
    """By a box, tags, and whether an object has a change of its own."""
    before = DATA / "helsinki.osm.pbf"
    every = pbfhogg.augmented_diff(before, day).to_arrow()
    direct = pbfhogg.augmented_diff(before, day, direct_only=True, columns=["type", "id", "indirect"]).to_arrow()
    assert 0 < direct.num_rows < every.num_rows and not any(direct["indirect"].to_pylist())
    roads = pbfhogg.augmented_diff(before, day, filter="w/highway")
    query = "SELECT bool_and(new_tags['highway'] IS NOT NULL), count(*) > 0 FROM roads"
    assert duckdb.sql(query).fetchall() == [(True, True)]
    box = (24.9400, 60.1660, 24.9450, 60.1700)
    within = pbfhogg.augmented_diff(before, day, bbox=box, columns=["id"]).to_arrow()
    assert 0 < within.num_rows < every.num_rows
    with pytest.raises(TypeError, match="max_memory"):
        pbfhogg.augmented_diff(before, day, max_memory="1G")  # type: ignore[call-overload]


def test_changes_between_two_files_are_listed_and_counted(tmp_path: Path) -> None:
    """As a table of comma-separated values, by changeset, and in a boundary of the new file."""
    before, after = DATA / "andorra-b.osm.pbf", DATA / "andorra-c.osm.pbf"
    table = tmp_path / "changes.csv"
    summary = pbfhogg.diff(before, after, table, format="csv")
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for action, field in [("create", "created"), ("modify", "modified"), ("delete", "deleted")]:
        assert sum(row["action"] == action for row in rows) == summary[field] > 0
    town = pbfhogg.diff(before, after, tmp_path / "town.csv", format="csv", area="Canillo")
    assert 0 < town["modified"] < summary["modified"]
    cut = pbfhogg.extract(after, tmp_path / "town.osm.pbf", area="Canillo")
    named = pbfhogg.extract(after, tmp_path / "again.osm.pbf", polygon="r2804754")
    assert cut["extracts"][0]["written"] == named["extracts"][0]["written"]
