"""Errors that name the argument that they are about."""

from __future__ import annotations

import functools
from typing import Any, Callable, Iterable, List, TypeVar, cast

_Function = TypeVar("_Function", bound=Callable[..., Any])
#: The beginning of the note that the module in Rust adds to an error of an argument.
_NOTE = "while processing '"
#: The names of arguments of the module in Rust that users know by others. An error of metadata names the field.
_PLACE, _METADATA = "place", "metadata"


def _named(error: Exception) -> Exception:
    """Return an error of the same kind whose message begins with the name of the argument."""
    note = next((note for note in getattr(error, "__notes__", ()) if note.startswith(_NOTE)), None)
    if note is None:
        return error
    name = note[len(_NOTE) : -1]
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(str(error) if name == _METADATA else f"{'lat, lon' if name == _PLACE else name}: {error}")


def names_arguments(function: _Function) -> _Function:
    """Let errors of the arguments of a function name them."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError, OverflowError) as error:
            named = _named(error)
            if named is error:
                raise
        raise named

    return cast(_Function, call)


def list_of(name: str, values: Iterable[Any]) -> List[Any]:
    """Return the values of an argument as a list."""
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"{name}: expected a list, not {type(values).__name__}") from None
