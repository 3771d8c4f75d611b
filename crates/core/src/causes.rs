//! The merged reasons for a run.

use std::fmt;
use std::time::Instant;

use crate::cause::Cause;

/// The merged reasons for one run, oldest first, with a bound.
///
/// Consecutive updates merge into one that spans them. Beyond [`LIMIT`](Self::LIMIT) different causes, newer ones are
/// counted but not stored; the key is processed nevertheless.
///
/// The [retry](Self::retried) of a failed run keeps the run's causes. [`since_failure`](Self::since_failure) leaves
/// them out.
///
/// ```
/// use lariat::core::ResourceVersion;
/// use lariat::{Cause, Causes};
///
/// let mut causes = Causes::from(Cause::Added { version: ResourceVersion::new("1") });
/// causes.push(Cause::Updated { from: ResourceVersion::new("1"), to: ResourceVersion::new("2") });
/// causes.push(Cause::Resync);
/// assert_eq!(causes.to_string(), "added at 2, resync");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Causes {
    /// The oldest cause.
    first: Option<Cause>,
    /// The other causes, boxed because most runs have one cause.
    more: Option<Box<More>>,
}

/// All causes but the oldest, and what is known beyond single causes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct More {
    /// The causes after the oldest, in order.
    causes: Vec<Cause>,
    /// How many causes were counted but not stored.
    omitted: u32,
    /// One bit per cause, oldest first; set if it is kept from a failed run.
    inherited: u8,
}

impl Causes {
    /// The number of causes that are stored.
    pub const LIMIT: usize = 8;

    /// How many causes of a failed run are kept for its retry.
    const KEPT: usize = 4;

    /// Adds a later cause, or merges it with the newest.
    pub fn push(&mut self, cause: Cause) {
        self.add(cause, false);
    }

    /// Adds a later cause; `inherited` says whether it is kept from a failed run.
    fn add(&mut self, mut cause: Cause, inherited: bool) {
        let Some(first) = &mut self.first else {
            self.first = Some(cause);
            return self.mark(0, inherited);
        };
        let at = self.more.as_ref().map_or(0, |more| more.causes.len());
        // A cause of a failed run and a new one stay apart.
        if self
            .more
            .as_ref()
            .is_none_or(|more| more.is_inherited(at) == inherited)
        {
            let more = self.more.as_mut();
            // Only the newest can be continued: merging into an older one would hide what happened in between.
            let newest = more.and_then(|more| more.causes.last_mut());
            match newest.unwrap_or(first).merge(cause) {
                Ok(()) => return,
                Err(other) => cause = other,
            }
        }
        let known = self.iter().position(|known| known.covers(&cause));
        if let Some(known) = known {
            // A cause that occurs again after the failed run is new: the mark remains only if both are from failed
            // runs.
            let both = inherited
                && self
                    .more
                    .as_ref()
                    .is_some_and(|more| more.is_inherited(known));
            return self.mark(known, both);
        }
        let more = self.more.get_or_insert_default();
        if more.causes.len() + 1 < Self::LIMIT {
            more.causes.push(cause);
            self.mark(at + 1, inherited);
        } else {
            more.omitted += 1;
        }
    }

    /// Sets whether a cause is kept from a failed run.
    fn mark(&mut self, at: usize, inherited: bool) {
        match &mut self.more {
            // A byte has a bit for each of the `LIMIT` causes.
            Some(more) => more.inherited = more.inherited & !(1 << at) | u8::from(inherited) << at,
            None if inherited => self.more.get_or_insert_default().inherited = 1 << at,
            None => {}
        }
    }

    /// Adds all causes of a later list.
    pub fn extend(&mut self, later: Causes) {
        if self.first.is_none() {
            *self = later;
            return;
        }
        let more = later.more.map_or_else(More::default, |more| *more);
        for (at, cause) in later.first.into_iter().chain(more.causes).enumerate() {
            self.add(cause, more.inherited & 1 << at != 0);
        }
        if more.omitted > 0 {
            self.more.get_or_insert_default().omitted += more.omitted;
        }
    }

    /// Returns the causes of the retry of a failed run.
    ///
    /// `retry` is the cause to add. The four oldest causes are kept, so that the retry still shows what it is about.
    ///
    /// ```
    /// use lariat::{Cause, Causes};
    ///
    /// let retry = Cause::Retry { handler: "h".into(), failures: 1 };
    /// let causes = Causes::from(Cause::Resync).retried(retry);
    /// assert_eq!(causes.to_string(), "resync, retry 1 of h");
    /// assert!(causes.is_retry());
    /// ```
    #[must_use]
    pub fn retried(&self, retry: Cause) -> Self {
        // The retry being added replaces an earlier one; keeping both would push out the causes that explain them.
        let is_other = |cause: &&Cause| {
            std::mem::discriminant::<Cause>(cause) != std::mem::discriminant(&retry)
        };
        let mut kept = Self::default();
        for cause in self.iter().filter(is_other).take(Self::KEPT) {
            kept.add(cause.clone(), true);
        }
        let others = self.iter().filter(is_other).count();
        let more = kept.more.get_or_insert_default();
        // The causes beyond the kept ones are counted, so that the reader sees that there were more.
        more.omitted = self.omitted() + others.saturating_sub(Self::KEPT) as u32;
        kept.push(retry);
        kept
    }

