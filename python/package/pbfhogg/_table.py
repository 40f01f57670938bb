"""Tables, which Arrow, DuckDB, polars, pandas and GeoPandas read."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Iterator, List, Optional

from . import _pbfhogg

if TYPE_CHECKING:
    import geopandas
    import pandas
    import polars
    import pyarrow


class Table:
    """A table of a file. Rows are read when a reader asks for them, and each reader reads the file anew.

    A table implements the `Arrow PyCapsule interface
    <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>`_: pass it to ``pyarrow.table``,
    ``polars.from_arrow``, or name it in a query of DuckDB.

    >>> roads = pbfhogg.read("helsinki.osm.pbf", kinds="way", tags="highway", columns=["id", "tags"])
    >>> roads.column_names
    ['id', 'tags']
    >>> roads.to_polars().height
    2650
    """

    __slots__ = ("_native",)

    def __init__(self, native: _pbfhogg.Table) -> None:
        self._native = native

    @property
    def column_names(self) -> List[str]:
        """The names of the columns."""
        return self._native.column_names

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<pbfhogg.Table {', '.join(self.column_names)}>"

    def batches(self) -> Iterator[_pbfhogg.Batch]:
        """Read the rows in batches, as they come. A few batches are in memory at a time.

        A batch can be passed to ``pyarrow.record_batch``.

        >>> sum(len(batch) for batch in pbfhogg.read("helsinki.osm.pbf", kinds="relation").batches())
        620
        """
        return self._native.batches()

    def to_arrow(self) -> "pyarrow.Table":
        """Read all rows into a ``pyarrow.Table``."""
        import pyarrow

        with self._errors():
            return pyarrow.table(self)

    def to_polars(self) -> "polars.DataFrame":
        """Read all rows into a ``polars.DataFrame``."""
        import polars

        with self._errors():
            return polars.DataFrame(self)

    def to_pandas(self) -> "pandas.DataFrame":
        """Read all rows into a ``pandas.DataFrame``. Tags become dicts."""
        frame = self.to_arrow().to_pandas(maps_as_pydicts="strict")
        return frame

    def to_geopandas(self) -> "geopandas.GeoDataFrame":
        """Read all rows into a ``geopandas.GeoDataFrame``. The table must have a geometry, as :func:`features` has."""
        import geopandas

        if "geometry" not in self.column_names:
            raise ValueError("the table has no column geometry; pbfhogg.features has one")
        frame = self.to_pandas()
        geometry = geopandas.GeoSeries.from_wkb(frame["geometry"], crs="OGC:CRS84")
        return geopandas.GeoDataFrame(frame.drop(columns="geometry"), geometry=geometry)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise an error of the file as a :class:`pbfhogg.Error`, and not as an error of the reader."""
        try:
            yield
        except KeyboardInterrupt:
            raise
        except Exception:
            self._native.raise_last_error()
            raise
