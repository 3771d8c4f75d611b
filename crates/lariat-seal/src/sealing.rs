//! The choice of sealed kinds, and their wrapper.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use lariat_core::Gvk;

use crate::wrapper::KeyWrapper;

/// Returns whether objects of a kind are never stored in plain text.
///
/// These are Secrets of the core group, in any version.
///
/// ```
/// use lariat_core::Gvk;
///
/// assert!(lariat_seal::is_always_sealed(&Gvk::new("", "v1", "Secret")));
/// assert!(!lariat_seal::is_always_sealed(&Gvk::new("", "v1", "ConfigMap")));
/// ```
#[must_use]
pub fn is_always_sealed(kind: &Gvk) -> bool {
    kind.group().is_empty() && kind.kind() == "Secret"
}

/// Which kinds are encrypted where they are stored, and the wrapper of their keys.
///
/// A clone is the same.
///
/// ```
/// use lariat_core::Gvk;
/// use lariat_seal::{LocalKeys, Sealing};
///
/// # fn example() -> Result<(), lariat_seal::KeyError> {
/// let tokens = Gvk::new("demo.dev", "v1", "Token");
/// let sealing = Sealing::of_kinds([tokens], LocalKeys::from_file("/etc/operator/key")?);
/// assert!(sealing.seals(&Gvk::new("", "v1", "Secret")));
/// assert!(!sealing.seals(&Gvk::new("", "v1", "Pod")));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Sealing {
    wrapper: Arc<dyn KeyWrapper>,
    /// `None` for all kinds.
    kinds: Option<Arc<BTreeSet<Gvk>>>,
}

impl Sealing {
    /// Seals all kinds.
    #[must_use]
    pub fn of_everything(wrapper: impl KeyWrapper) -> Self {
        Self {
            wrapper: Arc::new(wrapper),
            kinds: None,
        }
    }

    /// Seals some kinds, and always Secrets.
    #[must_use]
    pub fn of_kinds(kinds: impl IntoIterator<Item = Gvk>, wrapper: impl KeyWrapper) -> Self {
        Self {
            wrapper: Arc::new(wrapper),
            kinds: Some(Arc::new(kinds.into_iter().collect())),
        }
    }

    /// Returns whether a kind is sealed.
    #[must_use]
    pub fn seals(&self, kind: &Gvk) -> bool {
        let chosen = self.kinds.as_ref().is_none_or(|kinds| kinds.contains(kind));
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
