"""Cells of a batch as features: numbers, truth, amounts in text, dates and categories, as a file's options say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from boostbp.inputs.conversions import CURRENCIES, NO, YES
from boostbp.inputs.dates import date_numbers, moments_of, part_names
from boostbp.inputs.files.options import FileOptions
from boostbp.inputs.files.parts import TablePart, arrow, is_text
from boostbp.runtime.messages import named_in_errors

if TYPE_CHECKING:
    import pyarrow as pa

_BLANKS = "\\s\u00a0\u2009\u202f"
# Around the digits: at the end, and at the beginning or after a sign
_AFFIX = (rf"[{CURRENCIES}%{_BLANKS}]+$|^([-+]?)[{CURRENCIES}{_BLANKS}]+", r"\1")
_AMOUNTS = (("[\u2212\u2013]", "-"), _AFFIX, (r"^\((.*)\)$", r"-\1"), _AFFIX)  # patterns and replacements
_TRUTH = tuple((rf"(?i)^(?:{'|'.join(sorted(words))})$", number) for words, number in ((YES, "1"), (NO, "0")))


def _as_python(column: pa.Array, options: FileOptions, steps: Iterable[tuple[str, str]] = ()) -> pa.Array:
    """Return the cells of a text column that are numbers, after replacements, as Python writes them; null otherwise."""
    compute = arrow("pyarrow.compute")
    text = compute.utf8_trim_whitespace(column.cast(arrow().string()))
    for pattern, replacement in steps:
        text = compute.replace_substring_regex(text, pattern, replacement)
    sep = f"[{_BLANKS}]" if options.thousands.isspace() else re.escape(options.thousands)
    point = re.escape(options.decimal)
    groups = rf"[1-9]\d{{0,2}}(?:{sep}\d{{3}})+|" if sep else ""  # not 0,123, which may be 0.123
    shape = rf"^[-+]?(?:(?:{groups}\d+)(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d+)?$"
    text = compute.if_else(compute.match_substring_regex(text, shape), text, None)
    if sep:
        text = compute.replace_substring_regex(text, sep, "")
    return compute.replace_substring(text, options.decimal, ".")


def _refuse_mixed_units(text: pa.Array, name: str, units: set[str]) -> None:
    """Raise ValueError if some cells have a percent sign, and others none, or they are of several currencies.

    `units` are the signs of earlier batches, to which those of these cells are added; "" is no percent sign.
    """
    compute, cure = arrow("pyarrow.compute"), "write all of them alike, or store numbers"
    units |= {"%" if has else "" for has in compute.match_substring(text, "%").unique().drop_null().to_pylist()}
    units |= {sign for sign in CURRENCIES if compute.any(compute.match_substring(text, sign)).as_py()}
    if {"%", ""} <= units:
        raise ValueError(f"Column {name!r} must hold numbers: some have a percent sign, and others none: {cure}.")
    if len(units & {*CURRENCIES}) > 1:
        raise ValueError(f"Column {name!r} must hold numbers: they are amounts of several currencies: {cure}.")


def numbers_in(
    column: pa.Array, options: FileOptions, name: str, *, amounts: bool = False, units: set[str] | None = None
) -> pa.Array:
    """Return the numbers that the cells of a text column spell, float64; raise ValueError with the first that does not.

    Missing cells stay missing, and so do those of the options' texts for it. In columns of `amounts`, and those that
    the options call numeric, a currency, a per cent sign and brackets around an amount below 0 are read; in the latter
    also words of truth. Their signs must agree, also with the `units` of earlier batches, which are extended.
    """
    pa, compute = arrow(), arrow("pyarrow.compute")
    text = column.cast(pa.string())
    is_missing = compute.is_in(compute.utf8_trim_whitespace(text), pa.array(["", *options.missing], pa.string()))
    text = compute.if_else(is_missing, None, text)
    is_numeric = name in options.numeric
    steps = [*(_AMOUNTS if amounts or is_numeric else ()), *(_TRUTH if is_numeric else ())]
    numbers = _as_python(text, options, steps)
    wrong = compute.filter(text, compute.and_(compute.is_valid(text), compute.is_null(numbers)))
    if len(wrong):
        cure = "Declare it as missing (--missing), or name a column of amounts (--numeric)"
        raise ValueError(f"Column {name!r} must hold numbers: {wrong[0].as_py()!r:.99} is not one. {cure}.")
    if amounts or is_numeric:
        _refuse_mixed_units(text, name, set() if units is None else units)
    return numbers.cast(pa.float64())


def are_numbers(column: pa.Array, options: FileOptions) -> bool:
    """Return whether all cells of a text column that are not missing are numbers, of which there is one."""
    return bool(_as_python(column, options).null_count == column.null_count < len(column))


def reads_truth(part: TablePart, name: str, kind: pa.DataType) -> bool:
    """Return whether a column of a file has bools that become numbers; ``true`` does not parse as a number."""
    types = arrow().types
    return part.holds(name) and types.is_floating(kind) and types.is_boolean(part.schema.field(name).type)


def as_features(
    part: TablePart, batch: pa.RecordBatch, name: str, kind: pa.DataType, options: FileOptions, units: set[str]
) -> dict[str, pa.Array]:
    """Return a column as features by name; a column that is also verbatim was read as text.

    `units` are the signs of the column in earlier batches, for `numbers_in`.
    """
    pa, column = arrow(), part.column(batch, name)
    if options.missing and is_text(column.type):
        compute = arrow("pyarrow.compute")
        column = column.cast(pa.string())
        column = compute.if_else(compute.is_in(column, pa.array(options.missing, pa.string())), None, column)
    if pa.types.is_timestamp(kind):
        return dict(zip(part_names(name), date_numbers(_moments(part, column, name, kind, options)), strict=True))
    if reads_truth(part, name, kind):
        column = column.cast(pa.bool_())
    elif is_text(column.type) and pa.types.is_floating(kind) and options.spell_numbers(name):
        with named_in_errors(part.name):
            return {name: numbers_in(column, options, name, units=units)}
    return {name: cast(part, column, name, kind, safe=False)}  # rounds integers beyond float64, as in arrays


def _moments(
    part: TablePart, column: pa.Array, name: str, kind: pa.DataType, options: FileOptions
) -> NDArray[np.datetime64]:
    """Return the moments of a column of dates, in UTC; each text is parsed once, and numbers are refused."""
    pa = arrow()
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type) or pa.types.is_null(column.type):
        column = column.cast(pa.timestamp("us")) if pa.types.is_date(column.type) else column
        moments = cast(part, column, name, kind, safe=False)
        return np.asarray(moments.to_numpy(zero_copy_only=False)).astype("M8[us]")
    texts = column.cast(pa.string()).dictionary_encode()
    with named_in_errors(f"Column {name!r} of {part.name} must hold dates, or text that --missing names"):
        moments = moments_of(texts.dictionary.to_pylist(), options.day_first)
    place = texts.indices.fill_null(len(moments)).to_numpy(zero_copy_only=False)
    return np.append(moments, np.datetime64("NaT"))[place]


def cast(part: TablePart, column: pa.Array, name: str, kind: pa.DataType, *, safe: bool = True) -> pa.Array:
    """Return a column in another type; raise ValueError with the file and the column if a cell does not fit."""
    try:
        return column.cast(kind, safe=safe)
    except arrow().ArrowException as error:
        held = f"Column {name!r} of {part.name} holds {column.type}"
        raise ValueError(f"{held}, and cannot be read as {kind}: {error}.") from error


def types_to_read(part: TablePart, types: Mapping[str, pa.DataType], options: FileOptions) -> dict[str, pa.DataType]:
    """Return the columns to read from a file, with types for a CSV file."""
    bool_, string = arrow().bool_(), arrow().string()

    def type_of(name: str, kind: pa.DataType) -> pa.DataType:
        if reads_truth(part, name, kind):
            return bool_
        is_spelt = options.thousands or name in options.numeric or arrow().types.is_timestamp(kind)
        return string if is_spelt else kind

    read = {name: type_of(name, kind) for name, kind in types.items() if part.holds(name)}
    return read or {name: string for name in part.schema.names[:1]}  # any column, for the number of rows
