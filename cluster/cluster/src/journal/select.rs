//! Selecting requests.

use std::time::Duration;

use super::entries::{Journal, Mark, RecordedRequest};
use super::filter::Filtered;

/// A query for requests in the journal, evaluated at each call.
pub type Selection = Filtered<RequestQuery>;

/// The requests of a journal after a mark.
#[derive(Debug, Clone)]
pub struct RequestQuery {
    journal: Journal,
    since: Mark,
}

impl Filtered<RequestQuery> {
    pub(super) fn of(journal: Journal) -> Self {
        let since = Mark(0);
        Self::all(RequestQuery { journal, since })
    }

    /// Narrows it to requests after a mark.
    pub fn since(mut self, mark: Mark) -> Self {
        self.inner.since = mark;
        self
    }

    /// Returns the requests, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        let RequestQuery { journal, since } = &self.inner;
        let entries = journal.entries.lock();
        let after = entries.since(*since);
        after
            .filter(|each| self.filter.matches(each))
            .cloned()
            .collect()
    }

    /// Counts the requests.
    #[must_use]
    pub fn count(&self) -> usize {
        let RequestQuery { journal, since } = &self.inner;
        let entries = journal.entries.lock();
        let after = entries.since(*since);
        after.filter(|each| self.filter.matches(each)).count()
    }

    /// Returns the largest number of requests within any span of the given length.
    ///
    /// Both ends of the span belong to it: with zero it is the largest number at one moment.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::cluster::Cluster;
    /// use std::time::Duration;
    ///
    /// let cluster = Cluster::builder().start().await?;
    /// for _ in 0..3 {
    ///     cluster.client().apiserver_version().await?;
    ///     tokio::time::sleep(Duration::from_secs(10)).await;
    /// }
    /// assert_eq!(cluster.journal().select().rate(Duration::from_secs(5)), 1);
    /// assert_eq!(cluster.journal().select().rate(Duration::from_secs(60)), 3);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn rate(&self, per: Duration) -> usize {
        let times: Vec<Duration> = self.requests().iter().map(|request| request.at).collect();
        busiest(&times, per).1
    }
}

/// Returns the start of the busiest span among rising times, and its size.
pub(super) fn busiest(times: &[Duration], per: Duration) -> (usize, usize) {
    let within = |from: usize| {
        let end = times[from].saturating_add(per);
        times[from..].partition_point(|time| *time <= end)
    };
    let spans = (0..times.len()).map(|from| (from, within(from)));
    // Of equals the first, which `max_by_key` would pass over.
    spans
        .rev()
        .max_by_key(|(_, count)| *count)
        .unwrap_or((0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(times: &[u64], per: u64, expected: (usize, usize)) {
        let times: Vec<Duration> = times
            .iter()
            .map(|time| Duration::from_secs(*time))
            .collect();
        assert_eq!(
            busiest(&times, Duration::from_secs(per)),
            expected,
            "{times:?}"
        );
    }

    #[test]
    fn the_busiest_span_is_found() {
        check(&[], 1, (0, 0));
        check(&[5], 0, (0, 1));
        check(&[0, 10, 11, 12, 20, 21], 2, (1, 3));
        check(&[0, 1, 2, 3], 1, (0, 2));
        check(&[0, 0, 7, 7, 7], 0, (2, 3));
        check(&[1, 2, 3], u64::MAX, (0, 3));
    }
}
