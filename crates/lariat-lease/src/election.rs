//! client-go's `LeaderElector` as a state machine, without I/O and clock.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease as Object;
use tokio::time::Instant;

use crate::clock::Moment;
use crate::record::Record;
use crate::request::Answer;

/// A request to send.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    Get,
    Create(Record),
    /// An update of the object that was last seen, with its resource version.
    Update(Box<Object>),
}

/// What to do after an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    Send(Request),
    /// This process holds the lease; the renewal counts from when its request was sent.
    Held,
    /// Another process holds the lease, as far as is known.
    HeldBy(Arc<str>),
    /// The attempt has failed; another may succeed.
    Failed,
    /// The lease was released, or was not held.
    Released,
}

/// The last observed state of the lease.
#[derive(Debug)]
struct Observed {
    object: Object,
    record: Record,
    /// When the record was last seen to change, by the local clock.
    at: Instant,
    /// When the lease was last seen, or an attempt to read it last began.
    looked: Instant,
    /// Since when the lease is missing.
    missing: Option<Instant>,
}

/// The request whose answer is awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    Nothing,
    /// A renewal without a prior read.
    FastRenewal,
    Read,
    Creation,
    /// A renewal, or an acquisition, after a read.
    Update,
    /// Another process wrote first; the read shows which one.
    ReadAfterConflict,
    ReadToRelease,
    Release,
}

/// The state of one election.
#[derive(Debug)]
pub(crate) struct Election {
    identity: Arc<str>,
    seconds: i32,
    observed: Option<Observed>,
    pending: Pending,
    /// Whether an unanswered write may have acquired the lease.
    ///
    /// The next read shows that.
    is_in_doubt: bool,
    /// The number of renewals that had to read the lease first.
    slow_renewals: u64,
}

impl Election {
    pub(crate) fn new(identity: Arc<str>, seconds: i32) -> Self {
        Self {
            identity,
            seconds,
            observed: None,
            pending: Pending::Nothing,
            is_in_doubt: false,
            slow_renewals: 0,
        }
    }

    /// Begins an attempt to acquire or renew the lease.
    ///
    /// An earlier request that is still unanswered counts as failed.
    pub(crate) fn attempt(&mut self, at: Moment) -> Request {
        self.give_up_pending();
        if let Some(observed) = &mut self.observed {
            observed.look(at.now);
        }
        match &self.observed {
            // The holder renews without reading first; a conflict shows if the lease was changed.
            Some(observed) if self.is_mine(&observed.record) && observed.is_valid(at.now) => {
                let renewed = self.next_record(at.wall).replace(&observed.object);
                self.pending = Pending::FastRenewal;
                Request::Update(Box::new(renewed))
            }
            _ => {
                self.pending = Pending::Read;
                Request::Get
            }
        }
    }

    /// Begins to release the lease; `None` if there is nothing to release.
    ///
    /// The lease is read first, because another process may hold it by now. An unanswered acquisition may have reached
    /// the server, so it is released as well.
    pub(crate) fn release(&mut self) -> Option<Request> {
        self.give_up_pending();
        (self.holds() || self.is_in_doubt).then(|| {
            self.pending = Pending::ReadToRelease;
            Request::Get
        })
    }

