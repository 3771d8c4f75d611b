//! The file of known differences.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use regex::Regex;

/// How many classes may be known.
const LIMIT: usize = 30;

/// The file of this crate.
pub const KNOWN: &str = include_str!("known.txt");

/// Differences that are known, each with its reason.
///
/// In its file a class begins with `[name] reason`; the lines below are patterns of it, in which `*` stands for any
/// text.
#[derive(Debug, Default)]
pub struct Known {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    reason: String,
    patterns: Vec<(String, Regex)>,
}

impl Known {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// A line is neither; a class has no reason or no pattern, or there are too many.
    pub fn read(text: &str) -> Result<Self> {
        let mut entries: Vec<Entry> = Vec::new();
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some((name, reason)) =
                line.strip_prefix('[').and_then(|line| line.split_once(']'))
            {
                entries.push(Entry {
                    name: name.to_owned(),
                    reason: reason.trim().to_owned(),
                    patterns: Vec::new(),
                });
            } else if let Some(entry) = entries.last_mut() {
                entry.patterns.push((line.to_owned(), glob(line)?));
            } else {
                bail!("a pattern before the first class: {line}");
            }
        }
        let incomplete = entries
            .iter()
            .find(|entry| entry.reason.is_empty() || entry.patterns.is_empty());
        if let Some(entry) = incomplete {
            bail!("the class [{}] has no reason or no pattern", entry.name);
        }
        // A difference is to be mended, and the limit keeps the list from growing instead.
        if entries.len() > LIMIT {
            bail!("{} known classes are more than {LIMIT}", entries.len());
        }
        Ok(Self { entries })
    }

    /// Returns the name of the class a difference belongs to.
    #[must_use]
    pub fn name(&self, class: &str) -> Option<&str> {
        let (entry, _) = self.place(class)?;
        Some(&self.entries[entry].name)
    }

    /// Returns the places of the first class that a difference matches, and of its pattern there.
    fn place(&self, class: &str) -> Option<(usize, usize)> {
        let entries = self.entries.iter().enumerate();
        let mut places = entries.filter_map(|(at, entry)| {
            let mut patterns = entry.patterns.iter();
            let pattern = patterns.position(|(_, pattern)| pattern.is_match(class))?;
            Some((at, pattern))
        });
        places.next()
    }

    /// Writes how often each class was met.
    #[must_use]
    pub fn summary(&self, classes: &BTreeMap<String, usize>) -> String {
        // By their places, so that a difference which several patterns match is counted once.
        let mut met: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for (class, count) in classes {
            if let Some(place) = self.place(class) {
                *met.entry(place).or_default() += count;
            }
        }
        let mut written = String::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let of = |pattern: usize| met.get(&(at, pattern)).copied().unwrap_or(0);
            let patterns = entry.patterns.iter().enumerate();
            let counts: Vec<(usize, &str)> = patterns
                .map(|(pattern, (text, _))| (of(pattern), text.as_str()))
                .collect();
            let sum: usize = counts.iter().map(|(count, _)| count).sum();
            written += &format!("{sum:>7}  {}: {}\n", entry.name, entry.reason);
            // A pattern that is never met may be of a difference that is mended.
            for (_, text) in counts.iter().filter(|(count, _)| *count == 0) {
                written += &format!("         not met: {text}\n");
            }
        }
        written
    }
}

fn glob(pattern: &str) -> Result<Regex> {
    let parts: Vec<String> = pattern.split('*').map(regex::escape).collect();
    // With `s`, since a class may have line feeds from a body.
    Ok(Regex::new(&format!("(?s)^{}$", parts.join(".*")))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_known_by_their_patterns() {
        let known =
            Known::read("# note\n[one] reason\nPod a*c\nPod x\n[two] another\n* y").unwrap();
        let cases = [
            ("Pod abbc", Some("one")),
            ("Pod ab", None),
            ("Service y", Some("two")),
            ("Pod x", Some("one")),
        ];
        for (class, name) in cases {
            assert_eq!(known.name(class), name, "{class}");
        }
        let met = BTreeMap::from([("Pod abc".to_owned(), 3)]);
        let summary = known.summary(&met);
        assert!(
            summary.contains("3  one: reason\n         not met: Pod x\n"),
            "{summary}"
        );
    }

    #[test]
    fn a_difference_of_two_classes_is_counted_once() {
        let known = Known::read("[one] reason\nPod *\nPod x\n[two] another\n* x").unwrap();
        let met = BTreeMap::from([("Pod x".to_owned(), 3), ("Service x".to_owned(), 2)]);
        let expected = "      3  one: reason\n         not met: Pod x\n      2  two: another\n";
        assert_eq!(known.summary(&met), expected);
    }

    #[test]
    fn a_file_that_explains_nothing_is_refused() {
        let many: String = (0..=LIMIT)
            .map(|number| format!("[{number}] reason\nx\n"))
            .collect();
        for text in ["Pod a", "[one]\nPod a", "[one] reason", &many] {
            assert!(Known::read(text).is_err(), "{text}");
        }
        assert!(Known::read(KNOWN).is_ok());
    }
}
