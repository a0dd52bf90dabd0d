"""Tables in files: columns and types over all files, and rows batch by batch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from boostbp.inputs.conversions import code_for_dates
from boostbp.inputs.dates import ORDERED, day_order, is_order_open, part_names, source_columns
from boostbp.inputs.faults import Fault, refuse_faults
from boostbp.inputs.files.cells import are_numbers, as_features, cast, types_to_read
from boostbp.inputs.files.options import Change, FileOptions
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
from boostbp.runtime.messages import named_in_errors

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
    options: FileOptions = FileOptions()

    @classmethod
    def like(cls, names: Sequence[str], categorical: Collection[str], options: FileOptions) -> ColumnRoles:
        """Return the roles of the columns from which features with these names come, with known types."""
        features = source_columns(names, options.dates)
        numeric = [name for name in features if name not in (*categorical, *options.dates)]
        return cls(features, categorical, numeric, options=options)

    def changed(self, changes: Sequence[Change]) -> ColumnRoles:
        """Return the roles with other options, and without the columns that these drop."""
        dropped = [value for option, value in changes if option == "drop"]
        features = None if self.features is None else [name for name in self.features if name not in dropped]
        return self._replace(features=features, drop=[*self.drop, *dropped], options=self.options.changed(changes))


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

    source: TableSource
    name: str  # name in errors
    parts: Sequence[TablePart]
    roles: ColumnRoles
    noticed: Sequence[Change] = ()  # options that its text seems to need and the caller did not state

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
        roles = self._with_known_dates()._replace(verbatim=[*self.roles.verbatim, *beside])
        features = [name for name in self._features_of(roles) if name not in beside]
        if not features:
            raise ValueError(f"{self.name} has no feature besides {quoted(beside)}.")
        is_dictionary = arrow().types.is_dictionary
        dictionaries = {field.name for part in self.parts for field in part.schema if is_dictionary(field.type)}
        dictionaries |= {name for name in categorical if name in features and not _becomes_float(self.type_of(name))}
        declared = [*roles.categorical, *(name for name in features if name in dictionaries)]
        self._refuse_names_of_parts(features)
        options = roles.options
        if options.dates and options.day_first is None:
            options = replace(options, day_first=self._day_order(options.dates))
        return replace(self, roles=roles._replace(features=features, categorical=declared, options=options))

    def _with_known_dates(self) -> ColumnRoles:
        """Return the roles without dates whose numbers are in the files already."""
        dates = self.roles.options.dates
        known = [name for name in dates if name not in self.names and {*part_names(name)} <= {*self.names}]
        if not known:
            return self.roles
        features = [
            part for name in self.roles.features or () for part in (part_names(name) if name in known else [name])
        ]
        options = replace(self.roles.options, dates=tuple(name for name in dates if name not in known))
        return self.roles._replace(features=features, options=options)

    def _day_order(self, dates: Sequence[str]) -> bool | None:
        """Return whether the day comes first in the first dates; None if it has none before the year."""
        pa, part = arrow(), self.parts[0]
        names = [name for name in dates if part.holds(name) and (part.is_csv or is_text(self.type_of(name)))]
        batch = next(part.read(dict.fromkeys(names, pa.string())), None) if names else None
        columns = [part.column(batch, name).unique().drop_null() for name in names] if batch is not None else []
        texts = [text for column in columns for text in column.to_pylist() if ORDERED.match(text)]
        with named_in_errors(f"Columns {quoted(names)} of {self.name} must hold dates"):
            order = day_order(texts)
        if order is None and is_order_open(texts):
            both = "--day-first or --month-first"
            raise ValueError(f"{self.name} has dates in which the day or the month may come first: say {both}.")
        return True if texts and order is None else order

    def _refuse_names_of_parts(self, features: Sequence[str]) -> None:
        for name in self.roles.options.dates:
            if clashes := [part for part in part_names(name) if part in features and name in features]:
                raise ValueError(f"{self.name} has columns {quoted(clashes)}, as the date {name!r} would: rename them.")

    def _features_of(self, roles: ColumnRoles) -> Sequence[str]:
        options = (*roles.options.dates, *roles.options.numeric)
        named = (*(roles.features or ()), *roles.categorical, *roles.numeric, *roles.verbatim, *roles.drop, *options)
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

    def _type_fault(self, name: str) -> Fault | None:
        """Return why no value of a feature of this type is a number or a category; None if they are."""
        types, label, kind = arrow().types, f"Column {name!r} of {self.name}", self.type_of(name)
        if is_text(kind) or _becomes_float(kind):
            return None
        if types.is_binary(kind):
            options = [("encoding", "cp1252")] if self.parts[0].is_csv else []
            holds = "bytes that are not UTF-8"
            return Fault(name, f"{label} holds {holds}: save the file in UTF-8.", holds, options)
        if types.is_temporal(kind) and not types.is_duration(kind):
            how = f"drop it, or make it categorical or numbers, such as days: {code_for_dates((), (), 'column')}"
            return Fault(name, f"{label} holds {kind}: {how}.", f"dates or times ({kind})", [("dates", name)])
        return Fault(name, f"{label} holds {kind}: drop it, or make it categorical or numbers.", str(kind))

    def without_faults(self) -> tuple[TableFiles, list[Fault]]:
        """Return the table without features that are of no use by their type, and these."""
        features, roles = self.roles.features or (), self.roles
        known = {*roles.categorical, *roles.numeric, *roles.options.dates}
        faults = {name: fault for name in features if name not in known and (fault := self._type_fault(name))}
        left = [name for name in features if name not in faults]
        return replace(self, roles=roles._replace(features=left)), list(faults.values())

    def _feature_type(self, name: str) -> pa.DataType:
        """Return float64 for numbers, bools and empty columns; text for categories; a time stamp for dates."""
        pa, roles = arrow(), self.roles
        if name in roles.options.dates:
            return pa.timestamp("us", "UTC")
        if name in roles.categorical:
            return pa.string()
        return pa.float64() if name in roles.numeric or not is_text(self.type_of(name)) else pa.string()

    def batches(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield tables of the named features, float64 or text, and of the verbatim columns of the same rows, unchanged.

        A date is the five columns of its numbers. A column may be feature and verbatim, as float64 may not represent an
        identifier that is also a feature. Raises ValueError for features that cannot be used.
        """
        pa, options = arrow(), self.roles.options
        refuse_faults(self.without_faults()[1], self.name)
        features = {name: self._feature_type(name) for name in self.roles.features or ()}
        is_csv, units = self.parts[0].is_csv, defaultdict[str, set[str]](set)
        verbatim = {name: pa.string() if is_csv else self.type_of(name) for name in self.roles.verbatim}
        for part in self.parts:
            with explained(part.name, part.schema.names, options if is_csv else None):
                for batch in part.read(types_to_read(part, features | verbatim, options)):
                    X = dict[str, Any]()
                    for name, kind in features.items():
                        X |= as_features(part, batch, name, kind, options, units[name])
                    beside = {name: cast(part, part.column(batch, name), name, verbatim[name]) for name in verbatim}
                    # a table without columns keeps its number of rows
                    yield pa.table(X), pa.table(beside) if beside else pa.Table.from_batches([batch]).select([])
        pa.default_memory_pool().release_unused()  # otherwise the pool keeps a hundred megabytes


