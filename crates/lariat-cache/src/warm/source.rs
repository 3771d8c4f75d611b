//! Objects that are kept elsewhere between two runs, as in a database.

use std::error::Error;
use std::fmt;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use lariat_core::ResourceVersion;

/// Why a [`WarmSource`] cannot be read.
pub type WarmSourceError = Box<dyn Error + Send + Sync>;

/// What must be the same for objects that were kept to be used by a later run.
///
/// Two are equal if nothing else was selected in between, and the kind was served all the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmIdentity {
    pub(crate) text: String,
    pub(crate) generation: u64,
}

impl WarmIdentity {
    /// Returns what is kept with the objects, and passed to [`WarmSource::open`] by a later run.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Where an informer finds the objects of an earlier run, in place of a file.
///
/// See [`Informer::warm_from`](crate::Informer::warm_from).
pub trait WarmSource: Send + Sync {
    /// Returns the objects of a kind; none if none were kept under this identity.
    ///
    /// The identity is what [`Informer::warm_identity`](crate::Informer::warm_identity) returned when they were kept.
    ///
    /// # Errors
    ///
    /// They cannot be read. The kind is listed then.
    fn open(&self, identity: String)
    -> BoxFuture<'_, Result<Option<WarmObjects>, WarmSourceError>>;
}

/// Objects that were kept, and up to where they are complete.
pub struct WarmObjects {
    /// The resource version from which the watch goes on. Objects may be newer.
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
