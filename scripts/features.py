#!/usr/bin/env python3
"""Writes scripts/features/Cargo.toml: all dependencies of the workspace, with all features that any member uses.

Usage: scripts/features.py [--check]

A package that is checked beside it gets its dependencies as the whole workspace has them, so that sets of features differ
in the workspace's own code alone, and all of them share one build of the rest. With --check nothing is written, and a
file that is not up to date is an error.
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MANIFEST = ROOT / "scripts/features/Cargo.toml"
NAME = "lariat-features"
HEAD = f"""# Written by scripts/features.py, which says why.
[package]
name = "{NAME}"
description = "All dependencies of the workspace, with all features that it uses"
version.workspace = true
edition.workspace = true
rust-version.workspace = true
license.workspace = true
publish = false

[lib]
path = "lib.rs"
doc = false
test = false
doctest = false

[lints]
workspace = true

[dependencies]
"""


def manifest():
    """Returns the text of the manifest."""
    run = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    found = {}
    for package in json.loads(run.stdout)["packages"]:
        if package["name"] == NAME:
            continue
        # Features of a member turn on features of dependencies too.
        asked = [each.replace("?", "") for values in package["features"].values() for each in values if "/" in each]
        for dependency in package["dependencies"]:
            # Those of one platform, or of fuzzing alone, are rebuilt where they differ.
            if dependency.get("path") or dependency["target"]:
                continue
            name = dependency["name"]
            features = found.setdefault(name, set())
            features.update(dependency["features"])
            features.update(each.split("/")[1] for each in asked if each.split("/")[0] == name)
    text = HEAD
    for name, features in sorted(found.items()):
        listed = ", ".join(f'"{each}"' for each in sorted(features))
        text += f"{name} = {{ workspace = true, features = [{listed}] }}\n"
    return text


def main():
    if sys.argv[1:] == ["--check"]:
        if MANIFEST.read_text(encoding="utf-8") != manifest():
            sys.exit(f"{MANIFEST.relative_to(ROOT)} is not up to date; run scripts/features.py")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        # With a dependency that the workspace no longer has, cargo would refuse every command.
        MANIFEST.write_text(HEAD, encoding="utf-8")
        MANIFEST.write_text(manifest(), encoding="utf-8")


main()
