//! A page of a list.

use std::sync::Arc;

use crate::store::Stored;

/// The objects of a list, or of one page of it, and its metadata.
#[derive(Debug)]
pub(crate) struct ListPage {
    pub(crate) objects: Vec<Arc<Stored>>,
    pub(crate) revision: u64,
    /// Continues the list where this page ends.
    pub(crate) continue_token: Option<String>,
    /// The number of objects after this page, where it is known.
    pub(crate) remaining: Option<usize>,
}
