"""The table of built-in types, for generate.py: `cluster/apimachinery/src/schema/types.txt`.

Each type is a line with its name, and an indented line for each field: name, type, flags. Types are `string`, `int32`,
`int64`, `number`, `bool`, `bytes`, `time`, `micro-time`, `int-or-string`, `quantity`, `any`, `@name` for another type,
`[]T` and `{}T` for lists and maps; `any:name` and `string:name` are such values of a type that has a name. Flags: `!`
required; `list=set`, `list=map(k1,k2)` (lists are atomic otherwise); `map=atomic`, and `map=granular` for a structure
whose type is atomic elsewhere; `patch=strategy[:key]`; `default=value` of a field that is the key of a list, where it
completes the items of an apply; `enum=value,…` for all values of a field or of the items of a list (`_` is a space); `+`
if Go writes the field whatever it holds, and `+null` if an absent one is then null and not the zero of its type; `*` if
an optional scalar is not left out when it is zero. For protobuf: `#n` the number of the field, or `#n.m` for field m of a
message in field n that JSON does not have; `or=bool`, `or=list` and `or=strings` for a message that has a schema or one
of those.
A line that begins with `kind` says which type a kind is.
"""

import json
from dataclasses import dataclass
from functools import cached_property

from go_source import Field, Type, named

META = "k8s.io/apimachinery/pkg/apis/meta/v1"

# Where the kinds are. These groups and versions are left out: no API server serves them, or none does any longer and
# the sources do not say so.
GROUPS = "k8s.io/api"
UNSERVED = {"admission", "apidiscovery", "imagepolicy", "node/v1alpha1", "rbac/v1alpha1"}
OTHERS = ["k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"]

# Kinds that have no client of their own in client-go, and so no marker `+genclient`; they belong to subresources.
SUBRESOURCES = {
    ("k8s.io/api/authentication/v1", "TokenRequest"),
    ("k8s.io/api/autoscaling/v1", "Scale"),
    ("k8s.io/api/core/v1", "Binding"),
}

# Types of requests and answers that belong to no kind.
ROOTS = [
    *(named(META, name) for name in (
        "APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "DeleteOptions", "PartialObjectMetadata",
        "PartialObjectMetadataList", "Patch", "Status", "WatchEvent",
    )),
    named("k8s.io/apimachinery/pkg/version", "Info"),
]

NAMED = {
    "util.intstr.IntOrString": "int-or-string",
    "api.resource.Quantity": "quantity",
    "meta.v1.Time": "time",
    "meta.v1.MicroTime": "micro-time",
    "meta.v1.Duration": "string:meta.v1.Duration",
    "runtime.RawExtension": "any:runtime.RawExtension",
    "meta.v1.FieldsV1": "any:meta.v1.FieldsV1",
    "apiextensions.v1.JSON": "any:apiextensions.v1.JSON",
    "apiextensions.v1.JSONSchemaPropsOrArray": "any:apiextensions.v1.JSONSchemaPropsOrArray",
    "apiextensions.v1.JSONSchemaPropsOrBool": "any:apiextensions.v1.JSONSchemaPropsOrBool",
    "apiextensions.v1.JSONSchemaPropsOrStringArray": "any:apiextensions.v1.JSONSchemaPropsOrStringArray",
}

EITHER = {
    "apiextensions.v1.JSONSchemaPropsOrArray": "list",
    "apiextensions.v1.JSONSchemaPropsOrBool": "bool",
    "apiextensions.v1.JSONSchemaPropsOrStringArray": "strings",
}

BASIC = {"string": "string", "bool": "bool", "int": "int32", "int32": "int32", "int64": "int64", "float64": "number"}

PREFIXES = [
    "k8s.io/apiextensions-apiserver/pkg/apis/",
    "k8s.io/kube-aggregator/pkg/apis/",
    "k8s.io/apimachinery/pkg/apis/",
    "k8s.io/apimachinery/pkg/",
    "k8s.io/api/",
]

# The version that has no longer a type that is in all.
NEVER = (99, 0)


def short(type_):
    for prefix in PREFIXES:
        if type_.package.startswith(prefix):
            return f"{type_.package[len(prefix):].replace('/', '.')}.{type_.name}"
    raise SystemExit(f"{type_.package}, which has {type_.name}, is in none of the modules that are read")


@dataclass
class Member:
    """A field as JSON has it, with the numbers of the messages it is in."""

    field: Field
    numbers: tuple


