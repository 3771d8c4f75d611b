//! Waits for what cannot be watched.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The first pause between two attempts, which doubles up to the last one.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(100);

/// The error of [`eventually`]: no attempt has succeeded in time.
///
/// Its debug form, which `unwrap` and tests show, is its text.
#[derive(thiserror::Error)]
#[error("after {waited:?} and {attempts} attempts still: {last}")]
#[non_exhaustive]
pub struct EventuallyError {
    /// The time it waited.
    pub waited: Duration,
    /// The number of attempts.
    pub attempts: u32,
    /// The error of the last attempt.
    pub last: String,
}

lariat_core::debug_as_description!(EventuallyError);

/// Calls a function until it succeeds, and returns its result.
///
/// It is for what is not an object of the cluster: counters, files, calls of a mock. For objects prefer the
/// [waits](super::Wait), which miss no state. The error of an attempt describes what it found instead of
/// what it wanted. The pauses between attempts begin at 1 ms and double up to 100 ms, on tokio's clock. The
/// last attempt follows the timeout, so that with a `timeout` of zero there is one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use lariat::cluster::{Cluster, testing::eventually};
///
/// let cluster = Cluster::for_test().await;
/// let journal = cluster.journal();
/// # cluster.client().list_core_api_versions().await?;
/// let requests = eventually(Duration::from_secs(5), async || match journal.requests().len() {
///     0 => Err("no request yet"),
///     some => Ok(some),
/// });
/// assert_eq!(requests.await?, 1);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`EventuallyError`], with the error of the last attempt.
///
/// # Cancel safety
///
/// Dropping the future drops the attempt under way.
pub async fn eventually<T, E: Display>(
    timeout: Duration,
    mut attempt: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, EventuallyError> {
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    for attempts in 1.. {
        // Asked before the attempt, so that the last one begins after the timeout.
        let late = started.elapsed() >= timeout;
        match attempt().await {
            Ok(found) => return Ok(found),
            Err(last) if late => {
                return Err(EventuallyError {
                    waited: started.elapsed(),
                    attempts,
                    last: last.to_string(),
                });
            }
            Err(_) => sleep(pause.min(timeout.saturating_sub(started.elapsed()))).await,
        }
        pause = LAST_PAUSE.min(2 * pause);
    }
    unreachable!("there are more numbers than attempts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_timeout_has_the_error_of_the_last_attempt() {
        let mut seen = 0;
        let waited = eventually(Duration::from_secs(3), async || {
            seen += 1;
            Err::<(), _>(format!("attempt {seen}"))
        });
        let error = waited.await.unwrap_err();
        assert!(error.attempts > 10, "{error}");
        assert_eq!(
            format!("{error:?}"),
            format!(
                "after 3s and {0} attempts still: attempt {0}",
                error.attempts
            )
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_of_zero_allows_one_attempt() {
        let found = eventually(Duration::ZERO, async || Ok::<_, &str>(1)).await;
        assert_eq!(found.unwrap(), 1);
        let missed = eventually(Duration::ZERO, async || Err::<(), _>("nothing")).await;
        assert_eq!(missed.unwrap_err().attempts, 1);
    }
}
