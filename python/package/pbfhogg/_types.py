"""The types of arguments."""

from __future__ import annotations

import mmap
import os
from typing import Any, Iterable, Protocol, SupportsFloat, Union


class Geometry(Protocol):
    """A geometry of shapely, or a GeoSeries or a GeoDataFrame of GeoPandas."""

    @property
    def __geo_interface__(self) -> Any: ...


#: A path, or an ``https://`` address of a file.
Path = Union[str, "os.PathLike[str]"]
#: A file: a path, an address, or an object that has its bytes.
Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, mmap.mmap]
#: A text or several.
Texts = Union[str, Iterable[str]]
#: Ids of objects: numbers, or texts such as ``"w123"``.
Ids = Union[int, str, Iterable[Union[int, str]]]
#: Left, bottom, right and top in degrees: any four numbers, such as the ``bounds`` of a geometry.
Box = Iterable[SupportsFloat]
#: A file with a polygon (GeoJSON, .poly, OSM), an area of the file that is read, such as ``"r62422"``, or polygons.
Region = Union[Path, Geometry, Iterable[Geometry]]
