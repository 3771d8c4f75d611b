//! Selecting requests.

use std::time::Duration;

use super::entries::{Journal, Mark, Request};

/// Some requests of a journal; what it selects is looked up when it is asked.
#[derive(Debug, Clone)]
#[must_use = "a selection does nothing until it is asked"]
pub struct Selection {
    journal: Journal,
    since: Mark,
    verb: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    client: Option<String>,
}

impl Selection {
    pub(super) fn of(journal: Journal) -> Self {
        Self {
            journal,
            since: Mark(0),
            verb: None,
            resource: None,
            subresource: None,
            namespace: None,
            name: None,
            client: None,
        }
    }

    /// Narrows it to what came after a mark.
    pub fn since(mut self, mark: Mark) -> Self {
        self.since = mark;
        self
    }

    /// Narrows it to a verb.
    pub fn verb(mut self, verb: impl Into<String>) -> Self {
        self.verb = Some(verb.into());
        self
    }

    /// Narrows it to a resource by its plural name.
    pub fn resource(mut self, plural: impl Into<String>) -> Self {
        self.resource = Some(plural.into());
        self
    }

    /// Narrows it to a subresource; an empty text means the resource itself.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    /// Narrows it to a namespace in the path; an empty text means requests without one.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Narrows it to a name in the path, which creations do not have.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Narrows it to clients whose `User-Agent` begins so.
    pub fn client(mut self, user_agent: impl Into<String>) -> Self {
        self.client = Some(user_agent.into());
        self
    }

    /// Returns the requests, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        let entries = self.journal.entries.lock();
        let selected = entries.since(self.since).filter(|each| self.holds(each));
        selected.cloned().collect()
    }

    /// Counts the requests.
    #[must_use]
    pub fn count(&self) -> usize {
        let entries = self.journal.entries.lock();
        let selected = entries.since(self.since).filter(|each| self.holds(each));
        selected.count()
    }

    /// Returns the largest number of requests that came within any span of so much time.
    ///
    /// Both ends of the span belong to it: with zero it is the largest number at one moment.
    #[must_use]
    pub fn rate(&self, per: Duration) -> usize {
        let times: Vec<Duration> = self.requests().iter().map(|request| request.at).collect();
        busiest(&times, per).1
    }

    fn holds(&self, request: &Request) -> bool {
        let is = |wanted: &Option<String>, value: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == value)
        };
        let client = self.client.as_deref().unwrap_or_default();
        is(&self.verb, &request.verb)
            && is(&self.resource, &request.resource)
            && is(
                &self.subresource,
                request.subresource.as_deref().unwrap_or_default(),
            )
            && is(
                &self.namespace,
                request.namespace.as_deref().unwrap_or_default(),
            )
            && is(&self.name, request.name.as_deref().unwrap_or_default())
            && request.user_agent.starts_with(client)
    }
}

/// Returns where the busiest span of some length begins among rising times, and how many lie in it.
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
