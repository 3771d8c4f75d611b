//! Objects stored elsewhere between two runs, as in a database.

use std::error::Error;
use std::fmt;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use lariat_core::ResourceVersion;

/// The error of a [`WarmSource`].
pub type WarmSourceError = Box<dyn Error + Send + Sync>;

/// What must be the same for saved objects to be used by a later run.
///
/// Two are equal if the selection did not change in between, and the kind was served all the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmIdentity {
    pub(crate) text: String,
    pub(crate) generation: u64,
}

impl WarmIdentity {
    /// Returns the text to save with the objects.
    ///
    /// A later run passes it to [`WarmSource::open`].
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// A source of an earlier run's objects, instead of a file.
///
/// See [`Informer::warm_from`](crate::Informer::warm_from).
pub trait WarmSource: Send + Sync {
    /// Returns the objects of a kind; `None` if none were saved under this identity.
    ///
    /// The identity is what [`Informer::warm_identity`](crate::Informer::warm_identity) returned when they were saved.
    ///
    /// # Errors
    ///
    /// They cannot be read. The kind is listed then.
    fn open(&self, identity: String)
    -> BoxFuture<'_, Result<Option<WarmObjects>, WarmSourceError>>;
}

/// Saved objects, and the version to which they are complete.
pub struct WarmObjects {
    /// The resource version from which the watch continues. Objects may be newer.
    pub version: ResourceVersion,
    /// The objects as JSON, in pages.
    ///
    /// They are what [`CachedObject::json`](crate::CachedObject::json) returned. After an error the kind is listed.
    pub pages: BoxStream<'static, Result<Vec<Box<[u8]>>, WarmSourceError>>,
}

impl fmt::Debug for WarmObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WarmObjects")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
