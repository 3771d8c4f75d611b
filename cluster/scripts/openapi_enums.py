"""The values that fields of Kubernetes' types are limited to, for schema-table.py.

They are in the definitions from which kube-apiserver makes its OpenAPI documents; the package with the schemas has none.
"""

import re
import urllib.request

SOURCE = "https://raw.githubusercontent.com/kubernetes/kubernetes/v{}/pkg/generated/openapi/zz_generated.openapi.go"

FUNCTION = re.compile(r"^func schema_(?:k8sio_api|pkg_apis)_(\w+?)_(v\w+?)_(\w+)\(")
FIELD = re.compile(r'^\t{5}"([^"]+)": \{$')
ENUM = re.compile(r"^\t+Enum: +\[\]interface\{\}\{(.*)\},$")


def fetch(version):
    with urllib.request.urlopen(SOURCE.format(version)) as answer:
        return answer.read().decode()


def of(source):
    """The values of each enumerated field, by the name of its type and its own; a list's are those of its items."""
    enums, type_, field = {}, None, None
    for line in source.splitlines():
        if line.startswith("func "):
            found = FUNCTION.match(line)
            type_ = ".".join(found.groups()) if found else None
        elif found := FIELD.match(line):
            field = found[1]
        elif type_ and (found := ENUM.match(line)):
            enums[type_, field] = re.findall(r'"([^"]*)"', found[1])
    return enums
