//! client-go's `LeaderElector` as a state machine, without I/O and without a clock.
//!
//! [`Election::attempt`] returns the first [`Request`] of an attempt; the elector sends it and passes the answer to
//! [`Election::answered`], which returns the [`Next`] step. Between attempts, [`Election::observe`] and
//! [`Election::missing`] take in what a watch reports.

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
    /// Read the lease.
    Get,
    /// Create the lease.
    Create(Record),
    /// Update the lease; the object carries the last seen resource version.
    Update(Box<Object>),
}

/// The step after an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    /// Send another request.
    Send(Request),
    /// This process holds the lease, counted from when the last request was sent.
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
    /// The object, whose resource version the next update carries.
    object: Object,
    /// The contents of the lease.
    record: Record,
    /// When the record was last seen to change, on the local clock.
    at: Instant,
    /// When the lease was last seen, or when an attempt to read it last began.
    looked: Instant,
    /// When the lease was noticed to be missing; `None` if it exists.
    missing: Option<Instant>,
}

/// The request whose answer is awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    /// None.
    Nothing,
    /// A renewal without a read before it.
    FastRenewal,
    /// The read before an acquisition or a renewal.
    Read,
    /// The creation of the lease.
    Creation,
    /// An acquisition or a renewal after a read.
    Update,
    /// The read after a conflict, which shows who wrote.
    ReadAfterConflict,
    /// The read before a release.
    ReadToRelease,
    /// The release.
    Release,
}

/// The state of one process in an election.
#[derive(Debug)]
pub(crate) struct Election {
    /// The holder identity of this process.
    identity: Arc<str>,
    /// The lease duration that this process writes, in seconds.
    seconds: i32,
    /// The last observed state of the lease; `None` before the first read.
    observed: Option<Observed>,
    /// The request whose answer is awaited.
    pending: Pending,
    /// Whether an unanswered write may have acquired the lease.
    ///
    /// The next read will tell.
    is_in_doubt: bool,
    /// Whether this process has held the lease since it was created.
    has_held: bool,
    /// The number of renewals that had to read the lease first.
    slow_renewals: u64,
}

impl Election {
    /// Creates the state of a process that has observed nothing.
    pub(crate) fn new(identity: Arc<str>, seconds: i32) -> Self {
        Self {
            identity,
            seconds,
            observed: None,
            pending: Pending::Nothing,
            is_in_doubt: false,
            has_held: false,
            slow_renewals: 0,
        }
    }

