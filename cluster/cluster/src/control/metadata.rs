//! The metadata that controllers look at, without decoding the rest.

use serde::Deserialize;

use crate::store::Stored;
use crate::strategy::{FOREGROUND, ORPHAN};

/// Owner references and finalizers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub(super) owner_references: Vec<OwnerReference>,
    pub(super) finalizers: Vec<String>,
}

/// A reference to an owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct OwnerReference {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) block_owner_deletion: Option<bool>,
    pub(super) controller: Option<bool>,
}

impl Metadata {
    pub(super) fn of(stored: &Stored) -> Self {
        let slice = stored.metadata();
        let json = slice.strip_prefix(br#","metadata":"#).unwrap_or(slice);
        // What was stored has passed the checks of its form; anything else owns and holds nothing.
        serde_json::from_slice(json).unwrap_or_default()
    }

    /// Returns the owner references, fast for objects without any.
    pub(super) fn owners_of(stored: &Stored) -> Vec<OwnerReference> {
        let text = std::str::from_utf8(stored.metadata()).unwrap_or_default();
        // Quotes inside of values are escaped, so this can only be the member.
        if !text.contains(r#""ownerReferences":["#) {
            return Vec::new();
        }
        Self::of(stored).owner_references
    }

    fn has(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|each| each == finalizer)
    }

    /// Returns whether its deletion waits for its dependents to be deleted.
    pub(super) fn is_foreground(&self) -> bool {
        self.has(FOREGROUND)
    }

    /// Returns whether its deletion waits for its dependents to be released.
    pub(super) fn is_orphan(&self) -> bool {
        self.has(ORPHAN)
    }
}

impl OwnerReference {
    /// Returns group and version.
    pub(super) fn group_version(&self) -> (&str, &str) {
        self.api_version
            .split_once('/')
            .unwrap_or(("", &self.api_version))
    }

    pub(super) fn blocks(&self) -> bool {
        self.block_owner_deletion == Some(true)
    }
}
