"""Tables and features out of OpenStreetMap files, and what the ``pbfhogg`` program does.

Every function that reads a file takes a path, an ``https://`` address of a PBF file, or an object with its bytes, and
reads any format of OpenStreetMap data.
Objects are selected before they are decoded: blobs that a table of contents rules out are not read. The work is done on
all cores, without the lock of the interpreter.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List, Optional, Sequence, Union

from . import _commands, _pbfhogg
from ._changes import augmented_diff, changes
from ._commands import *  # noqa: F403
from ._pbfhogg import Error
from ._geocoder import Geocoder
from ._splits import Split
from ._table import Table
from ._types import Box, Source, Texts
from ._writer import Writer

__version__ = _pbfhogg.__version__
__all__ = [
    "Error",
    "Geocoder",
    "Split",
    "Table",
    "Writer",
    "augmented_diff",
    "changes",
    "features",
    "info",
    "objects",
    "read",
    "splits",
    *_commands.__all__,
]


def info(path: Source) -> Dict[str, Any]:
    """Return facts about a file: its header and, if it has a table of contents, its objects.

    Little is read of a PBF file with a table of contents. The keys are those of ``pbfhogg inspect --json``.

    >>> pbfhogg.info("helsinki.osm.pbf")["header_bbox"]
    [24.9351762, 60.164155, 24.9534146, 60.179113]
    """
    facts: Dict[str, Any] = json.loads(_pbfhogg.info(path))
    return facts


def read(
    path: Source,
    *,
    kinds: Optional[Texts] = None,
    tags: Optional[Texts] = None,
    bbox: Optional[Box] = None,
    ids: Optional[Sequence[Union[int, str]]] = None,
    columns: Optional[Sequence[str]] = None,
    split: Optional[Split] = None,
    jobs: int = 0,
) -> Table:
    """Return a table of the objects of a file, in file order.

    :param kinds: ``"node"``, ``"way"`` or ``"relation"``, or a list of them.
    :param tags: An expression as ``pbfhogg tags-filter`` takes it, such as ``"highway=primary,secondary"`` or
        ``"name"``, or a list of expressions of which one must match.
    :param bbox: A box as left, bottom, right, top in degrees. Nodes must lie in it, ways must have a node in it, and
        relations a node or a way. A box whose left edge is east of its right edge crosses the antimeridian.
    :param ids: Ids of the kind that is read, or texts such as ``"w123"``.
    :param columns: The names of columns: ``type``, ``id``, ``version``, ``timestamp``, ``changeset``, ``uid``,
        ``user``, ``visible``, ``tags`` (a map), ``lat``, ``lon``, ``refs`` (the nodes of a way), ``locations`` (their
        locations, if the way has them) and ``members`` (of a relation). By default those that the kinds have, without
        ``locations``. Columns that are left out are not decoded.
    :param split: A part of the file, as :func:`splits` returns it.
    :param jobs: The number of threads; 0 for one a core.

    >>> benches = pbfhogg.read("helsinki.osm.pbf", kinds="node", tags="amenity=bench", columns=["id", "lat", "lon"])
    >>> benches.to_arrow().num_rows
    162
    """
    return Table(
        _pbfhogg.read(
            path, kinds=kinds, tags=tags, bbox=bbox, ids=ids, columns=columns, split=split, jobs=jobs
        )
    )


def features(
    path: Source,
    *,
    kinds: Optional[Texts] = None,
    tags: Optional[Texts] = None,
    bbox: Optional[Box] = None,
    clip: bool = False,
    columns: Optional[Sequence[str]] = None,
    geometry: bool = True,
    jobs: int = 0,
) -> Table:
    """Return a table of the features of a file: points, lines and areas, as ``pbfhogg export`` makes them.

    Nodes with tags become points, ways lines or areas, relations with ``type=multipolygon`` or ``type=boundary`` areas,
    and routes lines. The column ``geometry`` is WKB in longitude and latitude, marked as ``geoarrow.wkb``.

    >>> roads = pbfhogg.features("helsinki.osm.pbf", tags="w/highway", columns=["highway", "length_m"], geometry=False)
    >>> roads.to_polars().group_by("highway").agg(polars.col("length_m").sum().round()).sort("length_m").row(-1)
    ('footway', 43177.0)

    :param kinds: The kinds of objects that features are made of: ``"node"``, ``"way"``, ``"relation"``.
    :param tags: An expression as ``pbfhogg tags-filter`` takes it, or a list of expressions of which one must match.
    :param bbox: A box as left, bottom, right, top in degrees, as of :func:`read`. A feature must share a point with it.
        What crosses the antimeridian is cut there before.
    :param clip: Cut geometries at the box.
    :param columns: Columns beside the geometry: ``osm_type``, ``osm_id``, ``version``, ``timestamp``, ``changeset``,
        ``uid``, ``user``, ``tags`` (a map), and ``area_m2`` and ``length_m``, measured on the ellipsoid. Any other name
        is the key of a tag, whose value the column has. The default is ``osm_type``, ``osm_id`` and ``tags``.
    :param geometry: Whether the table has the geometries, in the column ``geometry``.
    :param jobs: The number of threads; 0 for one a core.
    """
    return Table(
        _pbfhogg.features(
            path, kinds=kinds, tags=tags, bbox=bbox, clip=clip, columns=columns, geometry=geometry, jobs=jobs
        )
    )


def objects(
    path: Source,
    *,
    kinds: Optional[Texts] = None,
    tags: Optional[Texts] = None,
    bbox: Optional[Box] = None,
    ids: Optional[Sequence[Union[int, str]]] = None,
    jobs: int = 0,
) -> Iterator["_pbfhogg.Object"]:
    """Iterate over the objects of a file. For many objects, :func:`read` is much faster.

    The arguments are those of :func:`read`.

    >>> for relation in pbfhogg.objects("helsinki.osm.pbf", kinds="relation", tags="route=subway"):
    ...     print(relation.id, relation.tags["ref"], len(relation.members))
    2390282 M1 88
    2390310 M1 88
    2390349 M2 82
    2390370 M2 79
    """
    return _pbfhogg.objects(path, kinds=kinds, tags=tags, bbox=bbox, ids=ids, jobs=jobs)


def splits(path: Source, count: int) -> List[Split]:
    """Divide a file into about ``count`` parts of the same size, which :func:`read` reads one by one.

    The file must be PBF. One without a table of contents is walked over from blob to blob.

    >>> [split.objects for split in pbfhogg.splits("helsinki.osm.pbf", 2)]
    [None, None]
    """
    return _pbfhogg.splits(path, count)
