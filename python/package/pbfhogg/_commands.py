"""The commands of the program as functions.

A function is made of the description of its command, so that all commands and options are there.
"""

from __future__ import annotations

import inspect
import json
import keyword
import numbers
import os
from contextlib import ExitStack
from typing import Any, Callable, Dict, Iterable, List

from . import _pbfhogg, summaries
from ._regions import region_file

#: The commands, described by the program.
DESCRIPTIONS: List[Dict[str, Any]] = json.loads(_pbfhogg.commands())


def parameter_name(name: str) -> str:
    """Return the name of an argument or an option as a name in Python."""
    name = name.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def options_of(command: Dict[str, Any]) -> Dict[str, Any]:
    """Return the options of a command by the names of their parameters."""
    arguments = {argument["name"] for argument in command["arguments"]}
    options = {}
    for option in command["options"]:
        # An option with the name of an argument names a file with such arguments.
        suffix = "_file" if option["name"] in arguments else ""
        options[parameter_name(option["name"]) + suffix] = option
    del options["json"]
    return options


#: The types of what functions return, if it is always the summary.
SUMMARIES: Dict[str, Any] = {
    "inspect": summaries.InspectSummary,
    "fileinfo": Dict[str, Any],
    "check": summaries.CheckSummary,
    "diff": summaries.DiffSummary,
    "cat": summaries.CopySummary,
    "sort": summaries.SortSummary,
    "merge": summaries.SortSummary,
    "update": summaries.UpdateSummary,
    "regions": summaries.RegionsSummary,
    "apply_changes": summaries.ApplyChangesSummary,
    "merge_changes": summaries.MergeChangesSummary,
    "extract": summaries.ExtractSummary,
    "getid": summaries.GetidSummary,
    "getparents": summaries.GetparentsSummary,
    "tags_filter": summaries.TagsFilterSummary,
    "tags_edit": summaries.TagsEditSummary,
    "export": summaries.ExportSummary,
    "coastline": summaries.CoastlineSummary,
    "augmented_diff": summaries.AugmentedDiffSummary,
    "build_geocode_index": summaries.GeocodeIndexSummary,
    "add_locations_to_ways": summaries.AddLocationsSummary,
    "renumber": summaries.RenumberSummary,
    "repack": summaries.RepackSummary,
    "repair": summaries.RepairSummary,
    "split": summaries.SplitSummary,
    "degrade": summaries.DegradeSummary,
    "time_filter": summaries.CopySummary,
    "changeset_filter": summaries.Written,
    "synth": summaries.SynthSummary,
    "create_locations_index": summaries.LocationsIndexSummary,
}
#: The options with which a function returns something else.
OTHER_ANSWERS: Dict[str, List[str]] = {
    "inspect": ["get", "html", "indexed", "show"],
    "fileinfo": ["get", "show_variables"],
    "diff": ["by", "format"],
    "update": ["check"],
    "export": ["print_default_config", "print_themes", "show_index_types"],
    "add_locations_to_ways": ["show_index_types"],
}
#: The options that are a box, or may be one.
_BOXES = ("bbox", "clip")
#: The options that are the file of a region.
_REGIONS = ("polygon", "clip")


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, bytes, bytearray, os.PathLike))


def _text(name: str, value: Any) -> str:
    """Return a value as a word of a command line. The numbers of a tuple are joined by commas, as in a box."""
    if isinstance(value, tuple):
        return ",".join(_text(name, part) for part in value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, (str, numbers.Real)) and not isinstance(value, bool):
        return str(value)
    raise TypeError(f"{name}: expected a text, a number, a path or a tuple, not {type(value).__name__}")


def _values(name: str, value: Any) -> List[str]:
    """Return the values of a list, an array or the like as words, or that of anything else as one word."""
    if _is_text(value) or isinstance(value, (tuple, dict)) or not isinstance(value, Iterable):
        return [_text(name, value)]
    values = list(value)
    if name in _BOXES and all(isinstance(one, numbers.Real) for one in values):
        return [_text(name, tuple(values))]
    return [_text(name, one) for one in values]


