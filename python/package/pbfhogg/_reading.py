"""Functions that read files."""

from __future__ import annotations

import json
from typing import Iterator, List, Optional

from . import _pbfhogg
from ._arguments import names_arguments
from ._regions import region_file
from ._splits import Split
from ._table import Table
from ._types import Box, Ids, Region, Source, Texts
from .summaries import InspectSummary


@names_arguments
def info(path: Source) -> InspectSummary:
    """Return facts about a file: its header and, if it has a table of contents, its objects.

    Little is read of a PBF file with a table of contents. The keys are those of ``pbfhogg inspect --json``.

    >>> pbfhogg.info("helsinki.osm.pbf")["header_bbox"]
    [24.9351762, 60.164155, 24.9534146, 60.179113]
    """
    facts: InspectSummary = json.loads(_pbfhogg.info(path))
    return facts


@names_arguments
def read(
    path: Source,
    *,
    kinds: Optional[Texts] = None,
    tags: Optional[Texts] = None,
    bbox: Optional[Box] = None,
    polygon: Optional[Region] = None,
    area: Optional[str] = None,
    ids: Optional[Ids] = None,
    columns: Optional[Texts] = None,
    split: Optional[Split] = None,
    jobs: int = 0,
) -> Table:
    """Return a table of the objects of a file, in file order.

    :param kinds: ``"node"``, ``"way"`` or ``"relation"``, or a list of them.
    :param tags: An expression as ``pbfhogg tags-filter`` takes it, such as ``"highway=primary,secondary"`` or
        ``"name"``, or a list of expressions of which one must match.
    :param bbox: A box as left, bottom, right, top in degrees: any four numbers. Nodes must lie in it, ways must
        have a node in it, and relations a node or a way. A box whose left edge is east of its right edge crosses the
        antimeridian.
    :param polygon: Polygons instead of a box: a file (GeoJSON, .poly, OSM), geometries of shapely or GeoPandas, or an
        area of the file, such as ``"r62422"``.
    :param area: The name of a boundary of the file, instead of a box.
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
    with region_file("polygon", polygon) as region:
        native = _pbfhogg.read(
            path,
            kinds=kinds,
            tags=tags,
            bbox=bbox,
            polygon=region,
            area=area,
            ids=ids,
            columns=columns,
            split=split,
            jobs=jobs,
        )
    return Table(native)


@names_arguments
def features(
    path: Source,
    *,
    kinds: Optional[Texts] = None,
    tags: Optional[Texts] = None,
    bbox: Optional[Box] = None,
    polygon: Optional[Region] = None,
    area: Optional[str] = None,
    clip: bool = False,
    columns: Optional[Texts] = None,
    geometry: bool = True,
    jobs: int = 0,
) -> Table:
    """Return a table of the features of a file: points, lines and areas, as ``pbfhogg export`` makes them.

    Nodes with tags become points, ways lines or areas, relations with ``type=multipolygon`` or ``type=boundary`` areas,
    and routes lines. The column ``geometry`` is WKB in longitude and latitude, marked as ``geoarrow.wkb``. A warning
    tells what is left out, because it is broken or a part of it is not in the file.

    >>> roads = pbfhogg.features("helsinki.osm.pbf", tags="w/highway", columns=["highway", "length_m"], geometry=False)
    >>> roads.to_polars().group_by("highway").agg(polars.col("length_m").sum().round()).sort("length_m").row(-1)
    ('footway', 43177.0)

    :param kinds: The kinds of objects that features are made of: ``"node"``, ``"way"``, ``"relation"``.
    :param tags: An expression as ``pbfhogg tags-filter`` takes it, or a list of expressions of which one must match.
    :param bbox: A box as left, bottom, right, top in degrees, as of :func:`read`. A feature must share a point with it.
        What crosses the antimeridian is cut there before.
    :param polygon: Polygons instead of a box, as of :func:`read`.
    :param area: The name of a boundary of the file, instead of a box.
    :param clip: Cut geometries at the box or the polygons.
    :param columns: Columns beside the geometry: ``osm_type``, ``osm_id``, ``version``, ``timestamp``, ``changeset``,
        ``uid``, ``user``, ``tags`` (a map), and ``area_m2`` and ``length_m``, measured on the ellipsoid. Any other name
        is the key of a tag, whose value the column has; a warning tells if no feature has it. The default is
        ``osm_type``, ``osm_id`` and ``tags``.
    :param geometry: Whether the table has the geometries, in the column ``geometry``.
    :param jobs: The number of threads; 0 for one a core.
    """
    with region_file("polygon", polygon) as region:
        native = _pbfhogg.features(
            path,
            kinds=kinds,
            tags=tags,
            bbox=bbox,
            polygon=region,
            area=area,
            clip=clip,
            columns=columns,
            geometry=geometry,
            jobs=jobs,
        )
    return Table(native)


@names_arguments
def objects(
    path: Source,
    *,
    kinds: Optional[Texts] = None,
    tags: Optional[Texts] = None,
    bbox: Optional[Box] = None,
    polygon: Optional[Region] = None,
    area: Optional[str] = None,
    ids: Optional[Ids] = None,
    jobs: int = 0,
) -> Iterator[_pbfhogg.Object]:
    """Iterate over the objects of a file. For many objects, :func:`read` is much faster.

    The arguments are those of :func:`read`.

    >>> for relation in pbfhogg.objects("helsinki.osm.pbf", kinds="relation", tags="route=subway"):
    ...     print(relation.id, relation.tags["ref"], len(relation.members))
    2390282 M1 88
    2390310 M1 88
    2390349 M2 82
    2390370 M2 79
    """
    with region_file("polygon", polygon) as region:
        return _pbfhogg.objects(
            path, kinds=kinds, tags=tags, bbox=bbox, polygon=region, area=area, ids=ids, jobs=jobs
        )


@names_arguments
def splits(path: Source, count: int) -> List[Split]:
    """Divide a file into about ``count`` parts of the same size, which :func:`read` reads one by one.

    The file must be PBF. One without a table of contents is walked over from blob to blob.

    >>> [split.objects for split in pbfhogg.splits("helsinki.osm.pbf", 2)]
    [None, None]
    """
    return _pbfhogg.splits(path, count)
