"""Boxes and geometries across the antimeridian."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, List

import numpy
import pytest

import pbfhogg
from pbfhogg import _pbfhogg

#: Objects across the antimeridian without a node between 175 degrees east and 175 degrees west; two nodes beside it,
#: and two on it; and a node in the same latitude at Greenwich.
WORLD = """\
n1 v1 x169 y65
n2 v1 x-169 y65
n3 v1 x-169 y66
n4 v1 x169 y66
n5 v1 x179 y64 Tplace=village
n6 v1 x-179 y64 Tplace=village
n7 v1 x180 y63 Tplace=village
n8 v1 x-180 y62 Tplace=village
n9 v1 x-0.5 y64 Tplace=village
w1 v1 Nn1,n2 Troute=ferry
w2 v1 Nn1,n2,n3,n4,n1 Tlanduse=forest
w3 v1 Nn1,n2
w4 v1 Nn2,n3,n4,n1
w5 v1 Nn5,n6 Thighway=track
r1 v1 Ttype=multipolygon,natural=water Mw3@outer,w4@outer
r2 v1 Ttype=route,route=ferry Mw1@
r3 v1 Ttype=site Mn6@
"""
ACROSS = (175, 60, -175, 70)
GREENWICH = (-1, 60, 1, 70)


@pytest.fixture
def world(tmp_path: Path) -> Path:
    path = tmp_path / "world.opl"
    path.write_text(WORLD)
    return path


def names(table: Any) -> List[str]:
    """The objects of a table, such as ``w1``."""
    rows = table.to_arrow().to_pylist()
    return [(row.get("type") or row["osm_type"])[0] + str(row.get("id") or row["osm_id"]) for row in rows]


def test_features_are_judged_after_they_were_cut(world: Path) -> None:
    """Lines and areas are in a box at the antimeridian if their parts are, and not in one at Greenwich."""
    across = pbfhogg.features(world, bbox=ACROSS)
    assert names(across) == ["n5", "n6", "n7", "n8", "w1", "w2", "w5", "r1", "r2"]
    assert names(pbfhogg.features(world, bbox=GREENWICH)) == ["n9"]
    cut = pbfhogg.features(world, bbox=ACROSS, clip=True, kinds="way").to_geopandas()
    west, south, east, north = cut.total_bounds
    assert (west, south, east, north) == (-180, 64, 180, 66)
    parts = cut.geometry.explode().bounds
    assert len(parts) == 6 and (parts[["minx", "maxx"]].abs() >= 175).all(axis=None)


def test_a_place_on_the_antimeridian_is_on_both_sides(world: Path) -> None:
    """180 and -180 degrees are the same longitude."""
    for box in [(175, 61, 180, 63.5), (180, 61, -175, 63.5), (-180, 61, -175, 63.5), (175, 61, -180, 63.5)]:
        assert names(pbfhogg.features(world, bbox=box)) == ["n7", "n8"], box
        assert names(pbfhogg.read(world, bbox=box)) == ["n7", "n8"], box


def test_objects_have_nodes_on_both_sides(world: Path) -> None:
    """Nodes, ways with a node, and relations with a member, as in a box that does not cross the antimeridian."""
    expected = ["n5", "n6", "n7", "n8", "w5", "r3"]
    indexed = world.with_suffix(".osm.pbf")
    pbfhogg.cat(world, indexed)
    for path in [world, indexed]:
        assert names(pbfhogg.read(path, bbox=ACROSS, columns=["type", "id"])) == expected
        assert [one.type[0] + str(one.id) for one in pbfhogg.objects(path, bbox=ACROSS)] == expected
        assert names(pbfhogg.read(path, bbox=GREENWICH, columns=["type", "id"])) == ["n9"]


def test_actions_are_judged_on_the_map(world: Path, tmp_path: Path) -> None:
    """An object whose old or new geometry crosses the box, without a node in it."""
    change = tmp_path / "c.osc"
    change.write_text(
        '<osmChange version="0.6"><modify><node id="1" version="2" lat="65.0000001" lon="169"/></modify></osmChange>'
    )
    found = pbfhogg.augmented_diff(world, change, bbox=ACROSS, columns=["type", "id"])
    assert sorted(names(found)) == ["r1", "r2", "w1", "w2", "w3", "w4"]
    assert names(pbfhogg.augmented_diff(world, change, bbox=GREENWICH, columns=["type", "id"])) == []


def test_a_box_around_the_other_side_is_probably_a_mistake(world: Path) -> None:
    """A warning names the box between the same edges."""
    with pytest.warns(UserWarning, match="bbox: .* is 358.0 degrees wide"):
        pbfhogg.read(world, bbox=(1, 60, -1, 70))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pbfhogg.read(world, bbox=ACROSS)


def test_a_box_is_plain_boxes_on_the_map() -> None:
    """One on each side of the antimeridian, as :mod:`pbfhogg.spark` compares them with the boxes of splits."""
    assert _pbfhogg.plain_boxes(ACROSS) == [(175, 60, 180, 70), (-180, 60, -175, 70)]
    assert _pbfhogg.plain_boxes((1, 2, 3, 4)) == [(1, 2, 3, 4)]
    with pytest.raises(ValueError, match="bbox: "):
        _pbfhogg.plain_boxes((1, 2, 181, 4))


def test_commands_take_boxes_across_the_antimeridian(world: Path, tmp_path: Path) -> None:
    """As texts, and as any four numbers."""
    boxes: List[Any] = ["175,60,-175,70", ACROSS, list(ACROSS), numpy.array(ACROSS)]
    results = []
    for number, box in enumerate(boxes):
        part, lines = tmp_path / f"{number}.opl", tmp_path / f"{number}.geojson"
        pbfhogg.extract(world, part, bbox=box)
        pbfhogg.export(world, lines, bbox=box)
        results.append((part.read_bytes(), lines.read_bytes()))
    assert all(result == results[0] for result in results)
    extracted = {one.type[0] + str(one.id) for one in pbfhogg.objects(part)}
    assert {"n5", "n6", "n7", "n8", "w5"} <= extracted and "n9" not in extracted
