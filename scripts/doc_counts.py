#!/usr/bin/env python3
"""Counts summaries, examples and comments of the crates, and fails where CONTRIBUTING.md's rules are broken.

Usage: scripts/doc_counts.py [--by-crate]
"""

import pathlib
import re
import sys

WINGS = ["cluster", "crates"]
LONGEST_SUMMARY = 80
LEAST_EXAMPLES = 0.20
LEAST_COMMENTS = 0.03

ITEM = re.compile(r"pub (?:const |async |unsafe )*(?:fn|struct|enum|trait|type|const|static)\b")
LINK = re.compile(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?")


class Count:
    def __init__(self):
        self.items = self.examples = self.comments = self.code = 0
        self.long = []

    def file(self, path):
        doc = []
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines, 1):
            line = line.strip()
            # The unit tests come last in a file.
            if line == "#[cfg(test)]" and lines[number : number + 1] and "mod " in lines[number]:
                break
            if line.startswith("///"):
                doc.append(line[3:].strip())
            elif line.startswith("//!") or not line:
                continue
            elif line.startswith("//"):
                self.comments += 1
            else:
                self.code += 1
                if line.startswith("#["):
                    continue
                if ITEM.match(line):
                    self.item(f"{path}:{number}", doc)
                doc = []

    def item(self, place, doc):
        self.items += 1
        self.examples += any(line.startswith("```") for line in doc)
        summary = " ".join(doc[: doc.index("")] if "" in doc else doc)
        # As a reader sees it: links are shown as their text.
        if len(LINK.sub(r"\1", summary)) > LONGEST_SUMMARY:
            self.long.append(f"{place}: {summary}")

    def line(self, name):
        share = 100 * self.examples / max(self.items, 1)
        comments = 100 * self.comments / max(self.code, 1)
        return (
            f"{name:22} {self.items:5} public items, {len(self.long)} summaries over {LONGEST_SUMMARY} characters, "
            f"{share:.0f} % with an example, comments {comments:.1f} % of {self.code} lines of code"
        )


def sources(crate):
    paths = sorted(crate.glob("src/**/*.rs"))
    return [path for path in paths if path.name != "tests.rs" and "tests" not in path.parts]


def main():
    all_crates = Count()
    for crate in sorted(path.parent for wing in WINGS for path in pathlib.Path(wing).glob("*/Cargo.toml")):
        own = Count()
        for path in sources(crate):
            own.file(path)
            all_crates.file(path)
        if "--by-crate" in sys.argv:
            print(own.line(crate.name))
    print(all_crates.line("all crates"))
    problems = [f"{place} (over {LONGEST_SUMMARY} characters)" for place in all_crates.long]
    if all_crates.examples < LEAST_EXAMPLES * all_crates.items:
        problems.append(f"fewer than {LEAST_EXAMPLES:.0%} of the public items have an example")
    if all_crates.comments < LEAST_COMMENTS * all_crates.code:
        problems.append(f"comments are fewer than {LEAST_COMMENTS:.0%} of the lines of code")
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