    /// Iterates over the causes, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Cause> {
        self.first
            .iter()
            .chain(self.more.iter().flat_map(|more| &more.causes))
    }

    /// Iterates over the causes that came after the last failed run, oldest first.
    pub fn since_failure(&self) -> impl Iterator<Item = &Cause> {
        let more = self.more.as_deref();
        let is_new =
            move |(at, _): &(usize, &Cause)| more.is_none_or(|more| !more.is_inherited(*at));
        self.iter()
            .enumerate()
            .filter(is_new)
            .map(|(_, cause)| cause)
    }

    /// Returns whether all stored causes are retries of failed runs.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        let is_retry = |cause: &Cause| matches!(cause, Cause::Retry { .. });
        self.since_failure().all(is_retry) && self.iter().any(is_retry)
    }

    /// Returns the causes of a run at the given time.
    ///
    /// A request for a later run is left out, unless there is no other cause: an early run satisfies the request, but
    /// the request does not cause it.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use lariat::core::ResourceVersion;
    /// use lariat::{Cause, Causes};
    ///
    /// let now = Instant::now();
    /// let mut causes = Causes::from(Cause::Requeued { handler: "h".into(), due: now + Duration::from_secs(60) });
    /// causes.push(Cause::Updated { from: ResourceVersion::new("1"), to: ResourceVersion::new("2") });
    /// assert_eq!(causes.due_at(now).to_string(), "updated 1 → 2");
    /// ```
    #[must_use]
    pub fn due_at(&self, now: Instant) -> Self {
        let is_due = |cause: &&Cause| !matches!(cause, Cause::Requeued { due, .. } if *due > now);
        // Usually nothing is left out. If everything would be, the requests are the only explanation there is.
        if self.iter().all(|cause| is_due(&cause)) || !self.iter().any(|cause| is_due(&cause)) {
            return self.clone();
        }
        let mut rest = Self::default();
        let more = self.more.as_deref();
        for (at, cause) in self.iter().enumerate() {
            if is_due(&cause) {
                rest.add(
                    cause.clone(),
                    more.is_some_and(|more| more.is_inherited(at)),
                );
            }
        }
        if let Some(more) = more {
            let kept = rest.more.get_or_insert_default();
            kept.omitted = more.omitted;
        }
        rest
    }

    /// Returns how many causes were counted but not stored.
    #[must_use]
    pub fn omitted(&self) -> u32 {
        self.more.as_ref().map_or(0, |more| more.omitted)
    }

    /// Returns whether there is no cause.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

impl More {
    /// Returns whether a cause is kept from a failed run.
    fn is_inherited(&self, at: usize) -> bool {
        self.inherited & 1 << at != 0
    }
}