    /// Processes the answer to the last request.
    pub(crate) fn answered(&mut self, answer: Answer, at: Moment) -> Next {
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Nothing => Next::Failed,
            Pending::FastRenewal => self.fast_renewal_ended(answer, at),
            Pending::Read => self.read_ended(answer, at),
            Pending::Creation | Pending::Update => self.write_ended(answer, at),
            Pending::ReadAfterConflict => self.read_after_conflict_ended(answer, at),
            Pending::ReadToRelease => self.read_to_release_ended(answer, at),
            Pending::Release => self.release_ended(answer, at),
        }
    }

    /// Processes a state of the lease that was read or watched.
    pub(crate) fn observe(&mut self, object: Object, now: Instant) {
        let record = Record::of(&object);
        match &mut self.observed {
            // A change of labels, for example, is not a renewal.
            Some(observed) if observed.record == record => {
                observed.look(now);
                observed.object = object;
                observed.missing = None;
            }
            _ => {
                self.observed = Some(Observed {
                    object,
                    record,
                    at: now,
                    looked: now,
                    missing: None,
                })
            }
        }
    }

    /// Notes that the lease does not exist.
    fn forget(&mut self) {
        self.observed = None;
    }

    /// Notes that the lease does not exist, although it was not released.
    ///
    /// It was deleted by hand, or by a server that was restored from a backup. The holder may not know yet, so the
    /// lease counts as held for its duration from now on.
    pub(crate) fn missing(&mut self, now: Instant) {
        if let Some(observed) = &mut self.observed {
            observed.missing.get_or_insert(now);
        }
    }

    /// Returns whether this process holds the lease, as far as is known.
    pub(crate) fn holds(&self) -> bool {
        let observed = self.observed.as_ref();
        observed.is_some_and(|observed| self.is_mine(&observed.record))
    }

    /// Returns the holder of the lease as far as is known.
    ///
    /// `None` if it is free or unknown.
    pub(crate) fn holder(&self) -> Option<&Arc<str>> {
        let observed = self.observed.as_ref()?;
        Some(&observed.record.holder).filter(|holder| !holder.is_empty())
    }

    /// Returns how often the lease has changed its holder.
    pub(crate) fn transitions(&self) -> i32 {
        let observed = self.observed.as_ref();
        observed.map_or(0, |observed| observed.record.transitions)
    }

    /// Returns when the lease expires if it does not change.
    ///
    /// `None` if it is free or unknown.
    pub(crate) fn expires(&self) -> Option<Instant> {
        let observed = self.observed.as_ref()?;
        (!observed.record.holder.is_empty()).then(|| observed.expires())
    }

    /// Returns until when a watch may be silent before the lease is read again.
    ///
    /// A holder renews its lease more often. `None` if the lease is free or unknown.
    pub(crate) fn silent_until(&self) -> Option<Instant> {
        let observed = self.observed.as_ref()?;
        let silence = observed.record.duration() / 3;
        Some(self.expires()?.min(observed.looked + silence))
    }

    /// Returns the last seen resource version.
    pub(crate) fn version(&self) -> Option<&str> {
        self.observed
            .as_ref()?
            .object
            .metadata
            .resource_version
            .as_deref()
    }

    /// Returns the number of renewals that had to read the lease first.
    pub(crate) fn slow_renewals(&self) -> u64 {
        self.slow_renewals
    }

    /// Stops waiting for an answer; the write may have acquired the lease.
    fn give_up_pending(&mut self) {
        let pending = std::mem::replace(&mut self.pending, Pending::Nothing);
        self.is_in_doubt |= matches!(pending, Pending::Creation | Pending::Update);
    }

    fn is_mine(&self, record: &Record) -> bool {
        record.holder == self.identity
    }

    /// Returns the record with which this process acquires or renews the lease.
    fn next_record(&self, wall: Timestamp) -> Record {
        let record = Record::new(&self.identity, self.seconds, wall);
        match self.observed.as_ref().map(|observed| &observed.record) {
            None => record,
            Some(known) if self.is_mine(known) => Record {
                acquired: known.acquired,
                transitions: known.transitions,
                ..record
            },
            Some(known) => Record {
                transitions: known.transitions.saturating_add(1),
                ..record
            },
        }
    }

    fn fast_renewal_ended(&mut self, answer: Answer, at: Moment) -> Next {
        match answer {
            Answer::Object(object) => self.held(*object, at.now),
            // The lease may have another holder, or this very renewal may have reached the server.
            Answer::Absent | Answer::Conflict | Answer::Failed => {
                self.pending = Pending::Read;
                Next::Send(Request::Get)
            }
        }
    }

    fn read_ended(&mut self, answer: Answer, at: Moment) -> Next {
        let object = match answer {
            Answer::Object(object) => *object,
            Answer::Absent => {
                self.is_in_doubt = false;
                self.missing(at.now);
                // A deleted lease may still be held: its holder does not know yet.
                if let Some(holder) = self.other_holder(at.now) {
                    return Next::HeldBy(holder);
                }
                let record = self.next_record(at.wall);
                self.forget();
                self.pending = Pending::Creation;
                return Next::Send(Request::Create(record));
            }
            Answer::Conflict | Answer::Failed => return Next::Failed,
        };
        self.is_in_doubt = false;
        self.observe(object, at.now);
        if let Some(holder) = self.other_holder(at.now) {
            return Next::HeldBy(holder);
        }
        let Some(observed) = &self.observed else {
            return Next::Failed;
        };
        // Only a renewal counts, not an acquisition.
        self.slow_renewals += u64::from(self.is_mine(&observed.record));
        let record = self.next_record(at.wall);
        let update = Request::Update(Box::new(record.replace(&observed.object)));
        self.pending = Pending::Update;
        Next::Send(update)
    }

    fn write_ended(&mut self, answer: Answer, at: Moment) -> Next {
        match answer {
            Answer::Object(object) => self.held(*object, at.now),
            Answer::Absent => Next::Failed,
            // So a process that lost the race for a free lease watches the winner immediately, and sees it release the
            // lease.
            Answer::Conflict => {
                self.pending = Pending::ReadAfterConflict;
                Next::Send(Request::Get)
            }
            // Without an answer the write may have been stored, so the lease may be ours.
            Answer::Failed => {
                self.is_in_doubt = true;
                Next::Failed
            }
        }
    }

    fn read_after_conflict_ended(&mut self, answer: Answer, at: Moment) -> Next {
        match answer {
            Answer::Object(object) => self.observe(*object, at.now),
            Answer::Absent => self.forget(),
            Answer::Conflict | Answer::Failed => return Next::Failed,
        }
        self.is_in_doubt = false;
        let holder = self.other_holder(at.now);
        // A lease that is free, still or again, is left to the next attempt: a server that always refuses must not be
        // asked more often.
        holder.map_or(Next::Failed, Next::HeldBy)
    }

    /// Returns the other process that holds the lease, unless the lease has expired.
    fn other_holder(&self, now: Instant) -> Option<Arc<str>> {
        let observed = self.observed.as_ref()?;
        let holder = &observed.record.holder;
        let is_held = !holder.is_empty() && observed.is_valid(now);
        (is_held && !self.is_mine(&observed.record)).then(|| Arc::clone(holder))
    }

    fn held(&mut self, object: Object, now: Instant) -> Next {
        self.observe(object, now);
        if self.holds() {
            Next::Held
        } else {
            Next::Failed
        }
    }

    fn read_to_release_ended(&mut self, answer: Answer, at: Moment) -> Next {
        match answer {
            Answer::Object(object) => self.observe(*object, at.now),
            Answer::Absent => self.forget(),
            Answer::Conflict | Answer::Failed => return Next::Failed,
        }
        self.is_in_doubt = false;
        match &self.observed {
            Some(observed) if self.is_mine(&observed.record) => {
                let record = observed.record.released(at.wall);
                self.pending = Pending::Release;
                Next::Send(Request::Update(Box::new(record.replace(&observed.object))))
            }
            _ => Next::Released,
        }
    }

    fn release_ended(&mut self, answer: Answer, at: Moment) -> Next {
        match answer {
            Answer::Object(object) => self.observe(*object, at.now),
            Answer::Absent => self.forget(),
            Answer::Conflict => {
                self.pending = Pending::ReadToRelease;
                return Next::Send(Request::Get);
            }
            Answer::Failed => return Next::Failed,
        }
        Next::Released
    }
}

impl Observed {
    fn expires(&self) -> Instant {
        self.missing.unwrap_or(self.at) + self.record.duration()
    }

    /// Notes that the process looks at the lease.
    ///
    /// After too long a time without a look, the record counts from now on. A process that was suspended cannot know
    /// whether the record has changed meanwhile: a server that was restored from a backup shows that of an earlier
    /// leader again. A process on standby looks every third of the duration, which leaves as much for a failed attempt.
    fn look(&mut self, now: Instant) {
        let away = now.saturating_duration_since(self.looked);
        // The observed age of the record is worthless after a suspension, so it starts over.
        if away > self.record.duration() * 2 / 3 {
            self.at = now;
            self.missing = self.missing.map(|_| now);
        }
        self.looked = now;
    }

    /// Returns whether the record changed, or went missing, less than its duration ago.
    fn is_valid(&self, now: Instant) -> bool {
        self.expires() > now
    }
}

#[cfg(test)]
#[path = "election_tests.rs"]
mod tests;
