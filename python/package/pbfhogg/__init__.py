"""Tables and features out of OpenStreetMap files, and what the ``pbfhogg`` program does.

Every function that reads a file takes a path, an ``https://`` address of a PBF file, or an object with its bytes, and
reads any format of OpenStreetMap data.
Objects are selected before they are decoded: blobs that a table of contents rules out are not read. The work is done on
all cores, without the lock of the interpreter.
"""

from . import _commands, summaries
from ._changes import augmented_diff, changes
from ._commands import *  # noqa: F403
from ._geocoder import Geocoder
from ._pbfhogg import Error, __version__
from ._reading import features, info, objects, read, splits
from ._splits import Split
from ._table import Table
from ._writer import Writer

__all__ = [
    "Error",
    "Geocoder",
    "Split",
    "Table",
    "Writer",
    "__version__",
    "augmented_diff",
    "changes",
    "features",
    "info",
    "objects",
    "read",
    "splits",
    "summaries",
    *_commands.__all__,
]


def __dir__() -> list[str]:
    return sorted(__all__)
