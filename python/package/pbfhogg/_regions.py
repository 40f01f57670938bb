"""Regions, as files that the program reads."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Union


def _polygons(name: str, shape: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Return the polygons of a GeoJSON object that are not empty."""
    kind = shape.get("type")
    if kind in ("Polygon", "MultiPolygon"):
        if len(shape["coordinates"]) > 0:
            yield shape
    elif kind in ("FeatureCollection", "GeometryCollection", "Feature"):
        parts = [shape["geometry"]] if kind == "Feature" else shape.get("features") or shape.get("geometries") or []
        for part in parts:
            if part is not None:
                yield from _polygons(name, part)
    else:
        raise TypeError(f"{name}: expected polygons, not a {kind}")


def _shapes(name: str, region: Any) -> List[Mapping[str, Any]]:
    """Return the polygons of a region in longitude and latitude."""
    if getattr(region, "crs", None) is not None:
        region = region.to_crs("EPSG:4326")
    if isinstance(region, Mapping):
        return list(_polygons(name, region))
    if hasattr(region, "__geo_interface__"):
        # That of a table of features has its other columns, too.
        region = getattr(region, "geometry", region)
        return list(_polygons(name, region.__geo_interface__))
    if isinstance(region, Iterable) and not isinstance(region, (bytes, bytearray)):
        return [shape for part in region for shape in _shapes(name, part)]
    raise TypeError(f"{name}: expected a path or polygons, not {type(region).__name__}")


@contextlib.contextmanager
def region_file(name: str, region: Any) -> Iterator[Optional[Union[str, "os.PathLike[str]"]]]:
    """Return the path of a region. Polygons are in a file while the ``with`` block lasts."""
    if region is None or isinstance(region, (str, os.PathLike)):
        yield region
        return
    shapes = _shapes(name, region)
    if not shapes:
        raise ValueError(f"{name}: there is no polygon")
    features: List[Dict[str, Any]] = [{"type": "Feature", "properties": {}, "geometry": shape} for shape in shapes]
    with tempfile.TemporaryDirectory(prefix="pbfhogg-") as directory:
        path = os.path.join(directory, f"{name}.geojson")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"type": "FeatureCollection", "features": features}, file)
        yield path
