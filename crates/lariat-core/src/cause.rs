//! Why a key has work to do.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Instant;

use crate::{ResourceVersion, Uid};

/// One reason for which a key is in a work queue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The object came into sight: it was listed first, or created.
    Added {
        /// The version that was seen.
        version: ResourceVersion,
    },
    /// The object changed.
    Updated {
        /// The version before the first change nobody has handled yet.
        from: ResourceVersion,
        /// The version after the last.
        to: ResourceVersion,
    },
    /// The object is gone.
    Deleted {
        /// Which object: a later one under the same key has another uid.
        uid: Uid,
        /// The version of its last known state.
        version: ResourceVersion,
    },
    /// A handler of this process created or changed the object.
    Wrote {
        /// The handler.
        by: Arc<str>,
        /// The version before, if the object was there.
        from: Option<ResourceVersion>,
        /// The version since.
        to: ResourceVersion,
        /// How many runs in a row, each caused by what the one before wrote or enqueued, led to the write.
        chain: u32,
    },
    /// Something this object has to do with changed.
    Related {
        /// What happened to which object, in words.
        what: Arc<str>,
        /// As for [`Wrote`](Self::Wrote), if a handler of this process did it.
        chain: u32,
    },
    /// The store is being replayed by schedule, nothing changed.
    Resync,
    /// Code asked for the key.
    Enqueued {
        /// The handler that asked, if it was one.
        by: Option<Arc<str>>,
        /// Why, if it was said.
        why: Option<Arc<str>>,
        /// The line of code that asked.
        at: &'static Location<'static>,
        /// As for [`Wrote`](Self::Wrote), if a handler asked without a delay.
        chain: u32,
    },
    /// A handler failed and runs again.
    Retry {
        /// The handler.
        handler: Arc<str>,
        /// How many times in a row it has failed.
        failures: u32,
    },
    /// A handler asked to be run again.
    Requeued {
        /// The handler.
        handler: Arc<str>,
        /// When it wanted to run. Before that something else brings a run, which satisfies the request.
        due: Instant,
    },
    /// A handler was registered while the controller was running and sees what exists.
    LateHandler {
        /// The handler.
        handler: Arc<str>,
    },
}

impl Cause {
    /// Merges a later cause into this one if both tell one story; gives it back otherwise.
    fn merge(&mut self, later: Cause) -> Result<(), Cause> {
        if *self == later {
            return Ok(());
        }
        match (self, later) {
            (Self::Updated { to, .. }, Self::Updated { from, to: newest }) if *to == from => {
                *to = newest;
                Ok(())
            }
            (Self::Added { version }, Self::Updated { from, to }) if *version == from => {
                *version = to;
                Ok(())
            }
            (
                Self::Retry { handler, failures },
                Self::Retry {
                    handler: again,
                    failures: more,
                },
            ) if *handler == again => {
                *failures = more;
                Ok(())
            }
            (
                Self::Wrote { by, to, chain, .. },
                Self::Wrote {
                    by: again,
                    from: Some(from),
                    to: newest,
                    chain: other,
                },
            ) if *by == again && *to == from => {
                *to = newest;
                // Whatever else is among the causes begins a chain anew.
                *chain = other.min(*chain);
                Ok(())
            }
            (_, later) => Err(later),
        }
    }
}

impl Cause {
    /// Returns whether a later cause adds nothing to this one. Of two requests of a handler the earlier counts: it is
    /// due first or was due before.
    fn covers(&self, later: &Cause) -> bool {
        match (self, later) {
            (
                Self::Requeued { handler, due },
                Self::Requeued {
                    handler: again,
                    due: later,
                },
            ) => handler == again && due <= later,
            _ => self == later,
        }
    }

    /// Returns how many runs in a row, each caused by the write of the one before, led to this cause; none if
    /// it says nothing about that, as a retry, or a handler's wish to be called again that a write of its own
    /// fulfils.
    #[must_use]
    pub fn chain(&self) -> Option<u32> {
        match self {
            Self::Wrote { chain, .. }
            | Self::Related { chain, .. }
            | Self::Enqueued { chain, .. } => Some(*chain),
            Self::Retry { .. } | Self::Requeued { .. } => None,
            _ => Some(0),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { version } => write!(f, "added at {version}"),
            Self::Updated { from, to } => write!(f, "updated {from} → {to}"),
            Self::Deleted { version, .. } => write!(f, "deleted at {version}"),
            Self::Resync => f.write_str("resync"),
            Self::Wrote {
                by, from: None, to, ..
            } => write!(f, "created by {by} at {to}"),
            Self::Wrote {
                by,
                from: Some(from),
                to,
                ..
            } => write!(f, "written by {by} {from} → {to}"),
            Self::Related { what, .. } => f.write_str(what),
            Self::Enqueued { by, why, at, .. } => {
                f.write_str("enqueued ")?;
                if let Some(by) = by {
                    write!(f, "by {by} ")?;
                }
                write!(f, "at {at}")?;
                why.iter().try_for_each(|why| write!(f, " ({why})"))
            }
            Self::Retry { handler, failures } => write!(f, "retry {failures} of {handler}"),
            Self::Requeued { handler, .. } => write!(f, "requeued by {handler}"),
            Self::LateHandler { handler } => write!(f, "{handler} was registered late"),
        }
    }
}

