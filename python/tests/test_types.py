"""Type stubs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any, Dict, Sequence

import pytest

from pbfhogg import _commands

PACKAGE = Path(__file__).parents[1] / "package"
HEAD = '''# Made of the description of the commands: `PBFHOGG_WRITE_STUBS=1 pytest tests/test_types.py` writes it anew.
from os import PathLike
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Union, overload

from . import summaries
from ._types import Box, Region

Value = Union[str, int, float, PathLike[str], Tuple[float, ...]]
Values = Union[Value, Iterable[Any]]

DESCRIPTIONS: List[Dict[str, Any]]
FUNCTIONS: Dict[str, Callable[..., Any]]
SUMMARIES: Dict[str, Any]
OTHER_ANSWERS: Dict[str, List[str]]

__all__ = [
    NAMES
]

def parameter_name(name: str) -> str: ...
def options_of(command: Dict[str, Any]) -> Dict[str, Any]: ...
'''


def is_whole(command: Dict[str, Any]) -> bool:
    """Whether the function of a command is the whole of what users see."""
    return _commands.parameter_name(command["name"]) in _commands.__all__


def type_of(name: str, described: Dict[str, Any]) -> str:
    """Return the type of a parameter."""
    if not described["has_value"]:
        return "bool"
    kinds = [kind for kind, names in (("Box", _commands._BOXES), ("Region", _commands._REGIONS)) if name in names]
    value = "Values" if described["is_repeated"] else "Value"
    return f"Union[{', '.join([value, *kinds])}]" if kinds else value


def stub_of(command: Dict[str, Any]) -> str:
    """Return the stub of the function of a command."""
    options = {key: option for key, option in _commands.options_of(command).items() if not option["is_output"]}
    function = _commands.FUNCTIONS[_commands.parameter_name(command["name"])]
    arguments = {_commands.parameter_name(one["name"]): one for one in command["arguments"]}

    def definition(without: Sequence[str], returned: str) -> str:
        parameters = []
        for name, parameter in function.__signature__.parameters.items():  # type: ignore[attr-defined]
            if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parameters:
                parameters.append("*")
            described = arguments.get(name) or options.get(name) or {"has_value": True, "is_repeated": False}
            kind = type_of(name, described)
            is_required = parameter.default is parameter.empty
            if name not in without:
                parameters.append(f"{name}: {kind}" if is_required else f"{name}: Optional[{kind}] = None")
        lines = ",\n    ".join(parameters)
        return f"def {function.__name__}(\n    {lines},\n) -> {returned}:"

    summary = _commands.SUMMARIES.get(function.__name__, Any)
    returned = f"summaries.{summary.__name__}" if typing.is_typeddict(summary) else str(summary).replace("typing.", "")
    documentation = f'    """{command["about"]}."""\n'
    others = _commands.OTHER_ANSWERS.get(function.__name__)
    if not others:
        return f"{definition((), returned)}\n{documentation}"
    assert set(others) <= set(options), function.__name__
    return (
        f"@overload\n{definition(others, returned)}\n{documentation}@overload\n{definition((), 'Any')} ...\n"
    )


def test_the_stubs_of_commands_are_those_of_the_program() -> None:
    """Options that come and go are seen."""
    path = PACKAGE / "pbfhogg" / "_commands.pyi"
    names = ",\n    ".join(f'"{name}"' for name in _commands.__all__) + ","
    stubs = [stub_of(command) for command in _commands.DESCRIPTIONS if is_whole(command)]
    expected = HEAD.replace("NAMES", names) + "\n" + "\n".join(stubs)
    if os.environ.get("PBFHOGG_WRITE_STUBS"):
        path.write_text(expected)
    assert path.read_text() == expected


def test_mypy_accepts_the_package_and_its_examples(tmp_path: Path) -> None:
    """The package itself, the examples of the page, and none that is wrong."""
    pytest.importorskip("mypy")
    page = (PACKAGE.parents[1] / "reference" / "python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "examples.py").write_text("\n".join(blocks))
    (tmp_path / "wrong.py").write_text('import pbfhogg\npbfhogg.read("x", kind="way")\npbfhogg.cat("x", overwrit=True)\n')
    environment = {**os.environ, "MYPYPATH": str(PACKAGE), "MYPY_CACHE_DIR": str(tmp_path)}

    def check(*words: str) -> str:
        words = ("--ignore-missing-imports", *words)
        found = subprocess.run([sys.executable, "-m", "mypy", *words], capture_output=True, text=True, env=environment)
        return found.stdout

    package = check("--strict", "-p", "pbfhogg")
    assert "Success" in package, package
    examples = check("--strict", "--no-strict-optional", str(tmp_path / "examples.py"))
    assert "Success" in examples, examples
    examples = check("--strict", str(PACKAGE.parents[1] / "examples" / "spark_features.py"))
    assert "Success" in examples, examples
    wrong = check(str(tmp_path / "wrong.py"))
    assert '"kind"' in wrong and '"overwrit"' in wrong
