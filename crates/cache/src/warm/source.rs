//! Sources of an earlier run's objects other than files, such as a database.

use std::error::Error;
use std::fmt;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use lariat_core::ResourceVersion;

/// The error of a [`WarmSource`].
pub type WarmSourceError = Box<dyn Error + Send + Sync>;

/// The identity of saved objects: what a later run must have in common to use them.
///
/// Two identities are equal if the selection did not change in between, and the kind was served all the time.
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

/// A source of an earlier run's objects that replaces the file.
///
/// See [`Informer::warm_from`](crate::Informer::warm_from).
///
/// ```
/// use futures::StreamExt;
/// use futures::future::BoxFuture;
/// use lariat::cache::{WarmObjects, WarmSource, WarmSourceError};
/// use lariat::core::ResourceVersion;
///
/// /// Objects in memory, saved with an identity and a version.
/// struct Saved { identity: String, version: ResourceVersion, objects: Vec<Box<[u8]>> }
///
/// impl WarmSource for Saved {
///     fn open(&self, identity: String) -> BoxFuture<'_, Result<Option<WarmObjects>, WarmSourceError>> {
///         let found = (identity == self.identity).then(|| WarmObjects {
///             version: self.version.clone(),
///             pages: futures::stream::iter([Ok(self.objects.clone())]).boxed(),
///         });
///         Box::pin(async move { Ok(found) })
///     }
/// }
/// ```
pub trait WarmSource: Send + Sync {
    /// Returns the objects of a kind; `None` if none were saved under this identity.
    ///
    /// When they were saved, [`Informer::warm_identity`](crate::Informer::warm_identity) returned this identity.
    ///
    /// # Errors
    ///
    /// Fails if the objects cannot be read. The kind is listed then.
    fn open(&self, identity: String)
    -> BoxFuture<'_, Result<Option<WarmObjects>, WarmSourceError>>;
}

/// Saved objects, and the version up to which they are complete.
pub struct WarmObjects {
    /// The resource version from which the watch continues; objects may be newer.
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
