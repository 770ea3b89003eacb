"""Which types of a reader's schema the types of a writer's schema are read as.

The rules are those of Avro's Java library 1.12 (`Schema.applyAliases`, `Resolver`), where it differs from the specification: records
match by their fields whatever their names, and a union's branch by its structure.
"""

from collections.abc import Mapping
from dataclasses import replace

from include.errors import SchemaError
from include.kafka.avro.avro_types import AvroField, AvroType

# Reader's type -> the writer's types that are converted to it.
PROMOTIONS: Mapping[str, frozenset[str]] = {
    "long": frozenset({"int"}),
    "float": frozenset({"int", "long"}),
    "double": frozenset({"int", "long", "float"}),
    "bytes": frozenset({"string"}),
    "string": frozenset({"bytes"}),
}


def matching_fields(writer: AvroType, reader: AvroType) -> dict[str, AvroField]:
    """Return name -> the writer's field that is read as the reader's field of this name; names are those after `with_reader_names`."""
    wanted = {one.name for one in reader.fields}
    return {one.name: one for one in writer.fields if one.name in wanted}


def missing_field(writer: AvroType, reader: AvroType) -> str | None:
    """Return a field of the reader's record that has no default and that the writer's lacks, if there is one."""
    written = {one.name for one in writer.fields}
    return next((one.name for one in reader.fields if not one.has_default and one.name not in written), None)


def is_readable(writer: AvroType, reader: AvroType) -> bool:
    """Whether a value of the writer's type may be read as the reader's; the values inside it are another question."""
    if writer.kind == "union":
        return True
    if reader.kind == "union" and writer.kind != reader.kind:
        return matching_branch(writer, reader) is not None
    if writer.kind != reader.kind:
        return writer.kind in PROMOTIONS.get(reader.kind, ())
    if writer.kind == "record":
        return missing_field(writer, reader) is None
    if writer.kind == "fixed":
        return writer.short_name == reader.short_name and writer.size == reader.size
    return writer.kind != "enum" or writer.short_name == reader.short_name


def matching_branch(writer: AvroType, union: AvroType) -> int | None:
    """Return the branch of a reader's union that a value of the writer's type, which is no union, is read as."""
    by_structure = None
    for index, branch in enumerate(union.branches):
        if branch.kind != writer.kind:
            continue
        if not writer.name or writer.name == branch.name:
            return index
        is_better = by_structure is None or branch.short_name == writer.short_name
        if writer.kind == "record" and is_better and _fields_are_readable(writer, branch):
            by_structure = index
    if by_structure is not None:
        return by_structure
    return next(
        (i for i, branch in enumerate(union.branches) if writer.kind in PROMOTIONS.get(branch.kind, ())), None
    )


def is_same_union(writer: AvroType, reader: AvroType) -> bool:
    """Whether two types are equal but for namespaces and logical types; then each branch is read as the one at its place."""
    return _is_same(writer, reader, set())


def with_reader_names(writer: AvroType, reader: AvroType) -> AvroType:
    """Return the writer's type with the names that the reader's aliases give to its types and fields.

    Raises SchemaError when two of its fields get one name.
    """
    types: dict[str, str] = {}
    fields: dict[str, dict[str, str]] = {}
    _collect_aliases(reader, types, fields, set())
    return _renamed(writer, types, fields, {}) if types or fields else writer


def _fields_are_readable(writer: AvroType, reader: AvroType) -> bool:
    found = matching_fields(writer, reader)
    return missing_field(writer, reader) is None and all(
        is_readable(found[one.name].type, one.type) for one in reader.fields if one.name in found
    )


def _is_same(writer: AvroType, reader: AvroType, seen: set[tuple[int, int]]) -> bool:
    if writer.kind != reader.kind or writer.short_name != reader.short_name:
        return False
    if writer.kind == "fixed":
        return writer.size == reader.size
    if writer.kind == "enum":
        return writer.symbols == reader.symbols
    if (pair := (id(writer), id(reader))) in seen:
        return True
    seen.add(pair)
    names = [one.name for one in writer.fields] == [one.name for one in reader.fields]
    ours, theirs = list(_inside(reader)), list(_inside(writer))
    return (
        names
        and len(ours) == len(theirs)
        and all(_is_same(w, r, seen) for w, r in zip(theirs, ours, strict=True))
    )


def _inside(one: AvroType) -> tuple[AvroType, ...]:
    items = () if one.items is None else (one.items,)
    return (*(field.type for field in one.fields), *items, *one.branches)


def _collect_aliases(
    reader: AvroType, types: dict[str, str], fields: dict[str, dict[str, str]], seen: set[int]
) -> None:
    types |= dict.fromkeys(reader.aliases, reader.name)
    if id(reader) in seen:
        return
    seen.add(id(reader))
    for one in reader.fields:
        if one.aliases:
            fields.setdefault(reader.name, {}).update(dict.fromkeys(one.aliases, one.name))
    for inner in _inside(reader):
        _collect_aliases(inner, types, fields, seen)


def _renamed(
    one: AvroType,
    types: Mapping[str, str],
    fields: Mapping[str, Mapping[str, str]],
    made: dict[int, AvroType],
) -> AvroType:
    if id(one) in made:
        return made[id(one)]
    result = replace(one, name=types.get(one.name, one.name))
    made[id(one)] = result
    names = fields.get(result.name, {})
    result.fields = tuple(
        replace(f, name=names.get(f.name, f.name), type=_renamed(f.type, types, fields, made))
        for f in one.fields
    )
    if len({f.name for f in result.fields}) < len(result.fields):
        raise SchemaError(
            f"Aliases give one name to several fields of {one.name}: {[f.name for f in result.fields]}."
        )
    result.items = None if one.items is None else _renamed(one.items, types, fields, made)
    result.branches = tuple(_renamed(branch, types, fields, made) for branch in one.branches)
    return result
