"""Checks the Shapefiles of a coast with GEOS: coast.py DIRECTORY DEGREES WEST SOUTH EAST NORTH

DIRECTORY is an output of `coastline`, DEGREES the size of its cells, and the rest the box of its region. All polygons
must be valid. In each cell, those of land and of water must be exactly the cell, without overlap, to 1e-9 of its area.
"""

import math
import pathlib
import sys

import geopandas
import shapely

OVERLAP = 0.0001
RADIUS = 6378137.0
EDGE = math.pi * RADIUS


def project(code, lon, lat):
    if code == "4326":
        return lon, lat
    y = RADIUS * math.asinh(math.tan(math.radians(lat))) if abs(lat) < 90 else math.copysign(EDGE, lat)
    return RADIUS * math.radians(lon), max(-EDGE, min(EDGE, y))


def polygons(path):
    shapes = geopandas.read_file(path)
    for shape in shapes.geometry:
        if not shape.is_valid or shape.geom_type not in ("Polygon", "LineString"):
            sys.exit(f"{path}: {shape.geom_type}, {shapely.is_valid_reason(shape)}")
    return shapes


def check_cells(code, layers, size, region):
    cells = {}
    for surface in ("land", "water"):
        shapes = layers[f"{surface}-polygons-split-{code}"]
        for x, y, shape in zip(shapes.x, shapes.y, shapes.geometry):
            cells.setdefault((x, y), {}).setdefault(surface, []).append(shape)
    west, south, east, north = region
    for (x, y), parts in cells.items():
        corners = (
            (max(west, x * size - 180 - OVERLAP), max(south, y * size - 90 - OVERLAP)),
            (min(east, (x + 1) * size - 180 + OVERLAP), min(north, (y + 1) * size - 90 + OVERLAP)),
        )
        cell = shapely.box(*(value for corner in corners for value in project(code, *corner)))
        every = [shape for surface in parts.values() for shape in surface]
        land, water = (shapely.union_all(parts.get(surface, [])) for surface in ("land", "water"))
        slack = 1e-9 * cell.area
        missing = abs(sum(shape.area for shape in every) - cell.area)
        overlap = land.intersection(water).area
        outside = shapely.union_all(every).symmetric_difference(cell).area
        if max(missing, overlap, outside) > slack:
            sys.exit(f"{code}, cell {x} {y}: {missing / slack} {overlap / slack} {outside / slack}")
    return len(cells)


def main(directory, size, *region):
    layers = {path.parent.name: polygons(path) for path in sorted(pathlib.Path(directory).rglob("*.shp"))}
    region = [float(edge) for edge in region]
    counts = [check_cells(code, layers, float(size), region) for code in ("4326", "3857")]
    print("polygons", sum(map(len, layers.values())), "cells", *counts)


main(*sys.argv[1:])
