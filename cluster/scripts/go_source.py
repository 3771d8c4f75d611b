"""Reads the types of Go packages from their sources, with the tags and markers of their fields.

It relies on gofmt: a type begins at the margin, its fields are indented by one tab, and each has a line. The markers
are lines of comments such as `+enum`, `+optional` and `+listMapKey=name`. Files that are generated or tests are left
out, but for the versions of Kubernetes in which types come and go.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property

IMPORT = re.compile(r'^\t?(?:import )?(?:(\w+) )?"([^"]+)"$')
TYPE = re.compile(r"^type (\w+) (= )?(.+?)(?: //.*)?$")
FIELD = re.compile(r"^\t(?:(\w+)\s+)?([\w.*\[\]{}]+)(?:\s+`([^`]*)`)?(?:\s*//.*)?$")
# With its type before its value, or around it.
CONSTANT = re.compile(r'^(?:const |\t)(\w+)\s+([\w.]+)\s+= ("[^"]*"|[\w.]+)(?:\s*//.*)?$')
CONVERTED = re.compile(r'^(?:const |\t)(\w+)\s+= ([\w.]+)\(("[^"]*"|[\w.]+)\)(?:\s*//.*)?$')
LIFECYCLE = r"^func \(in \*(\w+)\) APILifecycle{}\(\) .*\n\treturn (\d+), (\d+)$"
INTRODUCED = re.compile(LIFECYCLE.format("Introduced"), re.MULTILINE)
REMOVED = re.compile(LIFECYCLE.format("Removed"), re.MULTILINE)


def versions(pattern, source):
    """The versions of a part of the lives of types, by their names."""
    return ((name, (int(major), int(minor))) for name, major, minor in pattern.findall(source))


@dataclass(frozen=True)
class Type:
    """A type where it is used, of the kind `pointer`, `list`, `map`, `named` or, if Go has it, `basic`."""

    kind: str
    element: "Type | None" = None
    package: str = ""
    name: str = ""

    def without_pointers(self):
        return self.element.without_pointers() if self.kind == "pointer" else self


def named(package, name):
    return Type("named", package=package, name=name)


@dataclass
class Field:
    """A field; one that is embedded has no name in Go, and one without tags none in JSON or number in protobuf."""

    go_name: str | None
    type: Type
    name: str | None
    options: list
    number: int | None
    tags: dict
    markers: dict


@dataclass
class Declared:
    """A type where it is declared: fields if it is a structure, else the type it is made from or another name of."""

    package: str
    name: str
    markers: dict
    is_alias: bool
    fields: list | None = None
    underlying: Type | None = None


@dataclass
class Package:
    path: str
    types: dict = field(default_factory=dict)
    # The types and values of constants, by their names; a value is another constant or in quotation marks.
    constants: dict = field(default_factory=dict)
    # The version in which the API has a type no longer, by its name.
    removed: dict = field(default_factory=dict)
    group: str | None = None


class Sources:
    """The packages of Go modules, whose folders are given by the beginnings of their paths."""

    def __init__(self, modules):
        self.modules = modules
        self.packages = {}

    def folder(self, path):
        """The folder of a package or module."""
        module = next(module for module in self.modules if f"{path}/".startswith(f"{module}/"))
        folder = self.modules[module] / path[len(module) + 1:]
        if not folder.is_dir():
            raise SystemExit(f"{folder} is not there, which must have the sources of {path}")
        return folder

    def package(self, path):
        if path not in self.packages:
            self.packages[path] = package = Package(path)
            for file in sorted(self.folder(path).glob("*.go")):
                source = file.read_text()
                package.removed |= dict(versions(REMOVED, source))
                if group := re.search(r'^const GroupName = "(.*)"$', source, re.MULTILINE):
                    package.group = group[1]
                if not re.search(r"^zz_generated|\.pb\.go$|_generated\.go$|_test\.go$", file.name):
                    File(package, source).read()
        return self.packages[path]

    def newest(self, path):
        """The version of Kubernetes in which the newest type of a module was introduced."""
        files = self.folder(path).glob("**/zz_generated.prerelease-lifecycle.go")
        return max(version for file in files for _, version in versions(INTRODUCED, file.read_text()))

    def declared(self, type_):
        """The declaration of a type that has a name."""
        declared = self.package(type_.package).types.get(type_.name)
        if declared is None:
            raise SystemExit(f"{type_.package} does not declare {type_.name}")
        return declared

    def resolved(self, type_):
        """The type without pointers and by its own name."""
        type_ = type_.without_pointers()
        if type_.kind == "named" and self.declared(type_).is_alias:
            return self.resolved(self.declared(type_).underlying)
        return type_

    def fields(self, type_):
        """The fields of a structure, or of that from which a type is made; none of other types."""
        if type_.kind != "named":
            return None
        declared = self.declared(type_)
        return self.fields(declared.underlying) if declared.fields is None else declared.fields

    def constants(self, type_):
        """The values of the constants of a type."""
        package = self.package(type_.package)
        return {self.value(value) for each, value in package.constants.values() if each == type_}

    def value(self, value):
        if isinstance(value, str):
            return value
        return self.value(self.package(value.package).constants[value.name][1])


class File:
    def __init__(self, package, source):
        self.package = package
        self.lines = source.splitlines()
        self.markers = defaultdict(list)

    @cached_property
    def imports(self):
        found = (IMPORT.match(line) for line in self.lines)
        return {each[1] or each[2].rpartition("/")[2]: each[2] for each in found if each}

    def read(self):
        declared = None
        for line in self.lines:
            text = line.strip()
            if text.startswith("//"):
                self.mark(text[2:].strip())
                continue
            # A blank line does not part a declaration from the comments before it, but fields from each other.
            if not text:
                if declared:
                    self.markers.clear()
                continue
            if declared and line == "}":
                declared = None
            elif declared:
                self.read_field(declared, line)
            elif found := TYPE.match(line):
                declared = self.read_type(*found.groups())
            elif found := CONSTANT.match(line) or CONVERTED.match(line):
                self.package.constants[found[1]] = (self.type_of(found[2]), self.value_of(found[3]))
            self.markers.clear()

    def mark(self, text):
        if text.startswith("+"):
            name, _, value = text[1:].partition("=")
            self.markers[name].append(value)

    def read_type(self, name, alias, text):
        """Reads the beginning of a declaration, and returns it if lines with fields follow."""
        declared = Declared(self.package.path, name, dict(self.markers), bool(alias))
        self.package.types[name] = declared
        if text in ("struct {", "struct{"):
            declared.fields = []
            return declared
        if text == "struct{}":
            declared.fields = []
        elif re.fullmatch(r"[\w.*\[\]]+", text):
            declared.underlying = self.type_of(text)
        return None

    def read_field(self, declared, line):
        found = FIELD.match(line)
        if not found:
            if 'json:"' in line:
                raise SystemExit(f"{declared.package}.{declared.name} has a field that cannot be read: {line.strip()}")
            return
        tags = dict(re.findall(r'(\w+):"([^"]*)"', found[3] or ""))
        name, *options = tags["json"].split(",") if "json" in tags else [None]
        number = re.match(r"\w+,(\d+),", tags.get("protobuf", ""))
        number = int(number[1]) if number else None
        type_ = self.type_of(found[2])
        declared.fields.append(Field(found[1], type_, name, options, number, tags, dict(self.markers)))

    def value_of(self, text):
        return text.strip('"') if text.startswith('"') else self.type_of(text)

    def type_of(self, text):
        if text.startswith("*"):
            return Type("pointer", self.type_of(text[1:]))
        if text.startswith("[]"):
            return Type("list", self.type_of(text[2:]))
        if text.startswith("map["):
            return Type("map", self.type_of(text.partition("]")[2]))
        if "." in text:
            package, _, name = text.partition(".")
            return named(self.imports.get(package, package), name)
        # Types of Go begin with a small letter, those of packages with a large one.
        if text[0].isupper():
            return named(self.package.path, text)
        return Type("basic", name=text)