class Table:
    def __init__(self, sources, version):
        self.sources = sources
        self.version = version

    def rows(self):
        kinds = {type_: group for group, type_ in self.kinds}
        for type_ in sorted(self.types, key=short):
            name = short(type_)
            if type_ in kinds:
                yield f"kind {kinds[type_]} {type_.name} {name}"
            atomic = self.sources.declared(type_).markers.get("structType") == ["atomic"]
            yield f"{name} map=atomic" if atomic else name
            for name, member in sorted(self.members(type_), key=lambda each: each[0]):
                flags = [*self.flags(type_, name, member.field), *self.wire_flags(member)]
                yield " ".join([f" {name}", self.written(member.field.type), *flags])

    @cached_property
    def kinds(self):
        """The kinds that an API server of the version serves, and the lists of them, with their groups and versions."""
        return [
            (f"{package.group}/{version}".removeprefix("/"), named(package.path, each))
            for package in map(self.sources.package, [*self.packages(), *OTHERS])
            for version in [package.path.rpartition("/")[2]]
            for name, declared in package.types.items()
            if "genclient" in declared.markers or (package.path, name) in SUBRESOURCES
            for each in (name, name + "List")
            if each in package.types and package.removed.get(each, NEVER) > self.version
        ]

    def packages(self):
        for path in sorted(self.sources.folder(GROUPS).glob("*/v*")):
            group, version = path.parts[-2:]
            if not {group, f"{group}/{version}"} & UNSERVED:
                yield f"{GROUPS}/{group}/{version}"

    @cached_property
    def types(self):
        """The structures of kinds, and of what is in them."""
        pending = [type_ for _, type_ in self.kinds] + ROOTS
        found = set()
        while pending:
            type_ = self.sources.resolved(pending.pop())
            if type_.element:
                pending.append(type_.element)
            elif type_.kind == "named" and type_ not in found and short(type_) not in NAMED:
                if self.sources.fields(type_) is None:
                    pending.append(self.sources.declared(type_).underlying)
                else:
                    found.add(type_)
                    pending.extend(member.field.type for _, member in self.members(type_))
        return found

    def members(self, type_, numbers=()):
        """The fields JSON has, of the type and of those that are inline in it, by name."""
        for field in self.sources.fields(type_):
            if field.name in (None, "-"):
                continue
            # The envelope of an object is no message of protobuf, so that its fields have no numbers.
            inside = None if field.number is None or numbers is None else (*numbers, field.number)
            if "inline" in field.options:
                yield from self.members(self.sources.resolved(field.type), inside)
            else:
                yield field.name, Member(field, inside)

    def written(self, type_):
        type_ = self.sources.resolved(type_)
        match type_.kind:
            case "list":
                is_bytes = type_.element == Type("basic", name="byte")
                return "bytes" if is_bytes else "[]" + self.written(type_.element)
            case "map":
                return "{}" + self.written(type_.element)
            case "basic" if type_.name in BASIC:
                return BASIC[type_.name]
            case "basic":
                raise SystemExit(f"the table has no type for Go's {type_.name}")
        name = short(type_)
        if name in NAMED:
            return NAMED[name]
        is_struct = self.sources.fields(type_) is not None
        return f"@{name}" if is_struct else self.written(self.sources.declared(type_).underlying)

    def flags(self, type_, name, field):
        markers = field.markers
        is_optional = "optional" in markers or ("omitempty" in field.options and "required" not in markers)
        if not is_optional:
            yield "!"
        match markers.get("listType"):
            case ["set"]:
                yield "list=set"
            case ["map"]:
                yield f"list=map({','.join(markers['listMapKey'])})"
        if markers.get("mapType") == ["atomic"]:
            yield "map=atomic"
        if markers.get("structType") == ["granular"]:
            yield "map=granular"
        if strategy := field.tags.get("patchStrategy"):
            key = field.tags.get("patchMergeKey")
            yield f"patch={strategy}:{key}" if key else f"patch={strategy}"
        if (type_, name) in self.keys and "default" in markers:
            yield f"default={json.loads(markers['default'][0])}"
        if enum := self.enum(field.type):
            yield f"enum={','.join(sorted(enum)).replace(' ', '_')}"

    @cached_property
    def keys(self):
        """The fields that are keys of lists, whose defaults complete them in an apply."""
        return {
            (self.sources.resolved(member.field.type).element, key)
            for type_ in self.types
            for _, member in self.members(type_)
            for key in member.field.markers.get("listMapKey", [])
        }

    def enum(self, type_):
        """The values of an enumerated type, or of the items of a list."""
        type_ = self.sources.resolved(type_)
        if type_.element:
            return self.enum(type_.element)
        if type_.kind != "named" or "enum" not in self.sources.declared(type_).markers:
            return None
        return self.sources.constants(type_)

    def wire_flags(self, member):
        if member.numbers is None:
            return
        yield "#" + ".".join(map(str, member.numbers))
        field, written = member.field, self.written(member.field.type)
        is_pointer = field.type.kind == "pointer"
        # Go leaves out empty values where it is asked to, but structures only by `omitzero`.
        is_struct = self.sources.fields(field.type) is not None
        if "omitzero" not in field.options and (is_struct or "omitempty" not in field.options):
            yield "+null" if is_pointer else "+"
        elif is_pointer and not written.startswith(("@", "[]", "{}", "any")):
            yield "*"
        if either := EITHER.get(written.removeprefix("{}").removeprefix("any:")):
            yield f"or={either}"
