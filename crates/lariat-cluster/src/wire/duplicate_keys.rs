//! Keys that are in a map of YAML twice.
//!
//! Source: `decoder.setMapIndex` in `sigs.k8s.io/yaml/goyaml.v2`.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Error, Spanned};

use super::document::first_document;

/// Returns Go's sentences about keys of a document that are in their map already.
///
/// `error` is what the reader says of the first of them.
pub(super) fn lines(text: &str, error: &Error) -> Vec<String> {
    let mut options = serde_saphyr::Options::default();
    options.duplicate_keys = DuplicateKeyPolicy::LastWins;
    let mut lines = Lines {
        text: text.lines().collect(),
        found: Vec::new(),
    };
    if let Ok(tree) = first_document::<Tree>(text, options) {
        lines.add(&tree);
    }
    if lines.found.is_empty() {
        // The reader shows a key that is a number only once.
        lines.found.extend(first(error));
    }
    lines.found
}

fn first(error: &Error) -> Option<String> {
    match error.without_snippet() {
        Error::DuplicateMappingKey { key, location } => {
            let key = key.as_deref().unwrap_or_default();
            Some(sentence(location.line(), key))
        }
        _ => None,
    }
}

fn sentence(line: u64, key: impl fmt::Display) -> String {
    format!("line {line}: key {key} already set in map")
}

struct Lines<'a> {
    text: Vec<&'a str>,
    found: Vec<String>,
}

impl Lines<'_> {
    fn add(&mut self, tree: &Tree) {
        match tree {
            Tree::Leaf => {}
            Tree::List(items) => items.iter().for_each(|item| self.add(item)),
            Tree::Map(entries) => {
                let mut seen = HashSet::new();
                for (key, below) in entries {
                    self.add(&below.value);
                    if !seen.insert(&key.value) {
                        let line = self.line_of(key.referenced.line(), below);
                        self.found.push(sentence(line, &key.value));
                    }
                }
            }
        }
    }

    /// Returns the line of the value, which Go names.
    fn line_of(&self, key: u64, value: &Spanned<Tree>) -> u64 {
        let line = value.referenced.line();
        if !matches!(value.value, Tree::Leaf) || line <= key {
            return line;
        }
        // A block of text begins with its indicator.
        let at = |line: u64| usize::try_from(line - 1).unwrap_or(usize::MAX);
        let before = self.text.get(at(key)..at(line)).unwrap_or_default();
        let mut before = before.iter().zip(key..);
        let block = before.find(|(text, _)| begins_block(text));
        block.map_or(line, |(_, line)| line)
    }
}

/// Returns whether a line ends in the indicator of a block of text.
fn begins_block(line: &str) -> bool {
    let line = line.split(" #").next().unwrap_or_default().trim_end();
    let line = line.trim_end_matches(|c: char| matches!(c, '+' | '-' | '1'..='9'));
    line.ends_with(['|', '>'])
}

/// A document without its values.
enum Tree {
    Leaf,
    List(Vec<Tree>),
    /// The entries, as often as they are there.
    Map(Vec<(Spanned<Value>, Spanned<Tree>)>),
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_str<E>(self, _: &str) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element()? {
            read.push(item);
        }
        Ok(Tree::List(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut read = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            read.push(entry);
        }
        Ok(Tree::Map(read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(yaml: &str) -> Vec<String> {
        let strict = serde_saphyr::from_str::<Value>(yaml);
        strict
            .err()
            .map_or_else(Vec::new, |error| lines(yaml, &error))
    }

    #[test]
    fn every_key_that_is_there_again_is_reported() {
        // The lines of a genuine server.
        for (yaml, expected) in [
            ("data:\n  a: x\ndata:\n  b: y\n  b: z\n", "5 b, 4 data"),
            ("data:\n  a: x\n  a: |\n    y\n", "3 a"),
            ("data:\n  a: x\n  a:\n  b: x\n", "3 a"),
            ("data:\n  a: x\n  a: y\n  a: z\n", "3 a, 4 a"),
            ("data: {a: b, \"a\":\n\n c}\n", "3 a"),
            ("x:\n- {a: b, a: c}\n- a: 1\n  a: 2\n", "2 a, 4 a"),
            ("data:\n  ? a\n  : b\n  ? a\n  : c\n", "5 a"),
            ("data:\n  a: 1\n  # c\n\n  a:  # d\n\n    \"2\"\n", "7 a"),
            ("data:\n  \"1\": x\n  1: z\n", ""),
        ] {
            let expected: Vec<String> = expected
                .split(", ")
                .filter_map(|each| each.split_once(' '))
                .map(|(line, key)| format!("line {line}: key {key:?} already set in map"))
                .collect();
            assert_eq!(reported(yaml), expected, "{yaml}");
        }
        assert_eq!(
            reported("1: x\n1: z\n"),
            ["line 2: key 1 already set in map"]
        );
    }
}
