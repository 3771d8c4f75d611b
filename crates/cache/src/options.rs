//! The options of a kind.

use std::time::Duration;

use lariat_core::ManagedFields;

use crate::selection::Selection;
use crate::store::Storage;
use crate::transform::Transform;

/// What happens at a start if the API server does not serve a kind.
///
/// In both cases the kind is looked up again every few seconds, and its cache fills once the kind is served.
///
/// ```
/// use lariat::KindOptions;
/// use lariat::cache::MissingKind;
///
/// // The program installs the CustomResourceDefinition itself.
/// let options = KindOptions::default().missing_kind(MissingKind::Wait);
/// # let _ = options;
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MissingKind {
    /// The start fails immediately; the error names the kind.
    #[default]
    Refuse,
    /// The start waits for the kind.
    ///
    /// For example while its CustomResourceDefinition is being installed.
    Wait,
}

/// How the initial objects of a cache are read.
///
/// ```
/// use lariat::KindOptions;
/// use lariat::cache::InitialList;
///
/// let options = KindOptions::default().initial_list(InitialList::List);
/// # let _ = options;
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitialList {
    /// A list in pages of 500 objects, which the server may compress.
    List,
    /// A watch list (`sendInitialEvents`): a watch that begins with all existing objects.
    ///
    /// A watch list saves memory on the server. If the server refuses it, or does not mark the end of the initial
    /// objects, the kind is listed in pages instead.
    #[default]
    WatchList,
}

/// How many bytes a list may have by default.
const LIST_LIMIT: usize = 512 * 1024 * 1024;

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The options of a kind's cache.
///
/// ```
/// use std::time::Duration;
/// use lariat::cache::Transform;
/// use lariat::{KindOptions, Storage};
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
    pub(crate) initial_list: InitialList,
    pub(crate) uncompressed: bool,
    pub(crate) list_limit: Option<usize>,
    pub(crate) may_be_forbidden: bool,
    pub(crate) missing: Option<MissingKind>,
    pub(crate) sync_timeout: Option<Duration>,
}

impl KindOptions {
    /// Sets which objects are cached (default: all).
    ///
    /// [`Informer::select`](crate::Informer::select) changes it later.
    pub fn selection(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }

    /// Sets the form in which objects are stored (default [`Storage::Auto`]).
    pub fn storage(self, storage: Storage) -> Self {
        Self { storage, ..self }
    }

    /// Sets the values that are removed before objects are cached (default: none).
    ///
    /// See [`Transform`].
    pub fn transform(self, transform: Transform) -> Self {
        let transform = Some(transform);
        Self { transform, ..self }
    }

    /// Keeps `metadata.managedFields`, which are removed by default.
    ///
    /// They are often half of an object.
    ///
    /// ```
    /// use lariat::KindOptions;
    ///
    /// // For a program that works with field ownership.
    /// let options = KindOptions::default().keep_managed_fields();
    /// # let _ = options;
    /// ```
    pub fn keep_managed_fields(self) -> Self {
        let managed_fields = ManagedFields::Keep;
        Self {
            managed_fields,
            ..self
        }
    }

    /// Sets the resync period: how often all cached objects are published again.
    ///
    /// A resync sends no request: it publishes every object as [`Change::Resynced`](crate::Change::Resynced). The
    /// default is never, and zero means never. Each period is up to a tenth longer or shorter, so that kinds do not
    /// resync in step.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::KindOptions;
    ///
    /// let options = KindOptions::default().resync(Duration::from_secs(600));
    /// # let _ = options;
    /// ```
    pub fn resync(self, period: Duration) -> Self {
        // A year is as good as never, and cannot overflow a clock.
        let resync = Some(period.min(YEAR)).filter(|period| !period.is_zero());
        Self { resync, ..self }
    }

    /// Sets a memory budget for the kind in bytes (default: no limit).
    ///
    /// A kind that exceeds it is stored in smaller forms, step by step: from decoded to plain to compressed storage,
    /// then as metadata only, with content fetched on demand. Each step is logged, and shown in the kind's status.
    /// Metadata is always kept, so a very small budget is exceeded; zero keeps metadata only.
    ///
    /// While a relation or an index [reads content](crate::Informer::hold_content), the kind stays compressed, so that
    /// it finds the same objects as without a budget; a warning says that the budget is exceeded.
    ///
    /// ```
    /// use lariat::KindOptions;
    ///
    /// let options = KindOptions::default().memory_budget(64 << 20);
    /// # let _ = options;
    /// ```
    pub fn memory_budget(self, bytes: usize) -> Self {
        let budget = Some(bytes);
        Self { budget, ..self }
    }

    /// Sets how the initial objects are read (default [`InitialList::WatchList`]).
    pub fn initial_list(self, initial_list: InitialList) -> Self {
        Self {
            initial_list,
            ..self
        }
    }

    /// Sets what happens at a start if the kind is not served.
    ///
    /// The default is [`CacheFactoryBuilder::missing_kind`](crate::CacheFactoryBuilder::missing_kind).
    pub fn missing_kind(self, missing: MissingKind) -> Self {
        let missing = Some(missing);
        Self { missing, ..self }
    }

    /// Sets how long a start waits until the kind's cache has synced.
    ///
    /// The default is the timeout for all kinds. Zero does not wait: the start fails unless the cache has synced
    /// already.
    pub fn sync_timeout(self, timeout: Duration) -> Self {
        let sync_timeout = Some(timeout);
        Self {
            sync_timeout,
            ..self
        }
    }

    /// Requests lists without compression, which is faster on a fast network.
    ///
    /// By default the server may compress lists with gzip.
    pub fn uncompressed(self) -> Self {
        Self {
            uncompressed: true,
            ..self
        }
    }

    /// Sets how many bytes the body of a list may have, decompressed (default 512 MiB).
    ///
    /// The limit bounds a page of 500 objects, and a list in one piece, which follows if pages expire before they are
    /// read. A larger one fails, and the next list has pages of 50. Lines of watches have at most 16 MiB.
    ///
    /// ```
    /// use lariat::KindOptions;
    ///
    /// let options = KindOptions::default().list_limit(64 << 20);
    /// # let _ = options;
    /// ```
    pub fn list_limit(self, bytes: usize) -> Self {
        let list_limit = Some(bytes);
        Self { list_limit, ..self }
    }

    /// Starts without the forbidden namespaces of the selection (403).
    ///
    /// By default a kind syncs once all namespaces of its selection are read, so one without a Role keeps handlers of
    /// the others from being called. With this option the cache syncs without forbidden namespaces, as long as one is
    /// readable. They are logged, named in [`KindStatus`](crate::KindStatus), and tried again; their objects are added
    /// once they are readable.
    ///
    /// ```
    /// use lariat::{KindOptions, Selection};
    ///
    /// let tenants = Selection::all().in_namespaces(["tenant-a", "tenant-b"]);
    /// let options = KindOptions::default().selection(tenants).start_without_forbidden();
    /// # let _ = options;
    /// ```
    pub fn start_without_forbidden(self) -> Self {
        Self {
            may_be_forbidden: true,
            ..self
        }
    }

    pub(crate) fn list_limit_in_bytes(&self) -> usize {
        self.list_limit.unwrap_or(LIST_LIMIT)
    }
}
