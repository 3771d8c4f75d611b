//! The paths of members, as messages name them.

use std::fmt;

/// The longest path; it keeps long names from being copied into every message.
const LONGEST: usize = 1024;

/// The path of a value below a root, written only when a message needs it.
///
/// Each step refers to the one above, so that walking an object allocates nothing.
///
/// ```
/// use lariat_apimachinery::schema::FieldPath;
///
/// let spec = FieldPath::ROOT.member("spec");
/// let containers = spec.member("containers");
/// let second = containers.item(1);
/// assert_eq!(second.member("image").to_string(), "spec.containers[1].image");
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct FieldPath<'a> {
    last: Option<(&'a FieldPath<'a>, Step<'a>)>,
}

/// The last step of a path.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// A member of an object.
    Member(&'a str),
    /// An item of a list.
    Item(usize),
}

impl<'a> FieldPath<'a> {
    /// The path of the whole object, which is written as nothing.
    pub const ROOT: FieldPath<'static> = FieldPath { last: None };

    /// Appends a member.
    #[must_use]
    pub fn member(&'a self, name: &'a str) -> Self {
        self.step(Step::Member(name))
    }

    /// Appends an item.
    #[must_use]
    pub fn item(&'a self, at: usize) -> Self {
        self.step(Step::Item(at))
    }

    fn step(&'a self, step: Step<'a>) -> Self {
        Self {
            last: Some((self, step)),
        }
    }

    /// Returns the path above with the last step, or `None` for the root.
    #[must_use]
    pub fn last(&self) -> Option<(&'a FieldPath<'a>, Step<'a>)> {
        self.last
    }

    fn write(&self, text: &mut String) {
        let Some((above, step)) = self.last else {
            return;
        };
        above.write(text);
        match step {
            Step::Member(name) if text.is_empty() => text.push_str(name),
            Step::Member(name) => {
                text.push('.');
                text.push_str(name);
            }
            Step::Item(at) => {
                text.push('[');
                text.push_str(&at.to_string());
                text.push(']');
            }
        }
        // A name may end within a character at this length.
        text.truncate(text.floor_char_boundary(LONGEST));
    }
}

impl fmt::Display for FieldPath<'_> {
    /// Writes the path, cut after 1,024 bytes; the first member has no dot.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_between_characters() {
        let spec = FieldPath::ROOT.member("spec");
        assert_eq!(spec.member("replicas").to_string(), "spec.replicas");
        assert_eq!(spec.item(3).member("a").to_string(), "spec[3].a");
        let name = "é".repeat(LONGEST);
        let long = spec.member(&name);
        let text = long.to_string();
        assert!(text.len() <= LONGEST && text.starts_with("spec.é"));
        assert!(long.item(0).to_string().len() <= LONGEST);
    }
}
