"""What a table is, and what it can do."""

from __future__ import annotations

from pathlib import Path

import polars
import pyarrow
import pytest

import pbfhogg


def test_a_table_is_like_other_tables(helsinki: Path) -> None:
    """It has columns, a schema, a length, first rows and rows."""
    table = pbfhogg.read(helsinki, kinds="way", columns=["id", "tags", "refs"])
    whole = table.to_arrow()
    assert table.columns == table.column_names == ["id", "tags", "refs"]
    assert table.schema == whole.schema
    assert len(table) == whole.num_rows == 5130
    assert bool(table) and bool(pbfhogg.read(helsinki, tags="nothing=here"))
    rows = list(table)
    assert [row["id"] for row in rows] == whole["id"].to_pylist()
    assert rows[7] == {**whole.slice(7, 1).to_pylist()[0], "tags": dict(whole["tags"][7].as_py())}


@pytest.mark.parametrize("count", [0, 1, 5, 10_000_000])
def test_the_head_of_a_table_has_its_first_rows(helsinki: Path, count: int) -> None:
    table = pbfhogg.read(helsinki)
    assert table.head(count) == table.to_arrow().slice(0, count)


def test_the_head_is_not_negative(helsinki: Path) -> None:
    with pytest.raises(ValueError, match="n: "):
        pbfhogg.read(helsinki).head(-1)
    assert pbfhogg.read(helsinki).head().num_rows == 5


def test_every_table_counts_its_rows(helsinki: Path, tmp_path: Path) -> None:
    """Without columns, too."""
    change = "000466354.osc.gz"
    pbfhogg.build_geocode_index(helsinki, tmp_path / "index")
    places = pbfhogg.Geocoder(tmp_path / "index").reverse_many([60.17, 60.18], [24.94, 24.95])
    tables = [
        pbfhogg.read(helsinki),
        pbfhogg.read(helsinki, kinds="node", bbox=(24.940, 60.168, 24.945, 60.172), columns=[]),
        pbfhogg.features(helsinki, columns=["building"]),
        pbfhogg.features(helsinki, tags="building", geometry=False),
        pbfhogg.changes(change),
        pbfhogg.changes(change, kinds="way"),
        pbfhogg.augmented_diff("malta.osm.pbf", change),
        places,
    ]
    for table in tables:
        assert len(table) == sum(len(batch) for batch in table.batches()) > 0


def test_readers_do_not_take_a_table_for_a_list(helsinki: Path) -> None:
    """A table that can be looped over is still read by its stream."""
    table = pbfhogg.read(helsinki, kinds="relation", columns=["id", "tags"])
    assert polars.DataFrame(table).columns == ["id", "tags"]
    assert pyarrow.table(table).num_rows == len(table)


def test_a_table_says_what_it_can(helsinki: Path) -> None:
    text = repr(pbfhogg.features(helsinki, columns=["name"]))
    names = ["to_arrow", "to_polars", "to_pandas", "to_geopandas", "head", "batches"]
    assert "name, geometry" in text and all(f"{name}()" in text for name in names)
    assert all(callable(getattr(pbfhogg.Table, name)) for name in names)
    assert "geopandas" not in repr(pbfhogg.read(helsinki))


def test_names_that_are_public_are_listed() -> None:
    assert sorted(pbfhogg.__all__) == dir(pbfhogg)
    assert all(not name.startswith("_") or name == "__version__" for name in dir(pbfhogg))
    public = {name for name in vars(pbfhogg) if not name.startswith("_")} - {"spark"}
    assert public <= set(dir(pbfhogg))


def test_geometries_have_the_reference_system_that_is_asked_for(helsinki: Path) -> None:
    table = pbfhogg.features(helsinki, tags="building", columns=["osm_id"])
    degrees = table.to_geopandas()
    assert degrees.crs == "EPSG:4326"
    same = table.to_geopandas(crs="OGC:CRS84")
    assert same.crs == "OGC:CRS84" and (same.total_bounds == degrees.total_bounds).all()
    metres = table.to_geopandas(crs="EPSG:3067")
    assert metres.crs == "EPSG:3067" and 385_000 < metres.total_bounds[0] < 386_000
