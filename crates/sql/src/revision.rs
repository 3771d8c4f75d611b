//! Revisions: states of a kind of the cache.

use std::fmt;
use std::str::FromStr;

/// A revision: a state of a kind of the cache.
///
/// It begins with a resource version of the API server, which a query can wait for. In answers it also contains the
/// number of a change in this cache, as in `81734-1f0a93c4-512`, from which a watch can resume. The resource version of
/// an object alone is a revision too.
///
/// ```
/// use lariat::sql::Revision;
///
/// let of_object: Revision = "81734".parse()?;
/// let of_answer: Revision = "81734-1f0a93c4-512".parse()?;
/// assert_eq!(of_object.version(), of_answer.version());
/// # Ok::<(), lariat::sql::RevisionError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Revision {
    version: u64,
    place: Option<Position>,
}

/// A position in the history of changes that a process has in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Position {
    /// Differs between processes and between starts.
    pub(crate) history: u32,
    /// The number of the last change.
    pub(crate) change: u64,
}

impl Revision {
    pub(crate) fn new(version: u64, place: Option<Position>) -> Self {
        Self { version, place }
    }

    /// Returns the resource version of the API server; zero before the kind was read.
    #[must_use]
    pub fn version(self) -> u64 {
        self.version
    }

    pub(crate) fn place(self) -> Option<Position> {
        self.place
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.version)?;
        match self.place {
            None => Ok(()),
            Some(Position { history, change }) => write!(f, "-{history:08x}-{change}"),
        }
    }
}

/// The error of a text that is not a revision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a revision: use a resource version, or the revision of an answer, such as 81734-1f0a93c4-512"
)]
pub struct RevisionError(String);

impl FromStr for Revision {
    type Err = RevisionError;

    fn from_str(text: &str) -> Result<Self, RevisionError> {
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse().ok()).flatten()
        };
        let read = || {
            let mut parts = text.split('-');
            let version = number(parts.next()?)?;
            let Some(history) = parts.next() else {
                return Some(Self::new(version, None));
            };
            let is_hex = history.len() == 8 && history.bytes().all(|byte| byte.is_ascii_hexdigit());
            let history = u32::from_str_radix(history, 16).ok().filter(|_| is_hex)?;
            let change = number(parts.next()?)?;
            let place = Some(Position { history, change });
            parts.next().is_none().then(|| Self::new(version, place))
        };
        read().ok_or_else(|| RevisionError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_written_as_they_are_read() {
        for text in ["0", "7", "81734-1f0a93c4-512"] {
            assert_eq!(text.parse::<Revision>().unwrap().to_string(), text);
        }
        for text in [
            "",
            ".",
            "7.",
            ".7",
            "-1",
            "+1",
            "1.2.3",
            "a",
            "99999999999999999999",
        ] {
            assert!(text.parse::<Revision>().is_err(), "{text}");
        }
    }
}
