//! Work that blocks its thread.

use std::time::Duration;

use super::error::SqlError;

/// How often progress is checked while queries wait and no changes arrive.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// Runs work that blocks on a thread for blocking work.
///
/// # Errors
///
/// Fails if the runtime is shut down.
pub(crate) async fn blocking<T, F>(work: F) -> Result<T, SqlError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, SqlError> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(SqlError::Stopped),
    }
}
