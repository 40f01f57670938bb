"""The types of what commands return."""

from __future__ import annotations

import typing
from pathlib import Path
from typing import Any, Dict, List, Union

import pytest

import pbfhogg
from pbfhogg import _commands


def mistakes(value: Any, expected: Any, place: str) -> List[str]:
    """Return where a value is not what a type says."""
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if expected is Any or (origin is Union and value is None and type(None) in arguments):
        return []
    if origin is Union:
        return mistakes(value, arguments[0], place)
    if origin is list and isinstance(value, list):
        return [fault for one in value for fault in mistakes(one, arguments[0], f"{place}[]")]
    if origin is dict and isinstance(value, dict):
        return [fault for key in value for fault in mistakes(value[key], arguments[1], f"{place}.{key}")]
    if typing.is_typeddict(expected) and isinstance(value, dict):
        hints = typing.get_type_hints(expected)
        found = [f"{place}.{key} has no type" for key in value.keys() - hints.keys()]
        found += [f"{place}.{key} is missing" for key in expected.__required_keys__ - value.keys()]
        for key in value.keys() & hints.keys():
            found += mistakes(value[key], hints[key], f"{place}.{key}")
        return found
    is_right = type(value) is expected or (expected is float and type(value) is int)
    return [] if is_right else [f"{place} is {value!r}, not {expected}"]


def calls(helsinki: Path, directory: Path) -> Dict[str, List[Any]]:
    """Return what commands return, by their names."""
    part, box = directory / "part.osm.pbf", (24.940, 60.168, 24.945, 60.172)
    out = lambda name: directory / f"{name}.osm.pbf"
    synth = pbfhogg.synth(out("synth"), objects=20_000, changes=2, changes_dir=directory)
    days = [day["path"] for day in synth["days"]]
    sorted_file = out("sorted")
    regions = directory / "regions.json"
    regions.write_text('{"extracts": [{"output": "all.osm.pbf", "bbox": [-180, -90, 180, 90]}]}')
    results: Dict[str, List[Any]] = {
        "synth": [synth],
        "extract": [pbfhogg.extract(helsinki, part, bbox=box)],
        "sort": [pbfhogg.sort(part, sorted_file)],
        "merge": [pbfhogg.merge([part, helsinki], out("merged"))],
        "cat": [pbfhogg.cat(helsinki, out("cat")), pbfhogg.cat(part, directory / "part.opl")],
        "inspect": [
            pbfhogg.inspect(helsinki),
            pbfhogg.inspect(
                out("cat"), extended=True, nodes=True, locations=True, anomalies=True, id_ranges=True, blocks=3, top=2
            ),
        ],
        "fileinfo": [pbfhogg.fileinfo(helsinki)],
        "check": [
            pbfhogg.check(part),
            pbfhogg.check(helsinki, full=True, check_relations=True, show_ids=True),
            pbfhogg.check(helsinki, areas=True, doubled=True),
        ],
        "diff": [pbfhogg.diff(helsinki, part)],
        "getid": [pbfhogg.getid(helsinki, ["n1", "w999999999999"], out("getid"))],
        "getparents": [pbfhogg.getparents(helsinki, ["n25389429"], out("parents"))],
        "tags_filter": [
            pbfhogg.tags_filter(helsinki, "w/highway", out("filtered")),
            pbfhogg.tags_filter(days[0], "highway", directory / "filtered.osc"),
        ],
        "tags_edit": [
            pbfhogg.tags_edit(helsinki, out("edited"), rule=["w/highway&!name: set unnamed=yes", "drop source"]),
            pbfhogg.tags_edit(helsinki, drop="name", dry_run=True),
            pbfhogg.tags_edit(days[0], directory / "edited.osc", drop="name"),
        ],
        "regions": [
            pbfhogg.regions(out("synth"), config=regions, directory=directory / "regions", max_shrink=100),
        ],
        "export": [
            pbfhogg.export(helsinki, directory / "all.geojson"),
            pbfhogg.export(helsinki, directory / "all.parquet"),
        ],
        "coastline": [
            pbfhogg.coastline(helsinki, directory / "coast"),
            pbfhogg.coastline(part, directory / "sea", inside="water", against=directory / "coast"),
        ],
        "augmented_diff": [pbfhogg.augmented_diff(out("synth"), days, directory / "diff.adiff")],
        "apply_changes": [pbfhogg.apply_changes(out("synth"), days, out("applied"))],
        "merge_changes": [pbfhogg.merge_changes(days, directory / "merged.osc.gz")],
        "build_geocode_index": [pbfhogg.build_geocode_index(helsinki, directory / "index")],
        "add_locations_to_ways": [
            pbfhogg.add_locations_to_ways(helsinki, out("located"), ignore_missing_nodes=True),
            pbfhogg.add_locations_to_ways(
                helsinki, out("external"), ignore_missing_nodes=True, index_type="external"
            ),
        ],
        "renumber": [pbfhogg.renumber(helsinki, out("renumbered"))],
        "repack": [pbfhogg.repack(helsinki, out("repacked"))],
        "repair": [pbfhogg.repair(helsinki, out("repaired"))],
        "split": [pbfhogg.split(out("cat"), directory / "parts", parts=2)],
        "degrade": [pbfhogg.degrade(helsinki, out("degraded"), unsort=True)],
        "time_filter": [pbfhogg.time_filter("deleted_nodes.osh.pbf", "2020-01-01T00:00:00Z", output=out("then"))],
        "create_locations_index": [pbfhogg.create_locations_index(out("synth"), index_file=directory / "nodes.idx")],
    }
    return results


@pytest.mark.filterwarnings("ignore")
def test_summaries_have_the_fields_of_their_types(helsinki: Path, tmp_path: Path) -> None:
    """No more, and no fewer."""
    found: List[str] = []
    for name, summaries in calls(helsinki, tmp_path).items():
        for summary in summaries:
            found += mistakes(summary, _commands.SUMMARIES[name], name)
    found += mistakes(pbfhogg.info(helsinki), pbfhogg.summaries.InspectSummary, "info")
    assert found == []


def test_types_are_those_of_commands() -> None:
    """A command without a type in `pbfhogg.summaries` returns anything."""
    assert _commands.SUMMARIES.keys() <= _commands.FUNCTIONS.keys()
