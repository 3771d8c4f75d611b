//! The lines of a trace that are relevant for a failure.

use std::collections::BTreeSet;

use crate::objects::Objects;

/// A kind as the lines of a trace name it.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    name: String,
    plural: String,
}

impl Kind {
    pub(crate) fn of(objects: &Objects) -> Self {
        Self {
            name: objects.gvk().kind().to_owned(),
            plural: objects.plural().to_owned(),
        }
    }
}

/// The object that a violation names.
#[derive(Debug)]
pub(crate) struct TraceFilter<'a> {
    kind: Option<&'a Kind>,
    key: &'a str,
}

/// The violation is about a whole process or the whole cluster.
const ALWAYS: [&str; 9] = [
    "VIOLATION ",
    "plan: ",
    "incarnation ",
    "all faults end",
    "panicked: ",
    "the cluster is as at",
    "the factory ",
    "the backup ",
    "process ",
];

impl<'a> TraceFilter<'a> {
    /// Finds the object in the text of a violation: a key after its kind, or another key.
    pub(crate) fn of(what: &'a str, kinds: &'a [Kind]) -> Option<Self> {
        let is_between =
            |each: char| each.is_whitespace() || matches!(each, ',' | ':' | ';' | '(' | ')');
        let words: Vec<&str> = what
            .split(is_between)
            .filter(|word| !word.is_empty())
            .collect();
        let named = words.windows(2).find_map(|pair| {
            let kind = kinds.iter().find(|kind| kind.name == pair[0])?;
            pair[1].contains('/').then_some((kind, pair[1]))
        });
        if let Some((kind, key)) = named {
            let kind = Some(kind);
            return Some(Self { kind, key });
        }
        let key = words.into_iter().find(|word| word.contains('/'))?;
        Some(Self { kind: None, key })
    }

    /// Returns the object in words.
    pub(crate) fn name(&self) -> String {
        match self.kind {
            Some(kind) => format!("{} {}", kind.name, self.key),
            None => self.key.to_owned(),
        }
    }

    /// Returns the lines that matter for the object, in their order.
    pub(crate) fn lines<'t>(&self, lines: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
        let mut requests = BTreeSet::new();
        lines
            .filter(|line| self.is_about(text_of(line), &mut requests))
            .collect()
    }

    fn is_about<'t>(&self, text: &'t str, requests: &mut BTreeSet<&'t str>) -> bool {
        if ALWAYS.iter().any(|start| text.starts_with(start)) || text.ends_with(" runs again") {
            return true;
        }
        if let Some(request) = text.strip_prefix('#') {
            let Some((number, what)) = request.split_once(' ') else {
                return false;
            };
            return if what.starts_with('→') {
                // An answer names its request by the number alone.
                requests.contains(number)
            } else {
                self.is_asked(what) && requests.insert(number)
            };
        }
        self.is_selected(text) || (has_word(text, self.key) && self.is_of_kind(text))
    }

    /// Whether a request is for the object, or for all of its kind.
    fn is_asked(&self, what: &str) -> bool {
        let target = what.split_once(' ').map_or(what, |(_, target)| target);
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        let name = self.key.rsplit('/').next().unwrap_or(self.key);
        let mut segments = path.split('/');
        match self.kind {
            None => segments.any(|segment| segment == name),
            Some(kind) => {
                // A path that ends with the plural is a list or a watch, which concerns every object of the kind.
                segments.any(|segment| segment == kind.plural)
                    && segments.next().is_none_or(|segment| segment == name)
            }
        }
    }

    fn is_selected(&self, text: &str) -> bool {
        let selected = text.strip_prefix("selects ");
        selected.is_some_and(|rest| self.kind.is_none_or(|kind| rest.starts_with(&kind.name)))
    }

    fn is_of_kind(&self, text: &str) -> bool {
        self.kind.is_none_or(|kind| {
            has_word(text, &kind.name) || has_word(text, &kind.plural) || text.starts_with("WARN")
        })
    }
}

/// Returns a line without its time and its actor.
fn text_of(line: &str) -> &str {
    let after = |text: &'_ str| {
        text.trim_start()
            .find(' ')
            .map(|at| text.len() - text.trim_start().len() + at)
    };
    let stamped = after(line).map_or("", |at| &line[at..]);
    after(stamped).map_or("", |at| stamped[at..].trim_start())
}

/// Whether a whole word is in a text: `default/o1` is not in `default/o11`.
fn has_word(text: &str, word: &str) -> bool {
    // What stands before the word does not matter: a line too many does no harm.
    text.match_indices(word).any(|(at, _)| {
        let next = text[at + word.len()..].chars().next();
        next.is_none_or(|next| !next.is_alphanumeric() && next != '-')
    })
}

#[cfg(test)]
mod tests {
    use lariat_core::Gvk;

    use super::{Kind, TraceFilter};
    use crate::objects::Objects;

    fn kinds() -> [Kind; 2] {
        let of = |kind, plural| Kind::of(&Objects::new(Gvk::new("", "v1", kind), plural));
        [of("ConfigMap", "configmaps"), of("Secret", "secrets")]
    }

    #[test]
    fn the_object_of_a_violation_is_found_in_its_words() {
        let kinds = kinds();
        let of = |what| TraceFilter::of(what, &kinds).map(|filter| filter.name());
        let read = "a read found version 5 of Secret default/o1 with other content";
        assert_eq!(of(read).as_deref(), Some("Secret default/o1"));
        let added = "default/o3 is added, but was known at version 4";
        assert_eq!(of(added).as_deref(), Some("default/o3"));
        assert_eq!(of("operator-0 ended unasked"), None);
    }

    #[test]
    fn lines_of_other_objects_and_kinds_are_left_out() {
        let kinds = kinds();
        let filter = TraceFilter::of("version 5 of Secret default/o1", &kinds).unwrap();
        let lines = [
            "      1.000s operator-0 #1 GET /api/v1/secrets?watch=true",
            "      1.001s operator-0 #2 GET /api/v1/configmaps?watch=true",
            "      1.002s operator-0 #1 → 200",
            "      1.002s operator-0 #2 → 200",
            "      1.003s world      commit 5 secrets default/o1",
            "      1.004s world      commit 6 secrets default/o11",
            "      1.005s world      commit 7 configmaps default/o1",
            "      1.006s operator-0 #3 PATCH /api/v1/namespaces/default/secrets/o1?",
            "      1.007s operator-0 #4 PATCH /api/v1/namespaces/default/secrets/o2?",
            "      1.008s driver     plan: 1.000s client: ConfigMap o3: Put",
        ];
        let left: Vec<_> = filter
            .lines(lines.into_iter())
            .into_iter()
            .map(|line| line[..12].trim())
            .collect();
        assert_eq!(left, ["1.000s", "1.002s", "1.003s", "1.006s", "1.008s"]);
    }
}
