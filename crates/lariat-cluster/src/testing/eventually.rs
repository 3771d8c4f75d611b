//! Waiting for what no watch tells.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The first pause between two looks, which doubles up to the last one.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(100);

/// What was waited for did not come true in time.
///
/// Its debug form, which `unwrap` and tests show, is its text.
#[derive(thiserror::Error)]
#[error("after {waited:?} and {looks} looks still: {last}")]
#[non_exhaustive]
pub struct NotYet {
    /// How long it was waited.
    pub waited: Duration,
    /// How often it was looked.
    pub looks: u32,
    /// What the last look saw.
    pub last: String,
}

lariat_core::debug_as_description!(NotYet);

/// Looks again and again until a look succeeds, and returns what it found.
///
/// It is for what is not an object of the cluster: counters, files, what a mock was told. For objects the
/// [waits](super::Wait) are better, which miss no state. A look says with its error what it saw instead of
/// what it wanted. The pauses between looks begin at 1 ms and double up to 100 ms, on tokio's clock. The
/// last look comes when the time is over, so that with a `timeout` of zero there is one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use lariat_cluster::{Cluster, testing::eventually};
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
/// [`NotYet`], with what the last look said.
///
/// # Cancel safety
///
/// Dropping the future drops the look that is under way.
pub async fn eventually<T, E: Display>(
    timeout: Duration,
    mut look: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, NotYet> {
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    for looks in 1.. {
        let late = started.elapsed() >= timeout;
        match look().await {
            Ok(found) => return Ok(found),
            Err(last) if late => {
                return Err(NotYet {
                    waited: started.elapsed(),
                    looks,
                    last: last.to_string(),
                });
            }
            Err(_) => sleep(pause.min(timeout.saturating_sub(started.elapsed()))).await,
        }
        pause = LAST_PAUSE.min(2 * pause);
    }
    unreachable!("there are more numbers than looks")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_in_vain_says_what_was_seen_last() {
        let mut seen = 0;
        let waited = eventually(Duration::from_secs(3), async || {
            seen += 1;
            Err::<(), _>(format!("look {seen}"))
        });
        let error = waited.await.unwrap_err();
        assert!(error.looks > 10, "{error}");
        assert_eq!(
            format!("{error:?}"),
            format!("after 3s and {0} looks still: look {0}", error.looks)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn without_time_there_is_one_look() {
        let found = eventually(Duration::ZERO, async || Ok::<_, &str>(1)).await;
        assert_eq!(found.unwrap(), 1);
        let missed = eventually(Duration::ZERO, async || Err::<(), _>("nothing")).await;
        assert_eq!(missed.unwrap_err().looks, 1);
    }
}
