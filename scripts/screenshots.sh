#!/usr/bin/env bash
# Writes the pictures of the console in docs/images: of a program with some thousand objects, after two minutes.
#
# Usage: scripts/screenshots.sh
set -euo pipefail
cd "$(dirname "$0")/.."

CHROMIUM=$(scripts/chromium.sh)
export CHROMIUM
draft=$(mktemp -d)
trap 'rm -rf "$draft"' EXIT
SCREENSHOTS=$draft cargo test --package lariat-console --all-features --test page -- pictures::
mkdir -p docs/images
cp "$draft"/console-*.png docs/images/
