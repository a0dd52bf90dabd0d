"""Tables in files: their columns and types over all files, and their rows batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from boostbp import cautions
from boostbp.files.parts import Part, arrow, decoded_type, explained, is_text, parts_of, row_index_of


class Columns(NamedTuple):
    """Which columns of a table are read, and as what; the files decide the types of all others."""

    # columns that become features, in this order; None takes all that have no other part
    features: tuple[str, ...] | None = None
    categorical: Collection[str] = ()  # features that are categories whatever they look like
    # features that are numbers whatever they look like, such as columns that are empty at first
    numeric: Collection[str] = ()
    # columns that are returned unchanged: text from CSV, the stored type from Parquet
    verbatim: Collection[str] = ()
    drop: Collection[str] = ()  # columns that are not read
    missing: Collection[str] = ()  # text that means missing, as empty cells and NA do

    @property
    def named(self) -> list[str]:
        """All columns that are named, each once."""
        parts = (self.features or (), self.categorical, self.numeric, self.verbatim, self.drop)
        return list(dict.fromkeys(name for part in parts for name in part))


def is_number(kind: Any) -> bool:
    """Whether an Arrow type holds numbers."""
    types = arrow().types
    return any(test(kind) for test in (types.is_integer, types.is_floating, types.is_decimal))


def _is_numeric(kind: Any) -> bool:
    """Whether an Arrow type holds numbers or truth values, or nothing yet."""
    types = arrow().types
    return is_number(kind) or types.is_boolean(kind) or types.is_null(kind)


@dataclass(frozen=True)
class Table:
    """A table in a file, or in the files of a folder."""

    name: str  # what errors call it
    parts: Sequence[Part]

    @property
    def names(self) -> list[str]:
        """Names of its columns, in order."""
        return self.parts[0].columns

    def type_of(self, name: str) -> Any:
        """The type of a column over all files, of which some may have nulls alone; ValueError if they disagree."""
        pa = arrow()
        kinds = {part.name: decoded_type(part.schema.field(name).type) for part in self.parts if part.holds(name)}
        if texts := [part.partition[name] for part in self.parts if not part.holds(name)]:
            kinds["the names of its folders"] = _type_spelt(texts)
        common, first = pa.null(), ""
        for part, kind in kinds.items():
            try:
                schemas = [pa.schema([(name, known)]) for known in (common, kind)]
                common = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
            except pa.ArrowException as error:
                raise ValueError(
                    f"Column {name!r} of {self.name} holds {common} in {first}, and {kind} in {part}: write it with "
                    "one type in all files, or drop it (on the command line, --categorical or --numeric say how to "
                    "read it)."
                ) from error
            first = first if first and not pa.types.is_null(kinds[first]) else part
        return common

    def roles(self, columns: Columns, *, beside: Sequence[str] = (), categorical: Sequence[str] = ()) -> Columns:
        """Return the columns with all features named, except those `beside` them, and with all categorical columns.

        Categorical are those that `columns` names, dictionaries, and columns of `categorical` that hold no numbers.
        Warns of a row index that is left out, as it would identify training rows. Raises ValueError if a named column
        is missing, a name comes twice, files have different columns, or there is no feature.
        """
        columns = columns._replace(verbatim=list(dict.fromkeys((*columns.verbatim, *beside))))
        features = [name for name in self._features_of(columns) if name not in beside]
        if not features:
            raise ValueError(f"{self.name} has no feature besides {listed(beside)}.")
        is_dictionary = arrow().types.is_dictionary
        dictionaries = {field.name for part in self.parts for field in part.schema if is_dictionary(field.type)}
        declared = [name for name in features if name in dictionaries]
        declared += [name for name in features if name in categorical and not _is_numeric(self.type_of(name))]
        return columns._replace(
            features=tuple(features), categorical=list(dict.fromkeys((*columns.categorical, *declared)))
        )

    def _features_of(self, columns: Columns) -> list[str]:
        index = set[str]().union(*(row_index_of(part.columns, part.schema) for part in self.parts))
        index -= {*columns.named}
        left_out = {*index, *columns.drop, *columns.verbatim}
        first, expected = self.parts[0].name, set(self.names)
        for part in self.parts:
            counts = Counter(part.columns)
            absent = [name for name in columns.named if name not in counts]
            if absent:
                raise ValueError(f"{part.name} has no column {listed(absent)}: its columns are {', '.join(counts)}.")
            twice = [name for name, count in counts.items() if count > 1 and name not in index]
            if twice:
                raise ValueError(f"{part.name} has more than one column {listed(twice)}: rename them.")
            other = sorted((counts.keys() ^ expected) - left_out)
            if other and columns.features is None:
                raise ValueError(
                    f"{part.name} and {first} differ in the columns {listed(other)}: give a folder whose files have "
                    "the same columns."
                )
        if columns.features is not None:
            return list(columns.features)
        for name in dict.fromkeys(name for name in self.names if name in index):
            cautions.warn(
                f"Column {name!r} of {self.name} is left out: it looks like the row index of the table that was "
                "written. Rename it if it is a feature, or write the table without an index (index=False)."
            )
        return [name for name in self.names if name not in left_out]

    def _feature_type(self, name: str, columns: Columns) -> Any:
        """float64 for numbers, truth values and empty columns; text for categories."""
        pa = arrow()
        if name in columns.numeric:
            return pa.float64()
        if name in columns.categorical or is_text(kind := self.type_of(name)):
            return pa.string()
        if _is_numeric(kind):
            return pa.float64()
        if pa.types.is_binary(kind):
            raise ValueError(f"Column {name!r} of {self.name} holds bytes that are not UTF-8: save the file in UTF-8.")
        raise ValueError(
            f"Column {name!r} of {self.name} holds {kind}, which is neither numbers nor categories: drop it, name it "
            "categorical, or turn it into numbers, such as days since a date."
        )

    def batches(self, columns: Columns) -> Iterator[tuple[Any, Any]]:
        """Tables of features in their types, and of the verbatim columns of the same rows, unchanged.

        All features are named (see `roles`). A column may be both: an identifier that is a feature as well is more
        than a float64 can hold.
        """
        pa = arrow()
        features = {name: self._feature_type(name, columns) for name in columns.features or ()}
        verbatim = {name: pa.string() if self.parts[0].is_csv else self.type_of(name) for name in columns.verbatim}
        for part in self.parts:
            with explained(part.name, part.schema.names, is_csv=part.is_csv):
                for batch in part.rows(_types_to_read(part, features, verbatim)):
                    made = {name: _as_feature(part, batch, name, features[name], columns.missing) for name in features}
                    kept = {name: _cast(part, part.column(batch, name), name, verbatim[name]) for name in verbatim}
                    # a table without columns keeps its number of rows
                    yield pa.table(made), pa.table(kept) if kept else pa.Table.from_batches([batch]).select([])
        pa.default_memory_pool().release_unused()  # the pool would keep a hundred megabytes


def listed(names: Collection[str]) -> str:
    """Names as errors list them."""
    return ", ".join(map(repr, names)) or "none"


def _types_to_read(part: Part, features: dict[str, Any], verbatim: dict[str, Any]) -> dict[str, Any]:
    """Return the types to read a CSV file with; truth values are cast later, as `true` does not parse as a number."""
    pa = arrow()
    types = {
        name: pa.bool_() if pa.types.is_boolean(part.schema.field(name).type) and kind == pa.float64() else kind
        for name, kind in (features | verbatim).items()
        if part.holds(name)
    }
    return types or {name: pa.string() for name in part.schema.names[:1]}  # any column has the number of rows


def _as_feature(part: Part, batch: Any, name: str, kind: Any, missing: Collection[str]) -> Any:
    """Return a column as a feature; a verbatim one, which was read as text, gets the type of its file."""
    pa, column = arrow(), part.column(batch, name)
    if missing and is_text(column.type):
        compute = arrow("pyarrow.compute")
        column = column.cast(pa.string())
        column = compute.if_else(compute.is_in(column, pa.array(missing, pa.string())), None, column)
    if part.holds(name) and pa.types.is_boolean(part.schema.field(name).type) and kind == pa.float64():
        column = column.cast(pa.bool_())
    return _cast(part, column, name, kind, safe=False)  # integers beyond float64 are rounded, as those of arrays


def _cast(part: Part, column: Any, name: str, kind: Any, *, safe: bool = True) -> Any:
    try:
        return column.cast(kind, safe=safe)
    except arrow().ArrowException as error:
        raise ValueError(
            f"Column {name!r} of {part.name} holds {column.type}, and cannot be read as {kind}: {error}."
        ) from error


def _type_spelt(values: Sequence[str | None]) -> Any:
    """The type that text spells: whole numbers, numbers, dates, or text."""
    pa = arrow()
    texts = pa.array(values, pa.string())
    for kind in (pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us")):
        try:
            texts.cast(kind)
        except pa.ArrowException:
            continue
        return kind
    return pa.string()


def open_table(source: Any, missing: Collection[str] = ()) -> Table:
    """The table at a path (see `parts_of`).

    Raises ValueError if the folders of some files name other columns than those of others.
    """
    parts = parts_of(source, missing)
    for part in parts:
        if part.partition.keys() != parts[0].partition.keys():
            raise ValueError(
                f"The folders of {part.name} name the columns {listed(part.partition)}, those of {parts[0].name} "
                f"{listed(parts[0].partition)}: put all files of a table into folders that are named alike, as in "
                "'year=2020'."
            )
    return Table(parts[0].name if len(parts) == 1 else parts[0].name.partition("/")[0], parts)
