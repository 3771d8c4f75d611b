//! What a list shows.

use std::sync::Arc;

use crate::store::Stored;

/// The objects of a list and its metadata.
#[derive(Debug)]
pub(in crate::verbs) struct Selection {
    pub(in crate::verbs) objects: Vec<Arc<Stored>>,
    pub(super) revision: u64,
    pub(super) continue_token: Option<String>,
    pub(super) remaining: Option<usize>,
}
