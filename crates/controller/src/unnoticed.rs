//! Writes of a call that do not call its handler again.

use std::future::Future;

use lariat_cache::Change;
use lariat_core::ResourceVersion;

tokio::task_local! {
    /// The version of the object that the write of this task is based on.
    static BASE: ResourceVersion;
}

/// Sends a write of the current call's object that does not call the handler again.
///
/// The write must be conditional on the resource version `base`, as a status report is, so that it changes nothing else.
/// If the cache had another version, the change has more in it than this write, and the handler is called. It is also
/// called if the watch reports the change before the write is answered. Other handlers are called as usual.
///
/// # Cancel safety
///
/// As for the write.
pub async fn unnoticed<T>(base: &ResourceVersion, write: impl Future<Output = T>) -> T {
    BASE.scope(base.clone(), write).await
}

/// Returns whether a change consists of an unnoticed write of this task.
pub(crate) fn is_unnoticed(change: &Change) -> bool {
    let Change::Updated { old, .. } = change else {
        return false;
    };
    let is_base = |base: &ResourceVersion| !base.is_empty() && base == old.version();
    BASE.try_with(is_base).unwrap_or(false)
}
