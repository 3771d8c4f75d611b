"""The types that diffs in messages show, for generate.py: `cluster/apimachinery/src/validation/internal_types.txt`.

These are internal types of kube-apiserver, in the Go module `k8s.io/kubernetes`, whose fields have no tags. A member has
the name of the field of the same name in the type of the API, or else its own.
"""

import textwrap

from go_source import named

INTERNAL = "k8s.io/kubernetes/pkg/apis"
META = "k8s.io/apimachinery/pkg/apis/meta/v1"

# The types that are compared, by group; others are in them.
ROOTS = [
    ("core", ["PodSpec", "PersistentVolumeClaimSpec", "PersistentVolumeSource", "EphemeralContainer"]),
    ("certificates", ["CertificateSigningRequestCondition"]),
]

SCALARS = {"string": "s", "bool": "b", "int": "n", "int32": "n", "int64": "n"}

# How types of other packages are shown.
OTHERS = {
    named("k8s.io/apimachinery/pkg/api/resource", "Quantity"): "q",
    named("k8s.io/apimachinery/pkg/util/intstr", "IntOrString"): "n",
    named(META, "ObjectMeta"): "m",
    named(META, "Time"): "v",
}
SELECTOR = named(META, "LabelSelector")

HEADER = """\
# The internal types of Kubernetes that diffs in messages show: members in their order, `name=GoName:kind`.
# Kinds: a text `s`, a number `n`, a flag `b`, a quantity `q`, something else that may be null `v`, a selector of
# labels `l`, metadata `m`; a structure `T`, a pointer to one `*T`, a list of them `[T`."""


def rows(sources):
    yield from HEADER.splitlines()
    for group, roots in ROOTS:
        yield from Group(sources, group).rows(roots)


class Group:
    def __init__(self, sources, group):
        self.sources = sources
        self.internal = f"{INTERNAL}/{group}"
        self.api = sources.package(f"k8s.io/api/{group}/v1")

    def rows(self, roots):
        """The structures, each once, in the order in which they are met first."""
        pending, met = list(roots), set(roots)
        while pending:
            name = pending.pop(0)
            members = []
            for field in self.members(name):
                kind, below = self.kind(field.type)
                members.append(f"{self.name_of(name, field)}:{kind}")
                if below and below not in met:
                    met.add(below)
                    pending.append(below)
            yield from textwrap.wrap(
                " ".join([name, *members]), 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
            )

    def members(self, name):
        """The fields of a structure, and of those that are embedded in it."""
        for field in self.sources.fields(self.type_of(name)):
            if field.go_name is None and field.type.package == self.internal:
                yield from self.members(field.type.name)
            else:
                yield field

    def type_of(self, name):
        return named(self.internal, name)

    def name_of(self, of, field):
        go_name = field.go_name or field.type.name
        if field.type in OTHERS and OTHERS[field.type] == "m":
            return "metadata"
        default = go_name[0].lower() + go_name[1:]
        name = self.names(of).get(go_name, default)
        return name if name == default else f"{name}={go_name}"

    def names(self, of):
        """The names in JSON of the fields of a type of the API, and of those that are inline in it, by those in Go."""
        if of not in self.api.types:
            return {}
        names = {}
        for field in self.api.types[of].fields or []:
            if "inline" in field.options:
                names |= self.names(field.type.without_pointers().name)
            else:
                names[field.go_name] = field.name
        return names

    def kind(self, type_):
        """How a type is written, and the structure in it."""
        if type_.without_pointers() == SELECTOR:
            return "l", None
        if type_ in OTHERS:
            return OTHERS[type_], None
        match type_.kind:
            case "basic":
                return SCALARS[type_.name], None
            case "pointer" | "list":
                sign = "*" if type_.kind == "pointer" else "["
                element = type_.element
                is_struct = element.package == self.internal and self.sources.fields(element) is not None
                return (sign + element.name, element.name) if is_struct else ("v", None)
            case "map":
                return "v", None
        if self.sources.fields(type_) is not None:
            return type_.name, type_.name
        return self.kind(self.sources.declared(type_).underlying)
