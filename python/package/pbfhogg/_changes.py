"""Change files, and what they do."""

from __future__ import annotations

from typing import Any, List, Optional, Union, overload

from . import _pbfhogg
from ._arguments import names_arguments
from ._commands import FUNCTIONS
from ._regions import region_file
from ._table import Table
from ._types import Box, Path, Region, Source, Texts
from .summaries import AugmentedDiffSummary

#: The options of a table of actions.
_TABLE = ("direct_only", "filter", "bbox", "polygon", "area", "max_relation_members", "columns", "jobs")


@names_arguments
def changes(
    path: Source,
    *,
    kinds: Optional[Texts] = None,
    columns: Optional[Texts] = None,
    jobs: int = 0,
) -> Table:
    """Return a table of all changes of a change file (OsmChange or o5c), in the order of the file.

    :param kinds: ``"node"``, ``"way"`` or ``"relation"``, or a list of them.
    :param columns: The names of columns: ``action`` (``"create"``, ``"modify"`` or ``"delete"``), and those of
        :func:`pbfhogg.read`. The values are those of the new version, and for deletions those that the change file
        gives.
    :param jobs: The number of threads; 0 for one a core.

    >>> deletions = pbfhogg.changes("000466354.osc.gz").to_polars().filter(polars.col("action") == "delete")
    >>> deletions.height
    13
    """
    return Table(_pbfhogg.changes(path, kinds=kinds, columns=columns, jobs=jobs))


@overload
def augmented_diff(
    base: Source,
    changes: Union[Source, List[Source]],
    *,
    direct_only: bool = False,
    filter: Optional[Texts] = None,
    bbox: Optional[Box] = None,
    polygon: Optional[Region] = None,
    area: Optional[str] = None,
    max_relation_members: Optional[int] = None,
    columns: Optional[Texts] = None,
    jobs: int = 0,
) -> Table: ...


@overload
def augmented_diff(
    base: Path, changes: Union[Path, List[Path]], output: Path, **options: Any
) -> AugmentedDiffSummary: ...


@names_arguments
def augmented_diff(base: Any, changes: Any, output: Any = None, **options: Any) -> Any:
    """Return a table of what change files do to a file, with each object before and after them.

    There is a row for each object of the changes, and for each way and relation that they concern although it has no
    new version. Rows are in order of kind and id.

    :param base: The file before the changes.
    :param changes: A change file or a list of them, in order.
    :param direct_only: Leave out ways and relations that have no change of their own.
    :param filter: An expression as ``pbfhogg tags-filter`` takes it, or a list of expressions of which one must match
        the object before or after the changes.
    :param bbox: A box as left, bottom, right, top in degrees, as of :func:`read`, with which the object must share a
        point before or after.
    :param polygon: Polygons instead of a box, as of :func:`read`; an area is one of ``base``.
    :param area: The name of a boundary of ``base``, instead of a box.
    :param max_relation_members: Relations with more members have no geometry.
    :param columns: The names of columns: ``action``, ``type``, ``id``, ``indirect``, ``changeset``, ``timestamp``,
        ``uid``, ``user``, ``old_version``, ``new_version``, ``old_tags``, ``new_tags``, ``bbox``, ``old_geometry`` and
        ``new_geometry``; all by default.
    :param jobs: The number of threads; 0 for one a core.
    :param output: A file. With it, do what ``pbfhogg augmented-diff`` does with all of its options, and return its
        summary.
    """
    if output is not None or options.get("split"):
        return FUNCTIONS["augmented_diff"](base, changes, output, **options)
    for name in options:
        if name not in _TABLE:
            raise TypeError(f"augmented_diff() without an output has no argument {name!r}")
    with region_file("polygon", options.pop("polygon", None)) as region:
        return Table(_pbfhogg.actions(base, changes, polygon=region, **options))
