"""Six tasks in Python, with this package and with pyosmium: times, and lines of code.

    pip install ./python duckdb geopandas osmium polars
    python benches/python/tasks.py FILE LATER-FILE [--runs 5] [--only keys]

Both do a task in turn, each in a process of its own, and the medians count. Imports are not timed. The answers of both
are compared. LATER-FILE is FILE after changes. The table is Markdown.
"""

from __future__ import annotations

import argparse
import collections
import inspect
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List

import duckdb
import geopandas
import osmium
import pyarrow  # noqa: F401 (a table needs it; it is not part of the time)

import pbfhogg

BOX = (14.0, 35.7, 14.7, 36.2)
CLASSES = ["motorway", "trunk", "primary", "secondary", "tertiary", "residential", "unclassified", "service"]


def keys_pbfhogg(path: str) -> Any:
    objects = pbfhogg.read(path, columns=["tags"])
    counts = duckdb.sql("SELECT key, count(*) FROM (SELECT unnest(map_keys(tags)) AS key FROM objects) GROUP BY key")
    return dict(counts.fetchall())


def keys_pyosmium(path: str) -> Any:
    counts: Any = collections.Counter()
    for obj in osmium.FileProcessor(path).with_filter(osmium.filter.EmptyTagFilter()):
        counts.update(tag.k for tag in obj.tags)
    return dict(counts)


def names_pbfhogg(path: str) -> Any:
    ways = pbfhogg.read(path, kinds="way", tags="name", bbox=BOX, columns=["id", "tags"]).to_arrow()
    return sorted(ways["id"].to_pylist())


def names_pyosmium(path: str) -> Any:
    left, bottom, right, top = BOX
    found = []
    ways = osmium.FileProcessor(path).with_locations().with_filter(osmium.filter.EntityFilter(osmium.osm.WAY))
    for way in ways.with_filter(osmium.filter.KeyFilter("name")):
        for node in way.nodes:
            place = node.location
            if place.valid() and left <= place.lon <= right and bottom <= place.lat <= top:
                found.append(way.id)
                break
    return sorted(found)


def roads_pbfhogg(path: str) -> Any:
    roads = pbfhogg.features(path, kinds="way", tags="highway", columns=["highway", "length_m"], geometry=False)
    metres = dict(duckdb.sql("SELECT highway, sum(length_m) FROM roads GROUP BY highway").fetchall())
    return {name: metres[name] for name in CLASSES}


def roads_pyosmium(path: str) -> Any:
    metres = dict.fromkeys(CLASSES, 0.0)
    ways = osmium.FileProcessor(path).with_locations().with_filter(osmium.filter.EntityFilter(osmium.osm.WAY))
    for way in ways.with_filter(osmium.filter.KeyFilter("highway")):
        if way.tags["highway"] in metres and way.tags.get("area") != "yes":
            try:
                metres[way.tags["highway"]] += osmium.geom.haversine_distance(way.nodes)
            except osmium.InvalidLocationError:
                pass
    return metres


def land_pbfhogg(path: str) -> Any:
    land = pbfhogg.features(path, tags="landuse", columns=["landuse", "area_m2"], geometry=False)
    return dict(duckdb.sql("SELECT landuse, sum(area_m2) FROM land WHERE area_m2 > 0 GROUP BY landuse").fetchall())


def land_pyosmium(path: str) -> Any:
    factory, values, shapes = osmium.geom.WKBFactory(), [], []
    key = osmium.filter.KeyFilter("landuse")
    for obj in osmium.FileProcessor(path).with_areas(key).with_filter(key):
        if obj.is_area():
            try:
                shapes.append(factory.create_multipolygon(obj))
                values.append(obj.tags["landuse"])
            except RuntimeError:
                pass
    areas = geopandas.GeoSeries.from_wkb(shapes, crs="EPSG:4326").to_crs("ESRI:54034").area
    return areas.groupby(values).sum().to_dict()


def filter_pbfhogg(path: str) -> Any:
    with tempfile.TemporaryDirectory() as directory:
        summary = pbfhogg.tags_filter(path, ["railway"], f"{directory}/railways.osm.pbf")
    return summary["written"]["objects"]


def filter_pyosmium(path: str) -> Any:
    with tempfile.TemporaryDirectory() as directory:
        with osmium.BackReferenceWriter(f"{directory}/railways.osm.pbf", ref_src=path) as writer:
            for obj in osmium.FileProcessor(path).with_filter(osmium.filter.KeyFilter("railway")):
                writer.add(obj)
        return sum(1 for _ in osmium.FileProcessor(f"{directory}/railways.osm.pbf"))


def moved_pbfhogg(path: str) -> Any:
    old, new = (pbfhogg.read(one, kinds="node", columns=["id", "lat", "lon"]) for one in (path, LATER))
    moved = duckdb.sql("SELECT count(*) FROM old JOIN new USING (id) WHERE old.lat <> new.lat OR old.lon <> new.lon")
    return moved.fetchall()[0][0]


def moved_pyosmium(path: str) -> Any:
    moved = 0
    files = (osmium.FileProcessor(one, osmium.osm.NODE) for one in (path, LATER))
    for old, new in osmium.zip_processors(*files):
        if old and new and old.location != new.location:
            moved += 1
    return moved


TASKS = {
    "keys": "count the keys of tags",
    "names": "named ways in a box",
    "roads": "length of roads by class",
    "land": "areas of land use",
    "filter": "railways with all that they refer to, as a file",
    "moved": "nodes that moved between two files",
}
LATER = ""


def lines_of(function: Callable[..., Any]) -> int:
    """Return the number of lines of a function, without its first one."""
    return len([line for line in inspect.getsource(function).splitlines()[1:] if line.strip()])


def agree(one: Any, other: Any) -> bool:
    """Whether two answers are the same. Lengths and areas may differ by half a percent: one is of a sphere."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(agree(value, other[key]) for key, value in one.items())
    return abs(one - other) <= 0.005 * max(one, other) if isinstance(one, float) else bool(one == other)


def run(name: str, words: List[str]) -> Dict[str, Any]:
    """Do a task in a new process. Returns its time and its answer."""
    done = subprocess.run([sys.executable, __file__, "--one", name, *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    found: Dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("later")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", choices=TASKS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        global LATER
        LATER = given.later
        # Threads that imports have started (OpenBLAS) run for a moment.
        time.sleep(0.3)
        began = time.monotonic()
        answer = globals()[given.one](given.file)
        print(json.dumps({"seconds": time.monotonic() - began, "answer": answer}))
        return
    words = [given.file, given.later]
    print("| task | pbfhogg | pyosmium | times | lines | lines of pyosmium |\n|---|---|---|---|---|---|")
    for task, title in TASKS.items():
        if given.only not in (None, task):
            continue
        names = [f"{task}_pbfhogg", f"{task}_pyosmium"]
        rounds = [[run(name, words) for name in names] for _ in range(given.runs)]
        if not agree(*(found["answer"] for found in rounds[0])):
            print(f"{task}: the answers differ: {rounds[0]}"[:2000], file=sys.stderr)
        ours, others = (statistics.median(pair[one]["seconds"] for pair in rounds) for one in (0, 1))
        lines = [lines_of(globals()[name]) for name in names]
        row = [title, f"{ours:.2f} s", f"{others:.2f} s", f"{others / ours:.1f}", *map(str, lines)]
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
