"""Regions: files, and polygons of other libraries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, List

import geopandas
import pytest
import shapely

import pbfhogg

HOLE = [(24.943, 60.168), (24.946, 60.168), (24.944, 60.170)]
TRIANGLE = shapely.Polygon([(24.938, 60.166), (24.950, 60.167), (24.944, 60.176)], [HOLE])
SQUARE = shapely.box(24.946, 60.172, 24.949, 60.174)


@pytest.fixture
def files(tmp_path: Path) -> List[Path]:
    """The regions as files."""
    paths = []
    for name, shape in [("one", TRIANGLE), ("both", shapely.MultiPolygon([TRIANGLE, SQUARE]))]:
        paths.append(tmp_path / f"{name}.geojson")
        paths[-1].write_text(json.dumps(shape.__geo_interface__))
    return paths


def ids(table: pbfhogg.Table) -> List[Any]:
    return [(row["osm_type"], row["osm_id"]) for row in table]


def series(shapes: List[Any], crs: str) -> geopandas.GeoSeries:
    return geopandas.GeoSeries(shapes, crs="EPSG:4326").to_crs(crs)


def test_polygons_are_geometries_or_files(helsinki: Path, tmp_path: Path, files: List[Path]) -> None:
    """The same features, whatever the polygon comes from."""
    one, both = [ids(pbfhogg.features(helsinki, polygon=path)) for path in files]
    assert 0 < len(one) < len(both)
    assert ids(pbfhogg.features(helsinki, polygon=str(files[0]))) == one
    assert ids(pbfhogg.features(helsinki, polygon=TRIANGLE)) == one
    assert ids(pbfhogg.features(helsinki, polygon=TRIANGLE.__geo_interface__)) == one
    for region in (
        shapely.MultiPolygon([TRIANGLE, SQUARE]),
        [TRIANGLE, SQUARE],
        series([TRIANGLE, None, shapely.Polygon(), SQUARE], "EPSG:4326"),
        geopandas.GeoDataFrame({"name": ["a", "b"]}, geometry=series([TRIANGLE, SQUARE], "OGC:CRS84")),
        shapely.GeometryCollection([TRIANGLE, shapely.MultiPolygon([SQUARE])]),
    ):
        assert ids(pbfhogg.features(helsinki, polygon=region)) == both


def test_regions_of_other_reference_systems_are_in_degrees(helsinki: Path) -> None:
    """Up to the last digits."""
    there = {*ids(pbfhogg.features(helsinki, polygon=TRIANGLE))}
    found = {*ids(pbfhogg.features(helsinki, polygon=series([TRIANGLE], "EPSG:3857")))}
    assert len(there ^ found) <= 2


def test_commands_take_the_same_regions(helsinki: Path, tmp_path: Path, files: List[Path]) -> None:
    expected, found = tmp_path / "a.osm.pbf", tmp_path / "b.osm.pbf"
    pbfhogg.extract(helsinki, expected, polygon=files[1])
    for region in ([TRIANGLE, SQUARE], series([TRIANGLE, SQUARE], "EPSG:4326")):
        pbfhogg.extract(helsinki, found, polygon=region, overwrite=True)
        assert found.read_bytes() == expected.read_bytes()
    cut = tmp_path / "cut.geojson"
    pbfhogg.export(helsinki, cut, clip=TRIANGLE)
    features = json.loads(cut.read_text())["features"]
    shapes = [shapely.geometry.shape(feature["geometry"]) for feature in features]
    assert shapes and all(shape.within(TRIANGLE.buffer(1e-6)) for shape in shapes)


def test_a_polygon_cuts(helsinki: Path) -> None:
    frame = pbfhogg.features(helsinki, polygon=TRIANGLE, clip=True).to_geopandas()
    assert frame.within(TRIANGLE.buffer(1e-6)).all()


def test_actions_are_those_in_a_polygon() -> None:
    world = [shapely.box(-179, -85, -1, 85), shapely.box(1, -85, 179, 85)]
    change = "000466354.osc.gz"
    every = pbfhogg.augmented_diff("malta.osm.pbf", change)
    assert 0 < len(pbfhogg.augmented_diff("malta.osm.pbf", change, polygon=world)) <= len(every)
    assert len(pbfhogg.augmented_diff("malta.osm.pbf", change, polygon=shapely.box(0, 0, 0.001, 0.001))) == 0


def test_regions_that_are_none(helsinki: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="polygon: there is no polygon"):
        pbfhogg.features(helsinki, polygon=shapely.Polygon())
    with pytest.raises(ValueError, match="polygon: there is a bbox"):
        pbfhogg.features(helsinki, polygon=TRIANGLE, bbox=TRIANGLE.bounds)
    with pytest.raises(TypeError, match="polygon: expected polygons, not a LineString"):
        pbfhogg.features(helsinki, polygon=TRIANGLE.exterior.__geo_interface__ | {"type": "LineString"})
    with pytest.raises(ValueError, match="clip: there is no bbox, polygon or area"):
        pbfhogg.features(helsinki, clip=True)
    with pytest.raises(pbfhogg.Error, match="not-there"):
        pbfhogg.features(helsinki, polygon=tmp_path / "not-there.geojson")


def test_regions_are_boundaries_of_the_file(tmp_path: Path) -> None:
    """By name and by id: as a file with the boundary, and as commands take them."""
    file, boundary = "andorra-a.osm.pbf", tmp_path / "boundary.osm.pbf"
    pbfhogg.getid(file, "r2804755", boundary, add_referenced=True)
    expected = ids(pbfhogg.features(file, polygon=boundary))
    assert 0 < len(expected) < len(pbfhogg.features(file))
    for given in ({"polygon": "r2804755"}, {"area": "Encamp"}):
        assert ids(pbfhogg.features(file, **given)) == expected  # type: ignore[arg-type]
    cut = pbfhogg.features(file, area="Encamp", clip=True).to_geopandas()
    assert 0 < len(cut) <= len(expected)
    with open(file, "rb") as data:
        assert ids(pbfhogg.features(data.read(), area="Encamp")) == expected
    actions = pbfhogg.augmented_diff(file, "000466354.osc.gz", area="Encamp")
    assert len(actions) <= len(pbfhogg.augmented_diff(file, "000466354.osc.gz"))
    with pytest.raises(pbfhogg.Error, match="no boundary of the file has the name 'Nowhere'"):
        pbfhogg.features(file, area="Nowhere")
    with pytest.raises(pbfhogg.Error, match="r4711: there is no multipolygon or boundary"):
        pbfhogg.read(file, polygon="r4711")
    with pytest.raises(ValueError, match="area: there is a polygon"):
        pbfhogg.features(file, polygon="r2804755", area="Encamp")
    with pytest.raises(ValueError, match="area: there is a bbox"):
        pbfhogg.read(file, bbox=(1, 42, 2, 43), area="Encamp")


def test_objects_are_those_in_a_region(helsinki: Path, tmp_path: Path) -> None:
    """As the objects that an extract without completed ways has, but for parents of relations."""
    for region in (TRIANGLE, shapely.MultiPolygon([TRIANGLE, SQUARE])):
        cut = tmp_path / "cut.osm.pbf"
        pbfhogg.extract(helsinki, cut, polygon=region, strategy="simple", overwrite=True)
        for kind in ("node", "way"):
            expected = [row["id"] for row in pbfhogg.read(cut, kinds=kind, columns=["id"])]
            assert [row["id"] for row in pbfhogg.read(helsinki, kinds=kind, polygon=region, columns=["id"])] == expected
            assert [one.id for one in pbfhogg.objects(helsinki, kinds=kind, polygon=region)] == expected
        relations = {row["id"] for row in pbfhogg.read(helsinki, kinds="relation", polygon=region, columns=["id"])}
        assert relations and relations <= {row["id"] for row in pbfhogg.read(cut, kinds="relation", columns=["id"])}
    box = (24.938, 60.166, 24.946, 60.172)
    inside = pbfhogg.read(helsinki, bbox=box, columns=["type", "id"])
    assert list(pbfhogg.read(helsinki, polygon=shapely.box(*box), columns=["type", "id"])) == list(inside)
