"""The examples of docstrings."""

from __future__ import annotations

import doctest

import duckdb
import polars
import pyarrow
import pytest

import pbfhogg


@pytest.mark.parametrize("module", [pbfhogg, pbfhogg._table])
def test_examples(module: object) -> None:
    """Each example prints what it says."""
    names = {"pbfhogg": pbfhogg, "duckdb": duckdb, "polars": polars, "pyarrow": pyarrow}
    results = doctest.testmod(module, extraglobs=names, optionflags=doctest.ELLIPSIS)
    assert results.attempted > 0 and results.failed == 0