/// The merged reasons for one run, oldest first and bounded.
///
/// Successive updates merge into one that spans them. Beyond [`LIMIT`](Self::LIMIT) different causes
/// the newest are counted but not kept: the run happens all the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Causes {
    first: Option<Cause>,
    /// Present only when there is more than one cause, which is rare.
    more: Option<Box<More>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct More {
    causes: Vec<Cause>,
    omitted: u32,
    /// The shortest chain that led to one of those that are omitted.
    shortest: Option<u32>,
}

impl Causes {
    /// How many different causes are kept.
    pub const LIMIT: usize = 8;

    /// Adds a later cause.
    pub fn push(&mut self, cause: Cause) {
        let Some(first) = &mut self.first else {
            self.first = Some(cause);
            return;
        };
        let newest = self
            .more
            .as_mut()
            .and_then(|more| more.causes.last_mut())
            .unwrap_or(first);
        let Err(cause) = newest.merge(cause) else {
            return;
        };
        if self.iter().any(|known| known.covers(&cause)) {
            return;
        }
        let more = self.more.get_or_insert_default();
        if more.causes.len() + 1 < Self::LIMIT {
            more.causes.push(cause);
        } else {
            more.omit(1, cause.chain());
        }
    }

    /// Adds all causes of a later list.
    pub fn extend(&mut self, later: Causes) {
        if self.first.is_none() {
            *self = later;
            return;
        }
        let more = later.more.map_or_else(More::default, |more| *more);
        for cause in later.first.into_iter().chain(more.causes) {
            self.push(cause);
        }
        if more.omitted > 0 {
            let mine = self.more.get_or_insert_default();
            mine.omit(more.omitted, more.shortest);
        }
    }

    /// Iterates over the causes, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Cause> {
        self.first
            .iter()
            .chain(self.more.iter().flat_map(|more| &more.causes))
    }

    /// Returns how many runs in a row, each caused by the write of the one before, led to this one: 0 as soon
    /// as anything else is among the causes.
    #[must_use]
    pub fn chain(&self) -> u32 {
        let kept = self.iter().filter_map(Cause::chain);
        kept.chain(self.shortest_omitted()).min().unwrap_or(0)
    }

    /// Returns the shortest chain that led to a cause that is not kept.
    #[must_use]
    pub fn shortest_omitted(&self) -> Option<u32> {
        self.more.as_ref()?.shortest
    }

    /// Returns the causes of a run at some time: without requests to run later than that, unless there is nothing else.
    ///
    /// A change makes a handler run before the time it asked for, and brings the request along.
    #[must_use]
    pub fn due_at(&self, now: Instant) -> Self {
        let is_due = |cause: &&Cause| !matches!(cause, Cause::Requeued { due, .. } if *due > now);
        if self.iter().all(|cause| is_due(&cause)) || !self.iter().any(|cause| is_due(&cause)) {
            return self.clone();
        }
        let mut rest = self.iter().filter(is_due).cloned();
        let first = rest.next();
        let causes: Vec<Cause> = rest.collect();
        let (omitted, shortest) = (self.omitted(), self.shortest_omitted());
        let more = More {
            causes,
            omitted,
            shortest,
        };
        let is_more = !more.causes.is_empty() || omitted > 0;
        Self {
            first,
            more: is_more.then(|| Box::new(more)),
        }
    }

    /// Returns how many causes were counted but not kept.
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
    fn omit(&mut self, count: u32, chain: Option<u32>) {
        self.omitted += count;
        self.shortest = self.shortest.into_iter().chain(chain).min();
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
    use std::time::Duration;

    use super::*;

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
            why: None,
            at: Location::caller(),
            chain: 0,
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

    fn wrote(by: &str, (from, to): (u64, u64), chain: u32) -> Cause {
        Cause::Wrote {
            by: by.into(),
            from: Some(from.into()),
            to: to.into(),
            chain,
        }
    }

    #[test]
    fn a_chain_is_as_long_as_the_shortest_that_led_here() {
        check(
            [wrote("h", (1, 2), 7), wrote("h", (2, 3), 7)],
            "written by h 1 → 3",
        );
        let chain = |causes: Vec<Cause>| {
            let mut merged = Causes::default();
            causes.into_iter().for_each(|cause| merged.push(cause));
            merged.chain()
        };
        assert_eq!(chain(vec![wrote("h", (1, 2), 7), wrote("h", (2, 3), 1)]), 1);
        assert_eq!(chain(vec![wrote("h", (1, 2), 7), updated(5, 6)]), 0);
        let retry = |failures| Cause::Retry {
            handler: "h".into(),
            failures,
        };
        assert_eq!(
            chain(vec![wrote("h", (1, 2), 7), retry(1)]),
            7,
            "says nothing"
        );
        let related = |number: u32| Cause::Related {
            what: number.to_string().into(),
            chain: 9,
        };
        let mut many: Vec<Cause> = (0..20).map(related).collect();
        assert_eq!(chain(many.clone()), 9);
        many.push(updated(1, 2));
        assert_eq!(chain(many), 0, "also if there was no room for it");
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
