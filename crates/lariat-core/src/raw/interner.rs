//! What many objects of a kind have in common.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use super::borrowed::{Owner, PackedLabels, Text};
use super::metadata::OwnerRef;
use crate::intern::{Recent, Texts};
use crate::{Labels, StrictObject};

/// What objects of a kind have in common, kept once: label sets, owners, finalizers.
///
/// A text that no object holds any more is forgotten when the collection has doubled since it was last looked through,
/// so it holds at most twice what is in use. Beside that it remembers what the JSON texts of labels, owners and
/// finalizers say that came lately, at most 128 kB of each: an object whose text is among them shares what was read of
/// it, and nothing is parsed.
pub struct Interner {
    texts: Texts,
    labels: Recent<Labels>,
    owners: Recent<Arc<[OwnerRef]>>,
    finalizers: Recent<Arc<[Arc<str>]>>,
}

impl Interner {
    /// Makes an empty interner.
    #[must_use]
    pub fn new() -> Self {
        Self {
            texts: Texts::new(),
            labels: Recent::new(),
            owners: Recent::new(),
            finalizers: Recent::new(),
        }
    }

    /// Returns a text, shared with everybody who asked for an equal one and still has it.
    pub fn intern(&mut self, text: &str) -> Arc<str> {
        self.texts.intern(text)
    }

    /// Reads labels.
    pub(super) fn labels(&mut self, json: Option<&[u8]>) -> Result<Labels, serde_json::Error> {
        let Some(json) = json else {
            return Ok(Labels::default());
        };
        let texts = &mut self.texts;
        self.labels.get_or_read(json, |json| {
            let PackedLabels(labels) = serde_json::from_slice(json)?;
            Ok(labels.intern(texts))
        })
    }

    /// Reads references to owners.
    pub(super) fn owners(
        &mut self,
        json: Option<&[u8]>,
    ) -> Result<Arc<[OwnerRef]>, serde_json::Error> {
        let Some(json) = json else {
            return Ok(Arc::default());
        };
        let texts = &mut self.texts;
        self.owners.get_or_read(json, |json| {
            let owners: Vec<StrictObject<Owner<'_>>> = list(json)?;
            Ok(owners.iter().map(|owner| owner.0.intern(texts)).collect())
        })
    }

    /// Reads finalizers.
    pub(super) fn finalizers(
        &mut self,
        json: Option<&[u8]>,
    ) -> Result<Arc<[Arc<str>]>, serde_json::Error> {
        let Some(json) = json else {
            return Ok(Arc::default());
        };
        let texts = &mut self.texts;
        self.finalizers.get_or_read(json, |json| {
            let finalizers: Vec<Text<'_>> = list(json)?;
            Ok(finalizers
                .iter()
                .map(|name| texts.intern(&name.0))
                .collect())
        })
    }
}

/// Reads a list; Go's `null` is the empty one.
fn list<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<Vec<T>, serde_json::Error> {
    let list: Option<Vec<T>> = serde_json::from_slice(json)?;
    Ok(list.unwrap_or_default())
}

impl Default for Interner {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Interner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interner")
            .field("texts", &self.texts.len())
            .field("labels", &self.labels.len())
            .field("owners", &self.owners.len())
            .field("finalizers", &self.finalizers.len())
            .finish()
    }
}
