"""The examples of docstrings."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any, Dict

import duckdb
import polars
import pyarrow
import pytest

import pbfhogg


PAGE = (Path(__file__).parents[2] / "reference" / "python.md").read_text()


@pytest.mark.filterwarnings("ignore:left out")
def test_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    """The examples of `reference/python.md` run, one after another, in one interpreter."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    names: Dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert "2390282 M1 88" in capsys.readouterr().out


def test_osmnx_makes_a_graph(tmp_path: Path) -> None:
    """The example that needs another package."""
    pytest.importorskip("osmnx")
    (block,) = re.findall(r"^```python osmnx\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(block, {"pbfhogg": pbfhogg, "directory": tmp_path})


@pytest.mark.parametrize("module", [pbfhogg._reading, pbfhogg._changes, pbfhogg._table, pbfhogg._writer])
def test_examples(module: object) -> None:
    """Each example prints what it says."""
    names = {"pbfhogg": pbfhogg, "duckdb": duckdb, "polars": polars, "pyarrow": pyarrow}
    results = doctest.testmod(module, extraglobs=names, optionflags=doctest.ELLIPSIS)
    assert results.attempted > 0 and results.failed == 0
