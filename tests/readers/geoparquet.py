"""Reads a GeoParquet file, or a partitioned directory by its root, with pyarrow, DuckDB and GeoPandas, and compares the
table with the summary of the export.

geoparquet.py TABLE SUMMARY.json [FEATURES.geojson]

Prints a line for each reader: the number of features by type, the box, the sum of areas. With a file of osmium's GeoJSON
features, compares them, too. Exits with 1 if any of them disagree.
"""

import json
import os
import sys

import duckdb
import geopandas
import pyarrow.compute
import pyarrow.parquet
import shapely

path, summary_path = sys.argv[1:3]
with open(summary_path) as file:
    summary = json.load(file)
expected = (
    {"Point": summary["points"], "LineString": summary["lines"], "MultiPolygon": summary["areas"]},
    summary["bbox"],
    summary["square_degrees"],
)
failures = []


def compare(reader, counts, bbox, area):
    """Prints what a reader found, and notes a difference."""
    counts = {name: int(counts.get(name, 0)) for name in expected[0]}
    print(f"{reader}: {counts} {[round(edge, 7) for edge in bbox]} {area:.9f}")
    is_equal = counts == expected[0] and abs(area - expected[2]) < 1e-9
    is_in = all(abs(found - exact) < 3e-5 for found, exact in zip(bbox, expected[1]))
    if not (is_equal and is_in):
        failures.append(reader)


def of_geometries(geometries):
    """Counts, box and area of geometries of shapely."""
    names = {"LINESTRING": "LineString", "MULTIPOLYGON": "MultiPolygon", "POINT": "Point"}
    kinds, counts = shapely.get_type_id(geometries), {}
    for kind in set(kinds.tolist()):
        counts[names[shapely.GeometryType(kind).name]] = (kinds == kind).sum()
    return counts, shapely.total_bounds(geometries).tolist(), float(shapely.area(geometries).sum())


# pyarrow: the columns alone.
table = pyarrow.parquet.read_table(path)
geometries = shapely.from_wkb(table["geometry"].to_numpy(zero_copy_only=False))
counts, _, area = of_geometries(geometries)
edges = [pyarrow.compute.struct_field(table["bbox"], edge) for edge in ("xmin", "ymin", "xmax", "ymax")]
bbox = [
    pyarrow.compute.min(edges[0]).as_py(),
    pyarrow.compute.min(edges[1]).as_py(),
    pyarrow.compute.max(edges[2]).as_py(),
    pyarrow.compute.max(edges[3]).as_py(),
]
compare("pyarrow", counts, bbox, area)
if not shapely.is_valid(geometries).all():
    failures.append("shapely: an area is not valid")

# DuckDB: SQL, and no extension. A key of the directory with the name of a column would hide it.
files = f"read_parquet('{path}/**/*.parquet', hive_partitioning = true)" if os.path.isdir(path) else f"'{path}'"
rows = duckdb.sql(
    f"SELECT osm_type, count(*), min(bbox.xmin), min(bbox.ymin), max(bbox.xmax), max(bbox.ymax), "
    f"count(tags['name'][1]), any_value(typeof(geometry)) FROM {files} GROUP BY 1"
).fetchall()
bbox = [min(row[2] for row in rows), min(row[3] for row in rows), max(row[4] for row in rows), max(row[5] for row in rows)]
total = sum(row[1] for row in rows)
print(f"DuckDB: {total} features {[round(edge, 7) for edge in bbox]}")
if total != summary["features"] or any(row[7] == "VARCHAR" for row in rows):
    failures.append("DuckDB")

# GeoPandas reads the metadata, and uses the boxes for a part.
frame = geopandas.read_parquet(path)
compare("GeoPandas", *of_geometries(frame.geometry.values))
if str(frame.crs) not in ("OGC:CRS84", "EPSG:4326"):
    failures.append(f"GeoPandas: {frame.crs}")
if len(frame):
    west, south, east, north = summary["bbox"]
    part = (west, south, (west + east) / 2, (south + north) / 2)
    by_box = geopandas.read_parquet(path, bbox=part)
    boxes = frame.geometry.bounds
    inside = (boxes.minx <= part[2]) & (boxes.maxx >= part[0]) & (boxes.miny <= part[3]) & (boxes.maxy >= part[1])
    # The boxes in the file are rounded outwards.
    if not inside.sum() <= len(by_box) <= inside.sum() + 5:
        failures.append(f"GeoPandas: {len(by_box)} rows in a box, and {inside.sum()} expected")

if len(sys.argv) > 3:
    with open(sys.argv[3]) as file:
        features = [json.loads(line)["geometry"] for line in file if line.strip()]
    theirs = shapely.from_geojson([json.dumps(geometry) for geometry in features])
    counts, bbox, area = of_geometries(theirs)
    compare("osmium", counts, bbox, area)

if failures:
    sys.exit("different: " + ", ".join(failures))
