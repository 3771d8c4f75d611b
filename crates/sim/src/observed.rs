//! ProcessStates of objects that programs are shown, and their versions.
#![expect(missing_docs, reason = "only the hidden `internals` show it")]

use std::sync::Arc;

use lariat_cache::CachedObject;

/// A state of an object a program was shown.
#[derive(Debug, Clone)]
pub struct Observed {
    pub uid: String,
    pub version: u64,
    pub object: Arc<CachedObject>,
}

impl Observed {
    pub fn new(object: &Arc<CachedObject>) -> Self {
        Self {
            uid: object.uid().to_string(),
            version: version_of(object),
            object: Arc::clone(object),
        }
    }
}

/// Returns a version as the number the embedded cluster made it of.
pub fn version_of(object: &CachedObject) -> u64 {
    number_of(&object.version().to_string())
}

/// Returns a version as a number; zero if it is none.
#[must_use]
pub fn number_of(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}
