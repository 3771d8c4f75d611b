//! What can be chosen for a kind.

use std::time::Duration;

use lariat_core::ManagedFields;

use crate::selection::Selection;
use crate::store::Storage;
use crate::transform::Transform;

/// What a start does about a kind the API server does not serve.
///
/// Either way the kind is asked for every few seconds, and its cache fills once it is served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MissingKind {
    /// Let the start fail at once, with an error that names the kind.
    #[default]
    Refuse,
    /// Let the start wait for it, as when its CustomResourceDefinition is being installed.
    Wait,
}

/// How a cache is filled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Filling {
    /// Pages of 500 objects, which the server may compress.
    Lists,
    /// A watch that begins with everything there is (Kubernetes calls it a streaming list), which spares
    /// the server memory; lists, where a server refuses that or does not say where the beginning ends.
    #[default]
    Stream,
}

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The options of a kind's cache.
///
/// ```
/// use std::time::Duration;
/// use lariat_cache::{KindOptions, Storage, Transform};
///
/// let options = KindOptions::default()
///     .storage(Storage::Compressed)
///     .transform(Transform::drop(["/status"]))
///     .resync(Duration::from_secs(600));
/// # let _ = options;
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "options do nothing until a factory has them"]
pub struct KindOptions {
    pub(crate) selection: Selection,
    pub(crate) storage: Storage,
    pub(crate) transform: Option<Transform>,
    pub(crate) managed_fields: ManagedFields,
    pub(crate) resync: Option<Duration>,
    pub(crate) budget: Option<usize>,
    pub(crate) filling: Filling,
    pub(crate) uncompressed: bool,
    pub(crate) missing: Option<MissingKind>,
    pub(crate) sync_timeout: Option<Duration>,
}

impl KindOptions {
    /// Sets which objects are cached (default: all); can be changed later through
    /// [`Informer::select`](crate::Informer::select).
    pub fn selection(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }

    /// Sets in which form objects are kept (default [`Storage::Auto`]).
    pub fn storage(self, storage: Storage) -> Self {
        Self { storage, ..self }
    }

    /// Sets what is left out of objects before they are cached (default: nothing).
    pub fn transform(self, transform: Transform) -> Self {
        let transform = Some(transform);
        Self { transform, ..self }
    }

    /// Keeps `metadata.managedFields`, which is cut out by default: it is often half of an object.
    pub fn keep_managed_fields(self) -> Self {
        let managed_fields = ManagedFields::Keep;
        Self {
            managed_fields,
            ..self
        }
    }

    /// Sets how often every object is published again, without a request (default: never; zero means never).
    ///
    /// Each period is up to a tenth longer or shorter, so that kinds do not resync in step.
    pub fn resync(self, period: Duration) -> Self {
        // A year is as good as never, and times that no clock can hold are no trouble.
        let resync = Some(period.min(YEAR)).filter(|period| !period.is_zero());
        Self { resync, ..self }
    }

    /// Sets how many bytes the kind may hold (default: any number; zero keeps metadata alone).
    ///
    /// A kind that holds more steps down: from decoded to plain to compressed storage, then to metadata,
    /// with content fetched on demand. Each step is logged, and shown in the kind's status. Metadata is
    /// never given up, so very small budgets cannot be kept.
    pub fn memory_budget(self, bytes: usize) -> Self {
        let budget = Some(bytes);
        Self { budget, ..self }
    }

    /// Sets how the cache is filled (default [`Filling::Stream`]).
    pub fn filling(self, filling: Filling) -> Self {
        Self { filling, ..self }
    }

    /// Sets what happens to a start if the kind is not served (default: as
    /// [`CacheFactoryBuilder::missing_kind`](crate::CacheFactoryBuilder::missing_kind) says).
    pub fn missing_kind(self, missing: MissingKind) -> Self {
        let missing = Some(missing);
        Self { missing, ..self }
    }

    /// Sets how long a start waits until the kind's cache is filled (default: as long as for the others; zero
    /// fails unless it is filled already).
    pub fn sync_timeout(self, timeout: Duration) -> Self {
        let sync_timeout = Some(timeout);
        Self {
            sync_timeout,
            ..self
        }
    }

    /// Asks for lists without compression, which spares time where the network is fast.
    pub fn uncompressed(self) -> Self {
        Self {
            uncompressed: true,
            ..self
        }
    }
}
