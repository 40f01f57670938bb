"""Parts of a file, for several processes."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple


class Split(NamedTuple):
    """Consecutive blobs of a file, which :func:`pbfhogg.read` reads without the rest of the file.

    Splits are tuples of plain values: they can be pickled, and sent to other machines that have the file.
    """

    #: The offset of the first blob in bytes.
    offset: int
    #: The size of the blobs in bytes.
    length: int
    #: The kinds of the objects; ``None`` if the file has no index.
    kinds: Optional[Tuple[str, ...]]
    #: The box around the objects as left, bottom, right, top; ``None`` if no index has it.
    bbox: Optional[Tuple[float, float, float, float]]
    #: The number of objects; ``None`` if the file has no index.
    objects: Optional[int]
    #: The number of the first blob; the header blob has number 0.
    blob: int
    #: The number of blobs.
    blobs: int