def quoted(names: Collection[str]) -> str:
    """Return names as errors list them."""
    return ", ".join(map(repr, names)) or "none"


def _type_spelt(values: Sequence[str | None]) -> pa.DataType:
    """Return the type that text spells: whole numbers, numbers, dates, or text."""
    pa = arrow()
    texts = pa.array(values, pa.string())
    for kind in (pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us")):
        with suppress(pa.ArrowException):
            return texts.cast(kind).type
    return pa.string()


def open_table(source: TableFiles | TableSource, roles: ColumnRoles | None = None) -> TableFiles:
    """Open the table at a path, or in a dataset or scanner of pyarrow, without reading more than its first rows."""
    if isinstance(source, TableFiles):
        return source
    roles = roles or ColumnRoles()
    parts, noticed = open_parts(source, roles.options)
    roles = roles._replace(options=roles.options.changed(noticed))
    parts = [_with_spelt_numbers(part, roles.options) for part in parts]
    name = parts[0].name if len(parts) == 1 else parts[0].name.partition("/")[0]
    return TableFiles(source, name, parts, roles, noticed)


def _with_spelt_numbers(part: TablePart, options: FileOptions) -> TablePart:
    """Return a part whose columns of text are numbers if the options say so, or its first rows do."""
    pa, names = arrow(), [field.name for field in part.schema if is_text(decoded_type(field.type))]
    spelt = {*names}.intersection(options.numeric)
    if part.is_csv and options.thousands and names and len({*part.schema.names}) == len(part.schema.names):
        batch = next(part.read(dict.fromkeys(names, pa.string())), None)
        spelt |= {name for name in names if batch is not None and are_numbers(batch[name], options)}
    fields = [field.with_type(pa.float64()) if field.name in spelt else field for field in part.schema]
    return replace(part, schema=pa.schema(fields, part.schema.metadata)) if spelt else part
