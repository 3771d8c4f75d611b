//! The selection of kinds to encrypt, and the wrapper of their keys.

use std::fmt;
use std::sync::Arc;

use lariat_core::Gvk;

use crate::wrapper::KeyWrapper;

/// Returns whether objects of a kind are never stored in plain text.
///
/// That holds for Secrets of the core group, in every version.
///
/// ```
/// use lariat::Gvk;
///
/// assert!(lariat::seal::is_always_sealed(&Gvk::new("", "v1", "Secret")));
/// assert!(!lariat::seal::is_always_sealed(&Gvk::new("", "v1", "ConfigMap")));
/// ```
#[must_use]
pub fn is_always_sealed(kind: &Gvk) -> bool {
    kind.group().is_empty() && kind.kind() == "Secret"
}

/// The kinds that are encrypted at rest, and the wrapper of their keys.
///
/// Clones share the wrapper.
///
/// ```
/// use lariat::seal::{LocalKeys, Sealing};
/// use lariat::Gvk;
///
/// # fn example() -> Result<(), lariat::seal::KeyError> {
/// let tokens = Gvk::new("demo.dev", "v1", "Token");
/// let sealing = Sealing::of_kinds([tokens], LocalKeys::from_file("/etc/operator/key")?);
/// assert!(sealing.seals(&Gvk::new("demo.dev", "v2", "Token")));
/// assert!(sealing.seals(&Gvk::new("", "v1", "Secret")));
/// assert!(!sealing.seals(&Gvk::new("", "v1", "Pod")));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Sealing {
    /// Wraps the keys.
    wrapper: Arc<dyn KeyWrapper>,
    /// The kinds, in every version; `None` for all.
    kinds: Option<Arc<[Gvk]>>,
}

impl Sealing {
    /// Encrypts all kinds.
    #[must_use]
    pub fn of_everything(wrapper: impl KeyWrapper) -> Self {
        Self {
            wrapper: Arc::new(wrapper),
            kinds: None,
        }
    }

    /// Encrypts some kinds, and Secrets in any case.
    ///
    /// A kind is encrypted in every version: versions are forms of the same objects.
    #[must_use]
    pub fn of_kinds(kinds: impl IntoIterator<Item = Gvk>, wrapper: impl KeyWrapper) -> Self {
        Self {
            wrapper: Arc::new(wrapper),
            kinds: Some(kinds.into_iter().collect()),
        }
    }

    /// Returns whether a kind is encrypted.
    #[must_use]
    pub fn seals(&self, kind: &Gvk) -> bool {
        let is_same = |it: &Gvk| it.group() == kind.group() && it.kind() == kind.kind();
        let chosen = self
            .kinds
            .as_ref()
            .is_none_or(|kinds| kinds.iter().any(is_same));
        // Secrets are sealed whatever was chosen, so that a forgotten entry does not store them in plain text.
        chosen || is_always_sealed(kind)
    }

    /// Returns the wrapper of the keys.
    #[must_use]
    pub fn wrapper(&self) -> &dyn KeyWrapper {
        &*self.wrapper
    }
}

impl fmt::Debug for Sealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealing")
            .field("key", &self.wrapper.current())
            .field("kinds", &self.kinds)
            .finish()
    }
}
