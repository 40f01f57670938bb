"""Tables of features."""

from __future__ import annotations

from pathlib import Path

import geopandas
import pyarrow.parquet
import pytest
from conftest import DATA, some_files

import pbfhogg


@pytest.mark.parametrize("name", [name for name in some_files() if name.endswith(".osm.pbf")])
def test_features_are_those_of_export(name: str, tmp_path: Path) -> None:
    """The same rows as in the Parquet that the program writes."""
    pbfhogg.export(DATA / name, tmp_path / "all.parquet", with_="area,length")
    exported = pyarrow.parquet.read_table(tmp_path / "all.parquet")
    columns = ["osm_type", "osm_id", "version", "timestamp", "tags", "area_m2", "length_m"]
    table = pbfhogg.features(DATA / name, columns=columns).to_arrow()
    key = lambda row: (row["osm_type"], row["osm_id"], row["geometry"])
    wanted = exported.select([*columns, "geometry"]).to_pylist()
    assert sorted(table.to_pylist(), key=key) == sorted(wanted, key=key)


def test_columns_of_tags_and_boxes(helsinki: Path) -> None:
    """A column has the value of its tag; a box selects by geometry, and cuts if asked to."""
    table = pbfhogg.features(helsinki, tags="building", columns=["name", "height"])
    assert table.column_names == ["name", "height", "geometry"]
    frame = table.to_geopandas()
    assert isinstance(frame, geopandas.GeoDataFrame) and frame.crs == "EPSG:4326"
    tags = pbfhogg.features(helsinki, tags="building").to_pandas()["tags"]
    assert frame["name"].dropna().tolist() == [one["name"] for one in tags if "name" in one]
    box = (24.940, 60.168, 24.945, 60.172)
    whole = pbfhogg.features(helsinki, bbox=box).to_geopandas()
    cut = pbfhogg.features(helsinki, bbox=box, clip=True).to_geopandas()
    assert 0 < len(cut) <= len(whole) < len(pbfhogg.features(helsinki).to_pandas())
    west, south, east, north = cut.total_bounds
    assert west >= box[0] and south >= box[1] and east <= box[2] and north <= box[3]


def test_metadata(helsinki: Path) -> None:
    """Metadata is there if it is asked for."""
    table = pbfhogg.features(helsinki, kinds="way", columns=["osm_id", "version", "timestamp"]).to_arrow()
    of_object = {row.id: row.version for row in pbfhogg.objects(helsinki, kinds="way")}
    assert all(of_object[row["osm_id"]] == row["version"] for row in table.to_pylist())


def test_a_key_occurs_once_in_maps(tmp_path: Path) -> None:
    file = tmp_path / "repeated.opl"
    file.write_text("n1 v1 x1 y1 Tname=first,name=second,name:de=a,name:de=b\nn2 v1 x1 y1 Tname=x\n")
    change = tmp_path / "change.osc"
    change.write_text(
        "<osmChange version='0.6'><modify><node id='1' version='2' lat='1' lon='2'>"
        "<tag k='name' v='third'/><tag k='name' v='fourth'/></node></modify></osmChange>"
    )
    first = {"name": "first", "name:de": "a"}
    features = pbfhogg.features(str(file), columns=["tags", "name"]).to_arrow()
    assert dict(features["tags"][0].as_py()) == first
    assert len(features["tags"][0].as_py()) == 2
    assert features["name"].to_pylist() == ["first", "x"]
    objects = pbfhogg.read(str(file), columns=["tags"]).to_arrow()
    assert len(objects["tags"][0].as_py()) == 2
    assert [one.tags for one in pbfhogg.objects(str(file))] == [first, {"name": "x"}]
    changes = pbfhogg.changes(str(change), columns=["tags"]).to_arrow()
    assert changes["tags"][0].as_py() == [("name", "third")]
    actions = pbfhogg.augmented_diff(str(file), str(change), columns=["old_tags", "new_tags"]).to_arrow()
    assert dict(actions["old_tags"][0].as_py()) == first
    assert actions["new_tags"][0].as_py() == [("name", "third")]


def test_a_state_that_does_not_exist_has_no_tags(tmp_path: Path) -> None:
    """Tags are null before a creation and after a deletion, and empty for an object without tags."""
    file = tmp_path / "base.opl"
    file.write_text("n1 v1 x1 y1 Ta=b\nn2 v1 x2 y1\n")
    change = tmp_path / "change.osc"
    change.write_text(
        "<osmChange version='0.6'><create><node id='3' version='1' lat='1' lon='3'/></create>"
        "<delete><node id='1' version='2'/><node id='2' version='2'/></delete></osmChange>"
    )
    actions = pbfhogg.augmented_diff(str(file), str(change), columns=["old_tags", "new_tags"]).to_arrow()
    assert actions["old_tags"].to_pylist() == [[("a", "b")], [], None]
    assert actions["new_tags"].to_pylist() == [None, None, []]
    pbfhogg.augmented_diff(str(file), str(change), tmp_path / "a.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert table["old_tags"].to_pylist() == [[("a", "b")], [], None]
    assert table["new_tags"].to_pylist() == [None, None, []]


def test_a_feature_that_is_too_large_is_left_out(tmp_path: Path) -> None:
    """A route that names a way again and again has gigabytes of geometry. The other features are read."""
    nodes = [f"n{number} x{number // 1000}.{number % 1000:03} y50" for number in range(1, 2001)]
    way = "w1 Thighway=path N" + ",".join(f"n{number}" for number in range(1, 2001))
    route = "r1 Ttype=route M" + ",".join(["w1@"] * 20_000)
    path = tmp_path / "route.opl"
    path.write_text("\n".join([*nodes, way, route, ""]))
    batches = list(pbfhogg.features(path).batches())
    found = [row for batch in batches for row in pyarrow.record_batch(batch).to_pylist()]
    assert [(row["osm_type"], row["osm_id"]) for row in found] == [("way", 1)]


def test_a_batch_ends_by_its_size(tmp_path: Path) -> None:
    """Rows with long values are not held in one batch."""
    value = "x" * 1_000_000
    path = tmp_path / "long.opl"
    path.write_text("".join(f"n{number} x1 y2 Tname={value}\n" for number in range(1, 41)))
    for table in [pbfhogg.features(path), pbfhogg.read(path)]:
        lengths = [len(batch) for batch in table.batches()]
        assert sum(lengths) == 40 and max(lengths) < 20
