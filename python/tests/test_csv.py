"""Comma-separated values as other programs read them: equal to GeoJSON, to GeoParquet and to the objects."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, Dict, List

import duckdb
import pandas
import pyarrow.parquet
import pytest

import pbfhogg
from conftest import DATA

Row = Dict[str, str]
#: Columns that are numbers, and those of numbers with a fraction.
NUMBERS, FRACTIONS = ("id", "version", "changeset", "uid"), ("area_m2", "length_m", "centroid_lon", "centroid_lat")


def rows_of(table: Path) -> List[Row]:
    """Return the rows of a table, which all programs have to read alike."""
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    frame = pandas.read_csv(table, dtype=str, keep_default_na=False)
    assert frame.to_dict("records") == rows
    relation = duckdb.sql(f"SELECT * FROM read_csv('{table}', all_varchar = true, parallel = false)")
    found = [dict(zip(relation.columns, map(lambda value: value or "", values))) for values in relation.fetchall()]
    assert found == rows
    return rows


def metadata_of(row: Row, prefix: str = "") -> Dict[str, Any]:
    """Return the attributes of an object. Those that it does not have are ``None``."""
    names = ("type", *NUMBERS, "user", "timestamp")
    values = {name: row[prefix + name] or None for name in names}
    return {name: int(value) if value and name in NUMBERS else value for name, value in values.items()}


def time_of(value: Any) -> Any:
    return value and value.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize("name", ["helsinki.osm.pbf", "malta.osm.pbf"])
def test_features_are_those_of_geojson_and_geoparquet(name: str, tmp_path: Path) -> None:
    table, features, tables = [tmp_path / f"out.{ending}" for ending in ("csv", "geojsonseq", "parquet")]
    tags = ["amenity", "shop", "w/highway=primary,secondary", "natural"]
    computed = ["area", "length", "centroid", "names", "h3:7"]
    pbfhogg.export(DATA / name, table, filter=tags, metadata=True, with_=computed)
    pbfhogg.export(DATA / name, features, filter=tags, metadata=True)
    pbfhogg.export(DATA / name, tables, filter=tags, with_=computed, line_relations="none")
    rows = rows_of(table)
    lines = features.read_text(encoding="utf-8").rstrip("\n").split("\n")
    assert len(rows) == len(lines) > 100
    # A way may become a line and an area.
    stored = {
        (row["osm_type"], row["osm_id"], row["area_m2"] is not None): row
        for row in pyarrow.parquet.read_table(tables).to_pylist()
    }
    assert len(stored) == len(rows)
    for row, line in zip(rows, lines):
        feature = json.loads(line.lstrip("\x1e"))
        known = metadata_of(row, "@")
        attributes = {f"@{key}": value for key, value in known.items() if key != "timestamp"}
        properties = {key: value or None for key, value in feature["properties"].items() if key in attributes}
        assert properties == attributes
        tags_of_row = json.loads(row["tags"])
        assert {key: value for key, value in feature["properties"].items() if key[:1] != "@"} == tags_of_row
        assert row["name"] == tags_of_row.get("name", "")
        if feature["geometry"]["type"] == "Point":
            assert feature["geometry"]["coordinates"] == [float(row["@lon"]), float(row["@lat"])]
        other = stored[known["type"], known["id"], row["area_m2"] != ""]
        assert dict(other["tags"]) == tags_of_row
        assert dict(other["names"]) == json.loads(row["names"])
        for key in ("version", "changeset", "uid", "user"):
            assert (other[key] or None) == known[key]
        assert time_of(other["timestamp"]) == known["timestamp"]
        for key in FRACTIONS:
            assert other[key] == (float(row[key]) if row[key] else None)
        assert other["h3_7"] == row["h3_7"]


@pytest.mark.parametrize("name", ["helsinki.osm.pbf", "monaco.osm.pbf"])
def test_objects_are_those_of_read(name: str, tmp_path: Path) -> None:
    table = tmp_path / "objects.csv"
    pbfhogg.cat(DATA / name, table)
    rows = rows_of(table)
    objects = pbfhogg.read(DATA / name, columns=["type", *NUMBERS, "user", "timestamp", "lon", "lat", "tags"])
    count = 0
    for row, expected in zip(rows, objects):
        found = metadata_of(row)
        for key in ("type", *NUMBERS, "user"):
            assert found[key] == expected[key]
        assert found["timestamp"] == time_of(expected["timestamp"])
        for key in ("lon", "lat"):
            assert (float(row[key]) if row[key] else None) == expected[key]
        assert json.loads(row["tags"]) == dict(expected["tags"])
        count += 1
    assert count == len(rows) == len(objects)


def test_columns_of_keys(helsinki: Path, tmp_path: Path) -> None:
    table = tmp_path / "cafes.csv"
    pbfhogg.tags_filter(
        helsinki, "n/amenity=cafe", output=table, output_format="csv,columns=name+opening_hours,add_metadata=false"
    )
    rows = rows_of(table)
    assert list(rows[0]) == ["type", "id", "lon", "lat", "name", "opening_hours"]
    cafes = {cafe.id: cafe.tags for cafe in pbfhogg.objects(helsinki, kinds="node", tags="amenity=cafe")}
    assert {int(row["id"]): row["name"] for row in rows} == {id: tags.get("name", "") for id, tags in cafes.items()}
