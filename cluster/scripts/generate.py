#!/usr/bin/env python3
"""Writes the files of the embedded API server that are made from the Go sources of Kubernetes.

Usage: cluster/scripts/generate.py CHECKOUT [--check] [--kubernetes MAJOR.MINOR]

They are the table of built-in types (types_table.py) and the types that diffs in messages show (internal_types.py).
CHECKOUT is one of kubernetes/kubernetes, or of a program that vendors it with `k8s.io/kubernetes`, such as an API server.
With --check nothing is written: the script prints how the files differ and ends with 1 if they do. The version is that
in cluster/apimachinery/src/version.rs, and the sources must be of it; --kubernetes names another one, to see what it would
bring. cluster/docs/next-kubernetes.md has the other steps.
"""

import argparse
import difflib
import re
import sys
from pathlib import Path

import internal_types
import types_table
from go_source import Sources

ROOT = Path(__file__).resolve().parents[2]
VERSION = ROOT / "cluster/apimachinery/src/version.rs"
COPYRIGHT = "# Copyright The Kubernetes Authors. Licensed under the Apache License, Version 2.0."

# Folders of the Go modules in a checkout, the first that is there counts.
LAYOUTS = [
    {"k8s.io/kubernetes": ".", "k8s.io": "staging/src/k8s.io"},
    {"k8s.io": "vendor/k8s.io"},
]


def modules(checkout):
    for layout in LAYOUTS:
        if all((checkout / folder).is_dir() for folder in layout.values()):
            return {module: checkout / folder for module, folder in layout.items()}
    raise SystemExit(f"{checkout} has neither staging/src/k8s.io nor vendor/k8s.io")


def version_of(text):
    major, minor = re.fullmatch(r"(\d+)\.(\d+)", text).groups()
    return int(major), int(minor)


def named_version():
    return re.search(r'pub const KUBERNETES: &str = "(.*)";', VERSION.read_text())[1]


def files(sources, version):
    header = f"# Made by cluster/scripts/generate.py from the sources of Kubernetes {version}; do not edit."
    for path, rows in [
        ("cluster/apimachinery/src/schema/types.txt", types_table.Table(sources, version_of(version)).rows()),
        ("cluster/apimachinery/src/validation/internal_types.txt", internal_types.rows(sources)),
    ]:
        yield ROOT / path, "\n".join([header, COPYRIGHT, *rows, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--kubernetes")
    arguments = parser.parse_args()

    sources = Sources(modules(arguments.checkout))
    version = arguments.kubernetes or named_version()
    newest = sources.newest(types_table.GROUPS)
    if newest != version_of(version) and not arguments.kubernetes:
        raise SystemExit(f"{VERSION} names {version}, and the newest types of the sources are of {newest[0]}.{newest[1]}")
    differ = False
    for path, text in files(sources, version):
        before = path.read_text()
        if arguments.check:
            names = (f"{path.relative_to(ROOT)} as it is", "made from the sources")
            lines = difflib.unified_diff(before.splitlines(), text.splitlines(), *names, n=0, lineterm="")
            for line in lines:
                print(line)
                differ = True
        else:
            path.write_text(text)
    sys.exit(differ)


if __name__ == "__main__":
    main()
