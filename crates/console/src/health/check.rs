//! A health check of a program.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time;

/// The default timeout, below the one second for which a kubelet waits.
const TIMEOUT: Duration = Duration::from_millis(800);

type Run = dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync;

/// A health check of a program.
///
/// It counts for readiness, and with [`liveness`](Self::liveness) for liveness too. A container whose liveness probe
/// fails is restarted, so use that only for failures that a restart can fix. A check that panics or exceeds its timeout
/// fails.
///
/// Probes need no authentication, so the text of an error is public. Parts that look like credentials are removed from
/// it.
///
/// ```
/// use lariat::console::HealthCheck;
///
/// let disk = HealthCheck::new("disk", || match std::fs::exists("/tmp") {
///     Ok(true) => Ok(()),
///     _ => Err("the directory is missing"),
/// });
/// let database = HealthCheck::future("database", || async { Ok::<(), String>(()) }).liveness(true);
/// # let _ = (disk, database);
/// ```
#[derive(Clone)]
#[must_use = "a check does nothing until a console has it"]
pub struct HealthCheck {
    name: Arc<str>,
    run: Arc<Run>,
    timeout: Duration,
    is_liveness: bool,
}

impl HealthCheck {
    /// Creates a check from a function, which must not block.
    pub fn new<E: fmt::Display>(
        name: &str,
        check: impl Fn() -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        let check = Arc::new(check);
        Self::future(name, move || {
            // Each run has a future of its own, which may outlive the call.
            let check = Arc::clone(&check);
            async move { check().map_err(|error| error.to_string()) }
        })
    }

    /// Creates a check from an async function.
    ///
    /// When the timeout has passed, the future is dropped.
    ///
    /// ```
    /// use lariat::console::HealthCheck;
    ///
    /// let database = HealthCheck::future("database", || async {
    ///     // Ask the database here.
    ///     Ok::<(), std::io::Error>(())
    /// });
    /// # let _ = database;
    /// ```
    pub fn future<F, Fut, E>(name: &str, check: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        let run = move || -> BoxFuture<'static, Result<(), String>> {
            let checked = check();
            Box::pin(async move { checked.await.map_err(|error| error.to_string()) })
        };
        Self {
            name: name.into(),
            run: Arc::new(run),
            timeout: TIMEOUT,
            is_liveness: false,
        }
    }

    /// Sets the timeout (default 800 ms; zero counts as one millisecond).
    ///
    /// A kubelet waits for one second by default; a longer timeout needs `timeoutSeconds` in the probe.
    pub fn timeout(self, timeout: Duration) -> Self {
        let timeout = timeout.max(Duration::from_millis(1));
        Self { timeout, ..self }
    }

    /// Sets whether the check counts for liveness too (default false).
    pub fn liveness(self, liveness: bool) -> Self {
        Self {
            is_liveness: liveness,
            ..self
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_liveness(&self) -> bool {
        self.is_liveness
    }

    /// Runs the check.
    pub(super) async fn run(&self) -> Result<(), String> {
        // Inside an async block, since the function itself may panic, before it returns a future.
        let checked = AssertUnwindSafe(async { (self.run)().await }).catch_unwind();
        match time::timeout(self.timeout, checked).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err("the check panicked".to_owned()),
            Err(_) => Err(format!("timed out after {:?}", self.timeout)),
        }
    }
}

impl fmt::Debug for HealthCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HealthCheck")
            .field("name", &self.name)
            .field("timeout", &self.timeout)
            .field("liveness", &self.is_liveness)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_check_that_hangs_or_panics_fails() {
        let good = HealthCheck::new("good", || Ok::<(), String>(()));
        assert_eq!(good.run().await, Ok(()));
        let bad = HealthCheck::new("bad", || Err("it is broken"));
        assert_eq!(bad.run().await, Err("it is broken".to_owned()));
        let hangs = HealthCheck::future("hangs", std::future::pending::<Result<(), String>>);
        let error = hangs.timeout(Duration::from_secs(3)).run().await;
        assert_eq!(error, Err("timed out after 3s".to_owned()));
        let panics = HealthCheck::new("panics", || -> Result<(), String> { panic!("on purpose") });
        assert_eq!(panics.run().await, Err("the check panicked".to_owned()));
        fn early() -> std::future::Ready<Result<(), String>> {
            panic!("on purpose")
        }
        let error = HealthCheck::future("early", early).run().await;
        assert_eq!(error, Err("the check panicked".to_owned()));
    }
}
