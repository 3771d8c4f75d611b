//! What a list answers.

use std::sync::Arc;

use crate::store::Stored;

/// The objects of a list, or of one page of it, and its metadata.
#[derive(Debug)]
pub(crate) struct ListPage {
    pub(crate) objects: Vec<Arc<Stored>>,
    pub(crate) revision: u64,
    /// Continues the list where this page ends.
    pub(crate) continue_token: Option<String>,
    /// How many objects follow this page, where that is known.
    pub(crate) remaining: Option<usize>,
}
