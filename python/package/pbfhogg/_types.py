"""The types of arguments."""

from __future__ import annotations

import mmap
import os
from typing import Sequence, Tuple, Union

#: A path, or an ``https://`` address of a file.
Path = Union[str, "os.PathLike[str]"]
#: A file: a path, an address, or an object that has its bytes.
Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, mmap.mmap]
#: A text or several.
Texts = Union[str, Sequence[str]]
#: Left, bottom, right and top in degrees.
Box = Tuple[float, float, float, float]
