"""The reverse geocoder."""

from __future__ import annotations

import array
import json
import os
import sys
from typing import Any, Dict, Union

from . import _pbfhogg
from ._arguments import names_arguments
from ._table import Table
from ._types import Texts


def _doubles(name: str, values: Any) -> bytes:
    """Return numbers as little-endian doubles. Arrays of numpy, Arrow, pandas and polars are not looped over."""
    try:
        if hasattr(values, "__array__"):
            import numpy

            return numpy.ascontiguousarray(values, dtype="<f8").tobytes()
        doubles = array.array("d", values)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: expected numbers: {error}") from None
    if sys.byteorder == "big":
        doubles.byteswap()
    return doubles.tobytes()


class Geocoder:
    """An index that says what is at a place. :func:`pbfhogg.build_geocode_index` makes it."""

    @names_arguments
    def __init__(self, index: Union[str, "os.PathLike[str]"], *, languages: Texts = ()) -> None:
        """Open the directory of an index. ``languages`` are those of names, the best first."""
        self._native = _pbfhogg.Geocoder(index, languages)

    @names_arguments
    def reverse(self, lat: float, lon: float) -> Dict[str, Any]:
        """Return what is at a place, with the keys of ``pbfhogg geocode``."""
        answer: Dict[str, Any] = json.loads(self._native.reverse(lat, lon))
        return answer

    def reverse_many(self, lats: Any, lons: Any) -> Table:
        """Return a table with a row for each place, in order, on all cores.

        The columns are ``label``, the parts of the address, the object that has it (``osm_type``, ``osm_id``), and its
        distance in metres. A place that is not on earth has an empty row.

        :param lats: Latitudes: a list, or an array of numpy, Arrow, pandas or polars.
        :param lons: Longitudes, as many.
        """
        return Table(self._native.reverse_many(_doubles("lats", lats), _doubles("lons", lons)))
