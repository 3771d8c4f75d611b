//! A build without Kubernetes' documentation of its types and fields.

#[cfg(feature = "printers")]
use std::collections::HashMap;

use serde_json::{Map, Value};

/// Whether there are descriptions.
pub(crate) const PRESENT: bool = false;

/// Adds nothing.
pub(crate) fn add(_: &mut Map<String, Value>) {}

/// Returns nothing.
#[cfg(feature = "printers")]
pub(crate) fn of_fields<'a>(
    _: impl Iterator<Item = (&'a str, &'a str)>,
) -> HashMap<(&'a str, &'a str), String> {
    HashMap::new()
}
