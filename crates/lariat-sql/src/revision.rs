//! Up to which change a kind of the cache is.

use std::fmt;
use std::str::FromStr;

/// Up to which change a kind of the cache is.
///
/// It consists of a resource version of the API server and of the number of a change in this cache, as in `81734.512`. The
/// version counts when a query waits for what was written, the number when a watch goes on. A version alone, as an object has
/// it, is a revision as well.
///
/// ```
/// use lariat_sql::Revision;
///
/// let of_object: Revision = "81734".parse()?;
/// let of_list: Revision = "81734.512".parse()?;
/// assert!(of_object < of_list);
/// # Ok::<(), lariat_sql::RevisionError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision {
    version: u64,
    change: u64,
}

impl Revision {
    pub(crate) fn new(version: u64, change: u64) -> Self {
        Self { version, change }
    }

    /// Returns the resource version of the API server.
    #[must_use]
    pub fn version(self) -> u64 {
        self.version
    }

    /// Returns the number of the change in the cache; zero if it is not known.
    #[must_use]
    pub fn change(self) -> u64 {
        self.change
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.change {
            0 => write!(f, "{}", self.version),
            change => write!(f, "{}.{change}", self.version),
        }
    }
}

/// A text that is no revision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no revision: take a resource version, or what an answer returned, such as 81734.512"
)]
pub struct RevisionError(String);

impl FromStr for Revision {
    type Err = RevisionError;

    fn from_str(text: &str) -> Result<Self, RevisionError> {
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse().ok()).flatten()
        };
        let (version, change) = text.split_once('.').unwrap_or((text, "0"));
        let revision = number(version).zip(number(change));
        let (version, change) = revision.ok_or_else(|| RevisionError(text.to_owned()))?;
        Ok(Self { version, change })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_written_as_they_are_read() {
        for text in ["0", "7", "81734.512"] {
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