def _given(name: str, value: Any) -> List[str]:
    """Return values as words. Raises an error for the streams of the program."""
    texts = _values(name, value)
    if "-" in texts:
        raise ValueError(f'{name}: "-" is a stream of the program; give a file')
    return texts


def _is_region(name: str, value: Any) -> bool:
    """Whether a value is a region that is not in a file yet."""
    if name not in _REGIONS or _is_text(value):
        return False
    if not isinstance(value, Iterable) or hasattr(value, "__geo_interface__"):
        return True
    return isinstance(value, dict) or all(hasattr(one, "__geo_interface__") for one in value)


def _function(command: Dict[str, Any]) -> Callable[..., Any]:
    """Make the function of a command."""
    name = parameter_name(command["name"])
    arguments = [parameter_name(argument["name"]) for argument in command["arguments"]]
    options = options_of(command)
    output = next((options.pop(key) for key, option in [*options.items()] if option["is_output"]), None)
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        inspect.Parameter(
            parameter_name(argument["name"]),
            positional,
            default=inspect.Parameter.empty if argument["is_required"] else None,
        )
        for argument in command["arguments"]
    ]
    if output is not None:
        parameters.append(inspect.Parameter("output", positional, default=None))
    # A parameter without a default cannot follow one that has a default.
    for index, parameter in enumerate(parameters):
        if any(before.default is not inspect.Parameter.empty for before in parameters[:index]):
            parameters[index] = parameter.replace(default=None)
    keywords = inspect.Parameter.KEYWORD_ONLY
    parameters += [inspect.Parameter(key, keywords, default=None) for key in options]
    returned = SUMMARIES.get(name, Any) if name not in OTHER_ANSWERS else Any
    signature = inspect.Signature(parameters, return_annotation=returned)

    def words_of(bound: Dict[str, Any], stack: ExitStack) -> List[str]:
        words = [command["name"], "--json", "--no-progress"]
        if bound.get("progress"):
            words.remove("--no-progress")
        operands: List[str] = []
        for key, value in bound.items():
            if value is None or value is False:
                continue
            if _is_region(key, value):
                value = stack.enter_context(region_file(key, value))
            if key in arguments:
                operands += _given(key, value)
            elif key == "output" and output is not None:
                words += [f"--{output['name']}={text}" for text in _given(key, value)]
            elif options[key]["has_value"]:
                words += [f"--{options[key]['name']}={text}" for text in _given(key, value)]
            elif value is True:
                words.append("--" + options[key]["name"])
            else:
                raise TypeError(f"{key}: expected True or False, not {type(value).__name__}")
        return [*words, "--", *operands]

    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        with ExitStack() as stack:
            _, printed = _pbfhogg.call(words_of(bound, stack))
        try:
            return json.loads(printed) if printed else {}
        except json.JSONDecodeError:
            return printed

    run.__name__ = run.__qualname__ = name
    run.__module__ = "pbfhogg"
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__doc__ = _documentation(command, options)
    return run


def _documentation(command: Dict[str, Any], options: Dict[str, Any]) -> str:
    lines = [f"{command['about']}.", ""]
    lines.append(f"Does what ``pbfhogg {command['name']}`` does, and returns the summary of ``--json`` as a dict.")
    lines.append("Several values are given as a list, a box as four numbers.")
    if any(option["name"] == "polygon" for option in command["options"]):
        lines.append("A polygon is a file, an area of the input such as r62422, or geometries of shapely or GeoPandas.")
    lines.append("The dict has what was found; a check that finds faults raises no exception.")
    lines.append("")
    for argument in command["arguments"]:
        lines.append(f":param {parameter_name(argument['name'])}: {argument['about']}")
    lines += [f":param {key}: {option['about']}" for key, option in options.items()]
    return "\n".join(lines)


FUNCTIONS: Dict[str, Callable[..., Any]] = {
    parameter_name(command["name"]): _function(command) for command in DESCRIPTIONS
}

#: The functions that are the whole of a command. That of ``augmented-diff`` also returns a table.
__all__ = [name for name in FUNCTIONS if name != "augmented_diff"]
globals().update(FUNCTIONS)