    /// Begins an attempt to acquire or renew the lease.
    ///
    /// An earlier request that is still unanswered counts as failed.
    pub(crate) fn attempt(&mut self, at: Moment) -> Request {
        // The caller may have dropped the last attempt at its deadline, with a request unanswered.
        self.give_up_pending();
        if let Some(observed) = &mut self.observed {
            // Before the validity is checked, so that a suspension does not count as time without a renewal.
            observed.look(at.now);
        }
        match &self.observed {
            // The holder renews without a read. The resource version protects it: if the lease was changed meanwhile,
            // the update conflicts.
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
    /// The lease is read first, because another process may hold it by now. If an acquisition is unanswered, it may
    /// have reached the server, so the lease is read and released too.
    pub(crate) fn release(&mut self) -> Option<Request> {
        self.give_up_pending();
        (self.holds() || self.is_in_doubt).then(|| {
            self.pending = Pending::ReadToRelease;
            Request::Get
        })
    }

    /// Processes the answer to the last request.
    pub(crate) fn answered(&mut self, answer: Answer, at: Moment) -> Next {
        // Taken out, so that a second answer to the same request is ignored.
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
            // The same record: a change of labels, for example, is no renewal and must not extend the holder's time.
            Some(observed) if observed.record == record => {
                observed.look(now);
                observed.object = object;
                observed.missing = None;
            }
            _ => {
                // The holder's time counts from when this process sees the change, on its own clock.
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

    /// Records that the lease does not exist.
    fn forget(&mut self) {
        self.observed = None;
    }

    /// Records that the lease does not exist although it was not released.
    ///
    /// It was deleted by hand, or by a server that was restored from a backup. Its holder may not know yet and may
    /// still be leading, so the lease counts as held for its duration from now on.
    pub(crate) fn missing(&mut self, now: Instant) {
        if let Some(observed) = &mut self.observed {
            // The first notice counts. Later reads must not prolong the wait.
            observed.missing.get_or_insert(now);
        }
    }

    /// Returns whether this process holds the lease, as far as is known.
    pub(crate) fn holds(&self) -> bool {
        let observed = self.observed.as_ref();
        observed.is_some_and(|observed| self.is_mine(&observed.record))
    }

    /// Returns the last known holder; `None` if the lease is free or unknown.
    pub(crate) fn holder(&self) -> Option<&Arc<str>> {
        let observed = self.observed.as_ref()?;
        Some(&observed.record.holder).filter(|holder| !holder.is_empty())
    }

    /// Returns how often the lease has changed its holder.
    pub(crate) fn transitions(&self) -> i32 {
        let observed = self.observed.as_ref();
        observed.map_or(0, |observed| observed.record.transitions)
    }

    /// Returns when the lease expires unless it changes.
    ///
    /// `None` if it is free or unknown.
    pub(crate) fn expires(&self) -> Option<Instant> {
        let observed = self.observed.as_ref()?;
        (!observed.record.holder.is_empty()).then(|| observed.expires())
    }

    /// Returns until when a watch may be silent before the lease is read again.
    ///
    /// A living holder renews more often than that, so a longer silence means that the holder or the watch is dead.
    /// `None` if the lease is free or unknown.
    pub(crate) fn silent_until(&self) -> Option<Instant> {
        let observed = self.observed.as_ref()?;
        let silence = observed.record.duration() / 3;
        Some(self.expires()?.min(observed.looked + silence))
    }

    /// Returns the resource version that was last seen.
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

    /// Stops waiting for an answer.
    ///
    /// A write without an answer may have acquired the lease.
    fn give_up_pending(&mut self) {
        let pending = std::mem::replace(&mut self.pending, Pending::Nothing);
        self.is_in_doubt |= matches!(pending, Pending::Creation | Pending::Update);
    }

    /// Returns whether this process is the holder in a record.
    fn is_mine(&self, record: &Record) -> bool {
        record.holder == self.identity
    }

    /// Returns the record with which this process acquires or renews the lease.
    fn next_record(&self, wall: Timestamp) -> Record {
        let record = Record::new(&self.identity, self.seconds, wall);
        match self.observed.as_ref().map(|observed| &observed.record) {
            None => record,
            // A renewal keeps the acquisition. An acquisition counts as a transition, also one by the last holder: an
            // earlier process with this identity, or an earlier term of this one. client-go counts only changes of the
            // holder, so that two terms of it may have the same number.
            Some(known) if self.is_mine(known) && self.has_held => Record {
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

    /// Processes the answer to a renewal without a read.
    fn fast_renewal_ended(&mut self, answer: Answer, at: Moment) -> Next {
        match answer {
            Answer::Object(object) => self.held(*object, at.now),
            // Another process may hold the lease now. Or an earlier, unanswered renewal of this process reached the
            // server and changed the resource version. A read tells the two apart.
            Answer::Absent | Answer::Conflict | Answer::Failed => {
                self.pending = Pending::Read;
                Next::Send(Request::Get)
            }
        }
    }

    /// Processes the answer to the read before an acquisition or renewal.
    fn read_ended(&mut self, answer: Answer, at: Moment) -> Next {
        let object = match answer {
            Answer::Object(object) => *object,
            Answer::Absent => {
                self.is_in_doubt = false;
                self.missing(at.now);
                // The lease was deleted, but its holder does not know yet and may lead until its renew deadline.
                if let Some(holder) = self.other_holder(at.now) {
                    return Next::HeldBy(holder);
                }
                // Before `forget`, so that the new lease continues the transitions of the deleted one.
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
        // Acquisitions read the lease too, but only renewals are counted.
        self.slow_renewals += u64::from(self.is_mine(&observed.record));
        let record = self.next_record(at.wall);
        let update = Request::Update(Box::new(record.replace(&observed.object)));
        self.pending = Pending::Update;
        Next::Send(update)
    }

    /// Processes the answer to the write of an acquisition or renewal.
    fn write_ended(&mut self, answer: Answer, at: Moment) -> Next {
        match answer {
            Answer::Object(object) => self.held(*object, at.now),
            Answer::Absent => Next::Failed,
            // Another process was faster. Reading now shows the winner, so that this process watches the winner's lease
            // immediately and sees when it is released.
            Answer::Conflict => {
                self.pending = Pending::ReadAfterConflict;
                Next::Send(Request::Get)
            }
            // The write may have been stored although its answer was lost. Then the lease names this process, and
            // stopping must release it.
            Answer::Failed => {
                self.is_in_doubt = true;
                Next::Failed
            }
        }
    }

    /// Processes the answer to the read after a conflict.
    fn read_after_conflict_ended(&mut self, answer: Answer, at: Moment) -> Next {
        match answer {
            Answer::Object(object) => self.observe(*object, at.now),
            Answer::Absent => self.forget(),
            Answer::Conflict | Answer::Failed => return Next::Failed,
        }
        self.is_in_doubt = false;
        let holder = self.other_holder(at.now);
        // If the lease is free, the next attempt takes it. Not this one: if the server refuses every write, requests
        // must not become more frequent.
        holder.map_or(Next::Failed, Next::HeldBy)
    }

    /// Returns the other process that holds the lease, unless the lease has expired.
    fn other_holder(&self, now: Instant) -> Option<Arc<str>> {
        let observed = self.observed.as_ref()?;
        let holder = &observed.record.holder;
        let is_held = !holder.is_empty() && observed.is_valid(now);
        (is_held && !self.is_mine(&observed.record)).then(|| Arc::clone(holder))
    }

    /// Processes the stored object of a successful write.
    fn held(&mut self, object: Object, now: Instant) -> Next {
        self.observe(object, now);
        // The object that the server stored decides, not the one that was sent.
        if self.holds() {
            self.has_held = true;
            Next::Held
        } else {
            Next::Failed
        }
    }

    /// Processes the answer to the read before a release.
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

    /// Processes the answer to a release.
    fn release_ended(&mut self, answer: Answer, at: Moment) -> Next {
        match answer {
            Answer::Object(object) => self.observe(*object, at.now),
            Answer::Absent => self.forget(),
            // Someone wrote the lease since the read. Reading again shows whether it is still ours.
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
    /// Returns when the lease expires unless it changes.
    fn expires(&self) -> Instant {
        // The duration of a missing lease starts again when it is noticed: its holder may have renewed it just before
        // it was deleted.
        self.missing.unwrap_or(self.at) + self.record.duration()
    }

    /// Records that the process looks at the lease.
    ///
    /// If it has not looked for too long, the record's age starts over. A process that was suspended cannot know
    /// whether the record has changed meanwhile: a server that was restored from a backup shows the record of an
    /// earlier leader again. A process on standby looks once per third of the duration, so two thirds leave time for
    /// one failed attempt.
    fn look(&mut self, now: Instant) {
        let away = now.saturating_duration_since(self.looked);
        // An age that was not observed must not expire the lease of a holder that renewed it during the suspension.
        if away > self.record.duration() * 2 / 3 {
            self.at = now;
            // Likewise for a missing lease: it may have been created and renewed in the meantime.
            self.missing = self.missing.map(|_| now);
        }
        self.looked = now;
    }

    /// Returns whether the lease has not expired.
    ///
    /// That is, its record changed, or went missing, less than its duration ago.
    fn is_valid(&self, now: Instant) -> bool {
        self.expires() > now
    }
}

#[cfg(test)]
#[path = "election_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "election_reads_tests.rs"]
mod reads_tests;