impl From<Cause> for Causes {
    fn from(cause: Cause) -> Self {
        Self {
            first: Some(cause),
            more: None,
        }
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, cause) in self.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{cause}")?;
        }
        match self.omitted() {
            0 => Ok(()),
            omitted => write!(f, ", and {omitted} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::{CausingRun, Gvk, ObjectKey, Subject};

    fn subject(name: &str) -> Subject {
        Subject {
            gvk: Gvk::new("", "v1", "Pod"),
            key: ObjectKey::cluster(name),
        }
    }

    fn in_run(run: u64) -> CausingRun {
        CausingRun {
            object: subject("a"),
            run,
        }
    }

    fn updated(from: u64, to: u64) -> Cause {
        Cause::Updated {
            from: from.into(),
            to: to.into(),
        }
    }

    #[track_caller]
    fn enqueued(by: &str) -> Cause {
        Cause::Enqueued {
            by: Some(by.into()),
            reason: None,
            at: Location::caller(),
            after: Duration::ZERO,
            during: None,
        }
    }

    fn check(causes: impl IntoIterator<Item = Cause>, expected: &str) {
        let mut merged = Causes::default();
        for cause in causes {
            merged.push(cause);
        }
        assert_eq!(merged.to_string(), expected);
    }

    #[test]
    fn successive_updates_span_one_range() {
        check(
            [updated(1, 2), updated(2, 5), updated(5, 6)],
            "updated 1 → 6",
        );
        check(
            [Cause::Added { version: 3.into() }, updated(3, 4)],
            "added at 4",
        );
        check(
            [updated(1, 2), updated(3, 4)],
            "updated 1 → 2, updated 3 → 4",
        );
    }

    #[test]
    fn a_cause_is_listed_once() {
        let due = an_instant();
        let requeued = |by: &str| Cause::Requeued {
            handler: by.into(),
            due,
        };
        check(
            [requeued("a"), requeued("b"), requeued("a")],
            "requeued by a, requeued by b",
        );
        let retry = |failures| Cause::Retry {
            handler: "h".into(),
            failures,
        };
        check([retry(1), retry(2)], "retry 2 of h");
    }

    #[test]
    fn runs_that_enqueue_in_the_same_place_are_one_cause() {
        let at = Location::caller();
        let enqueued = |run| Cause::Enqueued {
            by: Some("h".into()),
            reason: None,
            at,
            after: Duration::ZERO,
            during: Some(Arc::new(in_run(run))),
        };
        let mut causes = Causes::from(enqueued(7));
        causes.push(updated(1, 2));
        causes.push(enqueued(8));
        let first = causes.iter().next();
        assert_eq!((causes.iter().count(), first), (2, Some(&enqueued(7))));
    }

    #[allow(clippy::disallowed_methods, reason = "only differences count")]
    fn an_instant() -> Instant {
        Instant::now()
    }

    #[test]
    fn a_request_to_run_later_is_no_cause_of_an_earlier_run() {
        let now = an_instant();
        let requeued = |by: &str, seconds| Cause::Requeued {
            handler: by.into(),
            due: now + Duration::from_secs(seconds),
        };
        let at = |causes: &[Cause], seconds| {
            let mut merged = Causes::default();
            causes.iter().for_each(|cause| merged.push(cause.clone()));
            merged
                .due_at(now + Duration::from_secs(seconds))
                .to_string()
        };
        let causes = [requeued("a", 300), updated(1, 2), requeued("b", 5)];
        assert_eq!(at(&causes, 0), "updated 1 → 2");
        assert_eq!(at(&causes, 5), "updated 1 → 2, requeued by b");
        assert_eq!(
            at(&causes, 300),
            "requeued by a, updated 1 → 2, requeued by b"
        );
        assert_eq!(at(&causes[..1], 0), "requeued by a", "it is all there is");
    }

    fn wrote(by: &str, from: u64, to: u64) -> Cause {
        Cause::Wrote {
            by: by.into(),
            from: Some(from.into()),
            to: to.into(),
            during: Arc::new(in_run(1)),
        }
    }

    #[test]
    fn causes_since_failure_leave_out_those_of_the_failed_run() {
        let retry = |failures| Cause::Retry {
            handler: "h".into(),
            failures,
        };
        let since = |causes: &Causes| {
            let new = causes.since_failure().map(ToString::to_string);
            new.collect::<Vec<_>>()
        };
        let mut causes = Causes::from(Cause::Added { version: 1.into() }).retried(retry(1));
        assert_eq!(
            (since(&causes), causes.is_retry()),
            (vec!["retry 1 of h".to_owned()], true)
        );
        causes.push(wrote("h", 1, 2));
        causes.push(wrote("h", 2, 3));
        assert_eq!(
            causes.to_string(),
            "added at 1, retry 1 of h, written by h 1 → 3"
        );
        assert!(!causes.is_retry());
        let causes = causes.retried(retry(2));
        assert_eq!(
            causes.to_string(),
            "added at 1, written by h 1 → 3, retry 2 of h"
        );
        assert!(causes.is_retry());
        let mut merged = Causes::from(wrote("h", 3, 4));
        merged.extend(causes);
        assert_eq!(
            since(&merged),
            ["written by h 3 → 4", "retry 2 of h"],
            "in any order"
        );
        merged.push(Cause::Added { version: 1.into() });
        assert_eq!(since(&merged).len(), 3, "the same cause again is new");
        assert!(!Causes::default().is_retry());
    }

    #[test]
    fn a_run_that_fails_for_ever_leaves_room_for_what_is_new() {
        let mut causes = Causes::from(Cause::Added { version: 1.into() });
        for failures in 1..50 {
            let (handler, version) = ("h".into(), u64::from(failures) * 2);
            causes = causes.retried(Cause::Retry { handler, failures });
            causes.push(wrote("h", version, version + 1));
        }
        assert!(causes.to_string().starts_with("added at 1, "), "{causes}");
        assert_eq!(causes.iter().count(), 6);
    }

    #[test]
    fn the_list_is_bounded_and_counts_what_it_leaves_out() {
        let mut causes = Causes::default();
        for number in 0..20 {
            causes.push(enqueued(&number.to_string()));
        }
        assert_eq!(causes.iter().count(), Causes::LIMIT);
        assert_eq!(causes.omitted(), 12);
        let mut merged = Causes::from(Cause::Resync);
        merged.extend(causes);
        assert_eq!(
            (merged.iter().count(), merged.omitted()),
            (Causes::LIMIT, 13)
        );
    }
}
