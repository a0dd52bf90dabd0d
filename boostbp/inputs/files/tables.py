"""Tables in files: columns and types over all files, and rows batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from boostbp.inputs.files.parts import (
    TablePart,
    TableSource,
    arrow,
    decoded_type,
    explained,
    is_text,
    open_parts,
    row_index_of,
)
from boostbp.runtime import messages

if TYPE_CHECKING:
    import pyarrow as pa


class ColumnRoles(NamedTuple):
    """Columns of a table to read, and their types, which the files decide unless they are stated here."""

    # columns that become features, in this order; None means all without another role
    features: Sequence[str] | None = None
    categorical: Collection[str] = ()  # features that are categories in any case
    # features that are numbers in any case, such as columns that are empty at first
    numeric: Collection[str] = ()
    # columns that are returned unchanged: text from CSV, the stored type from Parquet
    verbatim: Collection[str] = ()
    drop: Collection[str] = ()  # columns that are not read
    missing: Collection[str] = ()  # text that means missing, in addition to empty cells and NA


def is_number(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds numbers."""
    types = arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _becomes_float(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is numeric, bool or null."""
    types = arrow().types
    return is_number(kind) or types.is_boolean(kind) or types.is_null(kind)


@dataclass(frozen=True)
class TableFiles:
    """A table in a file, or in the files of a folder, with the roles of its columns."""

    name: str  # name in errors
    parts: Sequence[TablePart]
    roles: ColumnRoles

    @property
    def names(self) -> list[str]:
        """Names of its columns, in order."""
        return self.parts[0].columns

    def type_of(self, name: str) -> pa.DataType:
        """Return the type of a column over all files, except null; raise ValueError if files disagree."""
        pa = arrow()
        kinds = {part.name: decoded_type(part.schema.field(name).type) for part in self.parts if part.holds(name)}
        if texts := [part.partition[name] for part in self.parts if not part.holds(name)]:
            kinds["the names of its folders"] = _type_spelt(texts)
        schemas = [pa.schema([(name, kind)]) for kind in (pa.null(), *kinds.values())]
        try:
            return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
        except pa.ArrowException as error:
            first = {str(kind): part for part, kind in reversed(kinds.items()) if not pa.types.is_null(kind)}
            held = ", and ".join(f"{kind} in {part}" for kind, part in reversed(first.items()))
            cure = "write it with one type in all files, drop it, or say how to read it (--categorical or --numeric)"
            raise ValueError(f"Column {name!r} of {self.name} holds {held}: {cure}.") from error

    def resolve(self, *, beside: Sequence[str] = (), categorical: Sequence[str] = ()) -> TableFiles:
        """Return the table with roles that name all features, except `beside`, and all categorical columns.

        Categorical columns are those in the roles, dictionaries, and columns of `categorical` that are not numeric.
        Warns if a row index is left out, as it would identify training rows. Raises ValueError if a named column is
        missing, a name is repeated, files have different columns, or there is no feature.
        """
        roles = self.roles._replace(verbatim=[*self.roles.verbatim, *beside])
        features = [name for name in self._features_of(roles) if name not in beside]
        if not features:
            raise ValueError(f"{self.name} has no feature besides {quoted(beside)}.")
        is_dictionary = arrow().types.is_dictionary
        dictionaries = {field.name for part in self.parts for field in part.schema if is_dictionary(field.type)}
        dictionaries |= {name for name in categorical if name in features and not _becomes_float(self.type_of(name))}
        declared = [*roles.categorical, *(name for name in features if name in dictionaries)]
        return replace(self, roles=roles._replace(features=features, categorical=declared))

    def _features_of(self, roles: ColumnRoles) -> Sequence[str]:
        named = (*(roles.features or ()), *roles.categorical, *roles.numeric, *roles.verbatim, *roles.drop)
        index = {name for part in self.parts for name in row_index_of(part.columns, part.schema)}.difference(named)
        left_out = {*index, *roles.drop, *roles.verbatim}
        for part in self.parts:
            counts = Counter(part.columns)
            if absent := [name for name in dict.fromkeys(named) if name not in counts]:
                blanks = [name for name in counts if name.strip() in absent]
                cure = f" Write {quoted(blanks)} with its blanks, or remove them from the file." if blanks else ""
                raise ValueError(f"{part.name} has no column {quoted(absent)}: its columns are {quoted(counts)}.{cure}")
            if repeated := [name for name, count in counts.items() if count > 1 and name not in index]:
                raise ValueError(f"{part.name} has more than one column {quoted(repeated)}: rename them.")
            differing = sorted((counts.keys() ^ {*self.names}) - left_out)
            if differing and roles.features is None:
                both = f"{part.name} and {self.parts[0].name}"
                raise ValueError(f"{both} have other columns, {quoted(differing)}: make them the same.")
        if roles.features is not None:
            return roles.features
        for name in dict.fromkeys(name for name in self.names if name in index):
            cure = "Rename it if it is a feature, or write the table without an index (index=False)"
            what = f"Column {name!r} of {self.name} is left out: it looks like the row index of the table"
            messages.warn(f"{what}. {cure}.")
        return [name for name in self.names if name not in left_out]

    def _feature_type(self, name: str) -> pa.DataType:
        """Return float64 for numbers, bools and empty columns; text for categories."""
        pa = arrow()
        if name in self.roles.numeric:
            return pa.float64()
        if name in self.roles.categorical or is_text(kind := self.type_of(name)):
            return pa.string()
        if _becomes_float(kind):
            return pa.float64()
        if pa.types.is_binary(kind):
            raise ValueError(f"Column {name!r} of {self.name} holds bytes that are not UTF-8: save the file in UTF-8.")
        raise ValueError(f"Column {name!r} of {self.name} holds {kind}: drop it, or make it categorical or numbers.")

    def batches(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield tables of the named features, float64 or text, and of the verbatim columns of the same rows, unchanged.

        A column may be both, as float64 may not represent an identifier that is also a feature.
        """
        pa, missing = arrow(), self.roles.missing
        features = {name: self._feature_type(name) for name in self.roles.features or ()}
        is_csv = self.parts[0].is_csv
        verbatim = {name: pa.string() if is_csv else self.type_of(name) for name in self.roles.verbatim}
        for part in self.parts:
            with explained(part.name, part.schema.names, is_csv=is_csv):
                for batch in part.read(_types_to_read(part, features | verbatim)):
                    X = {name: _as_feature(part, batch, name, kind, missing) for name, kind in features.items()}
                    beside = {name: _cast(part, part.column(batch, name), name, verbatim[name]) for name in verbatim}
                    # a table without columns keeps its number of rows
                    yield pa.table(X), pa.table(beside) if beside else pa.Table.from_batches([batch]).select([])
        pa.default_memory_pool().release_unused()  # otherwise the pool keeps a hundred megabytes


def quoted(names: Collection[str]) -> str:
    """Return names as errors list them."""
    return ", ".join(map(repr, names)) or "none"


def _reads_truth(part: TablePart, name: str, kind: pa.DataType) -> bool:
    """Return whether a column of a file has bools that become numbers; ``true`` does not parse as a number."""
    types = arrow().types
    return part.holds(name) and types.is_floating(kind) and types.is_boolean(part.schema.field(name).type)


def _as_feature(
    part: TablePart, batch: pa.RecordBatch, name: str, kind: pa.DataType, missing: Collection[str]
) -> pa.Array:
    """Return a column as a feature; a column that is also verbatim was read as text."""
    pa, column = arrow(), part.column(batch, name)
    if missing and is_text(column.type):
        compute = arrow("pyarrow.compute")
        column = column.cast(pa.string())
        column = compute.if_else(compute.is_in(column, pa.array(missing, pa.string())), None, column)
    if _reads_truth(part, name, kind):
        column = column.cast(pa.bool_())
    return _cast(part, column, name, kind, safe=False)  # rounds integers beyond float64, as in arrays


def _cast(part: TablePart, column: pa.Array, name: str, kind: pa.DataType, *, safe: bool = True) -> pa.Array:
    try:
        return column.cast(kind, safe=safe)
    except arrow().ArrowException as error:
        held = f"Column {name!r} of {part.name} holds {column.type}"
        raise ValueError(f"{held}, and cannot be read as {kind}: {error}.") from error


def _types_to_read(part: TablePart, types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    """Return the columns to read from a file, with types for a CSV file."""
    bool_, string = arrow().bool_(), arrow().string()
    read = {name: bool_ if _reads_truth(part, name, kind) else kind for name, kind in types.items() if part.holds(name)}
    return read or {name: string for name in part.schema.names[:1]}  # any column, for the number of rows


def _type_spelt(values: Sequence[str | None]) -> pa.DataType:
    """Return the type that text spells: whole numbers, numbers, dates, or text."""
    pa = arrow()
    texts = pa.array(values, pa.string())
    for kind in (pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us")):
        with suppress(pa.ArrowException):
            return texts.cast(kind).type
    return pa.string()


def open_table(source: TableFiles | TableSource, roles: ColumnRoles | None = None) -> TableFiles:
    """Open the table at a path, or in a dataset or scanner of pyarrow, without reading rows."""
    if isinstance(source, TableFiles):
        return source
    roles = roles or ColumnRoles()
    parts = open_parts(source, roles.missing)
    return TableFiles(parts[0].name if len(parts) == 1 else parts[0].name.partition("/")[0], parts, roles)
