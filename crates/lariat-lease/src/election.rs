//! client-go's `LeaderElector` as a state machine, without I/O and clock.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease as Object;
use tokio::time::Instant;

use crate::clock::Moment;
use crate::record::Record;
use crate::request::Answer;

/// A request that has to be sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    Get,
    Create(Record),
    /// An update of the object that was seen last, with its resource version.
    Update(Box<Object>),
}

/// What follows an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    Send(Request),
    /// The lease is held; the renewal counts from the moment at which it was sent.
    Held,
    /// Another process holds the lease, as far as is known.
    HeldBy(Arc<str>),
    /// The try has failed; another may succeed.
    Failed,
    /// The lease is given up, or was not held.
    Released,
}

/// What was seen of the lease last.
#[derive(Debug)]
struct Observed {
    object: Object,
    record: Record,
    /// When the record was seen to change, by the local clock.
    at: Instant,
    /// When it was seen, or a try to read it began, last.
    looked: Instant,
    /// Since when the lease is missing.
    missing: Option<Instant>,
}

/// The request whose answer is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    Nothing,
    /// A renewal that skips the read.
    FastRenewal,
    Read,
    Creation,
    /// A renewal, or an acquisition, after a read.
    Update,
    /// Another write came first: the read shows whose.
    ReadAfterConflict,
    ReadToRelease,
    Release,
}

/// What is known of one lease, and what is waited for.
#[derive(Debug)]
pub(crate) struct Election {
    identity: Arc<str>,
    seconds: i32,
    observed: Option<Observed>,
    pending: Pending,
    /// Whether a write without an answer may have acquired the lease; the next read shows whether it has.
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

    /// Begins a try to acquire or renew the lease.
    ///
    /// A request without an answer by now gets none.
    pub(crate) fn attempt(&mut self, at: Moment) -> Request {
        self.give_up_pending();
        if let Some(observed) = &mut self.observed {
            observed.look(at.now);
        }
        match &self.observed {
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

    /// Begins to release the lease; none if there is nothing to release.
    ///
    /// The lease is read first, for another process may hold it by now. An acquisition without an answer may have reached
    /// the server, so it is released as well.
    pub(crate) fn release(&mut self) -> Option<Request> {
        self.give_up_pending();
        (self.holds() || self.is_in_doubt).then(|| {
            self.pending = Pending::ReadToRelease;
            Request::Get
        })
    }

    /// Takes the answer to the request that was sent last.
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

    /// Takes a state of the lease that was read or watched.
    pub(crate) fn observe(&mut self, object: Object, now: Instant) {
        let record = Record::of(&object);
        match &mut self.observed {
            // A change of labels, say, is no sign of life.
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

    /// Notes that the lease does not exist, although its holder was not seen to give it up.
    ///
    /// It was deleted by hand, or by a server that was restored from a backup. The holder may not know yet, so it counts as
    /// held for its duration from now on.
    pub(crate) fn missing(&mut self, now: Instant) {
        if let Some(observed) = &mut self.observed {
            observed.missing.get_or_insert(now);
        }
    }

    /// Returns whether the lease names this process as its holder, as far as is known.
    pub(crate) fn holds(&self) -> bool {
        let observed = self.observed.as_ref();
        observed.is_some_and(|observed| self.is_mine(&observed.record))
    }

    /// Returns who holds the lease as far as is known; none if it is free, or unknown.
    pub(crate) fn holder(&self) -> Option<&Arc<str>> {
        let observed = self.observed.as_ref()?;
        Some(&observed.record.holder).filter(|holder| !holder.is_empty())
    }

    /// Returns how often the lease has passed from one holder to another.
    pub(crate) fn transitions(&self) -> i32 {
        let observed = self.observed.as_ref();
        observed.map_or(0, |observed| observed.record.transitions)
    }

    /// Returns when the lease expires if it does not change.
    ///
    /// None if it is free, or unknown.
    pub(crate) fn expires(&self) -> Option<Instant> {
        let observed = self.observed.as_ref()?;
        (!observed.record.holder.is_empty()).then(|| observed.expires())
    }

    /// Returns until when a watch may be silent before the lease is read again.
    ///
    /// A holder renews its lease more often. None if the lease is free, or unknown.
    pub(crate) fn silent_until(&self) -> Option<Instant> {
        let observed = self.observed.as_ref()?;
        let silence = observed.record.duration() / 3;
        Some(self.expires()?.min(observed.looked + silence))
    }

    /// Returns the resource version that was seen last.
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

    /// Waits no more for an answer: a write may have acquired the lease.
    fn give_up_pending(&mut self) {
        let pending = std::mem::replace(&mut self.pending, Pending::Nothing);
        self.is_in_doubt |= matches!(pending, Pending::Creation | Pending::Update);
    }

    fn is_mine(&self, record: &Record) -> bool {
        record.holder == self.identity
    }

    /// Makes the record by which this process acquires or renews the lease.
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
            // The lease may have changed hands, or this very renewal may have reached the server.
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
            // A process that lost the race for a free lease so watches the winner at once, and sees it release the lease.
            Answer::Conflict => {
                self.pending = Pending::ReadAfterConflict;
                Next::Send(Request::Get)
            }
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
        // What is free still, or again, is left to the next try: a server that always refuses is asked no more often.
        holder.map_or(Next::Failed, Next::HeldBy)
    }

    /// Returns the process that holds the lease, if it is another and its time is not over.
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

    /// Notes that the process looks at the lease; its record counts from now on if it has not looked for too long.
    ///
    /// A process that was suspended cannot say that the record has not changed meanwhile: a server that was restored from a
    /// backup shows the one of an earlier leader again. One that stands by looks every third of the duration, and as much is
    /// left for a try that fails.
    fn look(&mut self, now: Instant) {
        let away = now.saturating_duration_since(self.looked);
        if away > self.record.duration() * 2 / 3 {
            self.at = now;
            self.missing = self.missing.map(|_| now);
        }
        self.looked = now;
    }

    /// Returns whether the record was seen to change, or is missing, for less than its lease duration.
    fn is_valid(&self, now: Instant) -> bool {
        self.expires() > now
    }
}

#[cfg(test)]
#[path = "election_tests.rs"]
mod tests;
