//! The columns of built-in kinds, left out: each has those of a kind of which nothing is known.

use std::sync::Arc;

use lariat_apimachinery::kinds::Resource;
use serde_json::Value;

use super::column::{self, Column};

/// Returns name and age.
pub(super) fn columns(_: &Resource) -> Arc<[Column]> {
    column::generic().into()
}

/// Returns `None`: rows have no conditions.
pub(super) fn conditions(_: &Resource, _: &Value) -> Option<Value> {
    None
}
