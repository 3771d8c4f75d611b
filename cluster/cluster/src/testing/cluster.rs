//! A cluster for one test.

use std::fmt;
use std::ops::Deref;

use crate::cluster::{Cluster, ClusterBuilder};

/// The number of last requests that a failed test prints.
const REQUESTS: usize = 10;

/// The environment variable with the seed of all test clusters.
const SEED: &str = "LARIAT_SEED";

/// A [`Cluster`] for one test, which stops when it is dropped.
///
/// See [`Cluster::for_test`].
///
/// When the test panics it prints the seed of its names and random numbers to stderr, and the last
/// requests. `LARIAT_SEED=…` gives the next run the same seed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lariat::cluster::{Cluster, testing::pod};
///
/// let cluster = Cluster::for_test().await;
/// let web = pod("web").create(&cluster.client()).await?;
/// assert_eq!(web.metadata.name.as_deref(), Some("web"));
/// # Ok(()) }
/// ```
#[must_use = "the cluster ends when it is dropped"]
pub struct TestCluster {
    cluster: Cluster,
    seed: u64,
}

impl Cluster {
    /// Starts a cluster for a test, without a socket.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, and if the environment variable `LARIAT_SEED` is no number.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn for_test() -> TestCluster {
        Self::builder().for_test().await
    }
}

impl ClusterBuilder {
    /// Starts the configured cluster for a test, with a random seed if it has none.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, if the address cannot be bound, and if the environment variable
    /// `LARIAT_SEED` is no number.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().seed(7).quotas(false).for_test().await;
    /// assert_eq!(cluster.seed(), 7);
    /// # Ok(()) }
    /// ```
    pub async fn for_test(self) -> TestCluster {
        let seed = self.chosen_seed().unwrap_or_else(seed);
        let started = self.seed(seed).start().await;
        let cluster = started.unwrap_or_else(|error| panic!("the cluster does not start: {error}"));
        TestCluster { cluster, seed }
    }
}

impl TestCluster {
    /// Returns the seed of names and random numbers.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    fn report(&self) -> String {
        let mut text = format!("the cluster of this test had {SEED}={}", self.seed);
        let requests = self.cluster.journal().requests();
        if !requests.is_empty() {
            text.push_str("; its last requests:");
        }
        for request in &requests[requests.len().saturating_sub(REQUESTS)..] {
            text.push_str("\n  ");
            text.push_str(&super::report::request(request));
        }
        text
    }
}

impl Deref for TestCluster {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.report());
        }
    }
}

impl fmt::Debug for TestCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestCluster")
            .field("cluster", &self.cluster)
            .field("seed", &self.seed)
            .finish()
    }
}

fn seed() -> u64 {
    match std::env::var(SEED) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{SEED} is {text:?}, which is no number")),
        Err(_) => fastrand::u64(..),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_failed_test_prints_the_seed_and_the_last_requests() {
        let cluster = Cluster::builder().seed(7).for_test().await;
        let client = cluster.client();
        for _ in 0..20 {
            client.apiserver_version().await.unwrap();
        }
        let pods = super::super::pod("web");
        pods.create(&client).await.unwrap();
        let text = cluster.report();
        assert!(
            text.starts_with("the cluster of this test had LARIAT_SEED=7; its last requests:\n"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1 + REQUESTS);
        assert!(
            text.ends_with("\n  create /api/v1/namespaces/default/pods?"),
            "{text}"
        );
    }
}
