"""Opens tables of features, files or directories by their roots, with pyarrow, pandas, GeoPandas, polars and DuckDB,
and compares each with the summary of its export.

geoparquet.py TABLE SUMMARY.json [FEATURES.geojsonl] [+ TABLE SUMMARY.json [FEATURES.geojsonl]]...

Prints a line for each reader: the number of features by type, the box, the sum of areas. With a file of osmium's GeoJSON
features, compares them, too. Exits with 1 if any of them disagree.
"""

import json
import os
import sys

import duckdb
import geopandas
import pandas
import polars
import pyarrow.dataset
import pyarrow.parquet
import shapely

NAMES = {"POINT": "Point", "LINESTRING": "Line", "MULTILINESTRING": "Line", "MULTIPOLYGON": "MultiPolygon"}


def edges_of(boxes):
    """The box around boxes that are dictionaries."""
    if not len(boxes):
        return None
    low, high = ("xmin", "ymin"), ("xmax", "ymax")
    return [min(box[edge] for box in boxes) for edge in low] + [max(box[edge] for box in boxes) for edge in high]


def differences(path, summary_path, features_path=None):
    """Prints what each reader finds in a table, and returns those that disagree with the summary."""
    with open(summary_path) as file:
        summary = json.load(file)
    expected = (
        {"Point": summary["points"], "Line": summary["lines"], "MultiPolygon": summary["areas"]},
        summary["bbox"],
        summary["square_degrees"],
    )
    failures = []

    def compare(reader, geometries, bbox=None):
        """Prints what a reader found, and notes a difference. `bbox` is the box of the column bbox, if there is one."""
        kinds, counts = shapely.get_type_id(geometries), dict.fromkeys(expected[0], 0)
        for kind in set(kinds.tolist()):
            counts[NAMES[shapely.GeometryType(kind).name]] += int((kinds == kind).sum())
        area = float(shapely.area(geometries).sum())
        exact = shapely.total_bounds(geometries).tolist()
        print(f"{reader}: {counts} {[round(edge, 7) for edge in exact]} {area:.9f}")
        is_in = not any(abs(found - edge) > 1e-9 for found, edge in zip(exact, expected[1] or []))
        is_in &= not any(abs(found - edge) > 3e-5 for found, edge in zip(bbox or [], expected[1] or []))
        if not (counts == expected[0] and abs(area - expected[2]) < 1e-9 and is_in):
            failures.append(reader)

    # DuckDB reads the keys of directories as columns only if it is asked to.
    files = f"read_parquet('{path}/**/*.parquet', hive_partitioning = true)" if os.path.isdir(path) else f"'{path}'"
    connection = duckdb.connect()
    dataset = pyarrow.dataset.dataset(path, partitioning="hive")
    if "geometry" not in dataset.schema.names:
        # Tables of objects.
        found = {
            "pyarrow": dataset.count_rows(),
            "pandas": len(pandas.read_parquet(path)),
            "polars": polars.scan_parquet(path, hive_partitioning=True).select(polars.len()).collect().item(),
            "DuckDB": connection.sql(f"SELECT count(*) FROM {files}").fetchall()[0][0],
        }
        print(found)
        return [] if set(found.values()) == {summary["features"]} else [f"{found} {summary['features']}"]

    # pyarrow: the columns alone, and what its statistics say.
    table = dataset.to_table()
    geometries = shapely.from_wkb(table["geometry"].to_numpy(zero_copy_only=False))
    compare("pyarrow", geometries, edges_of(table["bbox"].to_pylist()))
    if not shapely.is_valid(geometries).all():
        failures.append("shapely: a geometry is not valid")
    bounds = shapely.bounds(shapely.get_parts(geometries))
    if len(bounds) and (bounds[:, 2] - bounds[:, 0] > 180).any():
        failures.append("shapely: a geometry is wider than half of the earth")
    for fragment in dataset.get_fragments():
        metadata, groups = pyarrow.parquet.ParquetFile(fragment.path).metadata, []
        for group in range(metadata.num_row_groups):
            edges = {}
            for number in range(metadata.num_columns):
                column = metadata.row_group(group).column(number)
                name, statistics = column.path_in_schema, column.statistics
                if name.startswith("bbox."):
                    if statistics is None or not statistics.has_min_max:
                        failures.append(f"pyarrow: no minimum and maximum of {name}")
                        continue
                    edges[name[5:]] = statistics.min if name.endswith("min") else statistics.max
            groups.append([edges.get(edge, 0) for edge in ("xmin", "ymin", "xmax", "ymax")])
        # Of many row groups with areas, a small box reads few: on average over the middles of all, at most a third.
        if len(groups) >= 12 and "geometry_type=polygon" in fragment.path:
            read = 0
            for west, south, east, north in groups:
                x, y = (west + east) / 2, (south + north) / 2
                by = (summary["bbox"][2] - summary["bbox"][0]) / 100
                near = (x - by, y - by, x + by, y + by)
                meets = lambda box: all(box[at] <= near[at + 2] and box[at + 2] >= near[at] for at in (0, 1))
                read += sum(meets(group) for group in groups)
            print(f"pyarrow: a box reads {read / len(groups):.1f} of {len(groups)} row groups")
            if read / len(groups) > len(groups) / 3:
                failures.append("pyarrow: a small box reads many row groups")

    frame = pandas.read_parquet(path)
    compare("pandas", shapely.from_wkb(frame["geometry"].to_numpy()), edges_of(frame["bbox"].tolist()))

    frame = polars.scan_parquet(path, hive_partitioning=os.path.isdir(path)).collect()
    compare("polars", shapely.from_wkb(frame["geometry"].to_numpy()), edges_of(frame["bbox"].to_list()))

    # DuckDB: SQL, and no extension. A key of the directory with the name of a column would hide it.
    types = connection.sql(f"SELECT DISTINCT typeof(geometry) FROM {files}").fetchall()
    column = "geometry" if all(name == "BLOB" for (name,) in types) else "ST_AsWKB(geometry)"
    rows = connection.sql(f"SELECT {column}, bbox, count(tags['name'][1]) OVER () FROM {files}").fetchall()
    compare("DuckDB", shapely.from_wkb([bytes(row[0]) for row in rows]), edges_of([row[1] for row in rows]))
    if any(name == "VARCHAR" for (name,) in types):
        failures.append("DuckDB: the column geometry is hidden by a key of a directory")

    # GeoPandas reads the metadata, and uses the boxes for a part.
    frame = geopandas.read_parquet(path)
    compare("GeoPandas", frame.geometry.values)
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

    if features_path:
        with open(features_path) as file:
            features = [json.loads(line)["geometry"] for line in file if line.strip()]
        compare("osmium", shapely.from_geojson([json.dumps(geometry) for geometry in features]))

    return failures


failed, words = False, sys.argv[1:]
while words:
    end = words.index("+") if "+" in words else len(words)
    if found := differences(*words[:end]):
        print(f"{words[0]}: different: {', '.join(found)}", file=sys.stderr)
        failed = True
    words = words[end + 1:]
sys.exit(failed)
