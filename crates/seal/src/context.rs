//! The context that sealed data is bound to.

use ring::digest::{self, SHA256};

/// The context of a sealed value, such as its kind, object and column.
///
/// It is not stored with the value: opening it takes the same parts in the same order. So a value that was moved to
/// another row, kind or column cannot be opened. The boundaries of parts count: `["ab", "c"]` and `["a", "bc"]` differ.
///
/// ```
/// use lariat::seal::Context;
///
/// let kind = Context::new("apps/v1/Deployment");
/// let status = kind.and("default/web").and("status");
/// assert_ne!(status, kind.and("default/web").and("spec"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Context([u8; 32]);

impl Context {
    /// Creates a context with one part.
    #[must_use]
    pub fn new(part: impl AsRef<[u8]>) -> Self {
        Self([0; 32]).and(part)
    }

    /// Returns this context with one more part.
    ///
    /// ```
    /// use lariat::seal::Context;
    ///
    /// let row = Context::new("v1/Secret").and("default/database");
    /// assert_eq!(row, Context::new("v1/Secret").and("default/database"));
    /// ```
    #[must_use]
    pub fn and(&self, part: impl AsRef<[u8]>) -> Self {
        // The hash of the earlier parts has a fixed length, so no two sequences of parts hash the same bytes.
        let mut hash = digest::Context::new(&SHA256);
        hash.update(&self.0);
        hash.update(part.as_ref());
        let mut bytes = [0; 32];
        bytes.copy_from_slice(hash.finish().as_ref());
        Self(bytes)
    }
}

impl AsRef<[u8]> for Context {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
