//! Sequences of happenings on one place.

use std::time::Duration;

use crate::plan::{
    Change, Command, Fault, FaultKind, Happening, NAMES, Own, PlanStep, Verb, Write,
};

/// What a sequence is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    /// The program writes while the kind is read again.
    WriteWhileLoading,
    /// A write of the program takes an object out of the selection.
    ///
    /// Another one brings it back.
    LeaveAndReturn,
    /// The cluster is restored from a backup that does not have what the program wrote.
    Restore,
    /// The answer to a creation comes when the object is gone.
    LateAnswer,
    /// The resource is not served at a stop and at the next start.
    NotServed,
    /// A subscriber comes while objects change.
    LateSubscriber,
    /// Objects are deleted while no watch is open.
    Gap,
    /// Something is delayed in a kind in which nothing else happens.
    Quiet,
    /// A stop while retries are due later.
    StopWithRetries,
    /// Objects change while handlers run for them.
    Burst,
    /// The process is asked to end while a start waits for its caches.
    ///
    /// Watches or answers go wrong meanwhile.
    EndWhileStarting,
}

/// What chance picks from; the end of a process has a chance of its own.
const THEMES: [Theme; 13] = [
    Theme::WriteWhileLoading,
    Theme::WriteWhileLoading,
    Theme::LeaveAndReturn,
    Theme::LeaveAndReturn,
    Theme::Restore,
    Theme::Restore,
    Theme::LateAnswer,
    Theme::LateAnswer,
    Theme::LateSubscriber,
    Theme::Gap,
    Theme::Quiet,
    Theme::StopWithRetries,
    Theme::Burst,
];

impl Theme {
    pub(crate) fn any(random: &mut fastrand::Rng) -> Self {
        THEMES[random.usize(..THEMES.len())]
    }
}

/// What of the run a sequence is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) process: usize,
    pub(crate) kind: usize,
}

/// A sequence that grows.
pub(crate) struct Sequence<'a> {
    pub(super) random: &'a mut fastrand::Rng,
    pub(super) place: Subject,
    pub(super) at: Duration,
    pub(super) steps: Vec<PlanStep>,
}

/// A handler of metadata or of content, without a limit and without resync.
// The bits are those that the trial's `Crew::register` reads.
const METADATA: u32 = 0x13;

pub(super) const CONTENT: u32 = 0x17;

impl<'a> Sequence<'a> {
    pub(crate) fn new(random: &'a mut fastrand::Rng, place: Subject, at: Duration) -> Self {
        Self {
            random,
            place,
            at,
            steps: Vec::new(),
        }
    }

    /// Makes the steps; returns them with the time of the last.
    pub(crate) fn of(mut self, theme: Theme) -> (Vec<PlanStep>, Duration) {
        let name = self.random.u16(..4);
        self.prepare(name);
        match theme {
            Theme::WriteWhileLoading => self.write_while_loading(name),
            Theme::LeaveAndReturn => self.leave_and_return(name),
            Theme::Restore => self.restore(name),
            Theme::LateAnswer => self.late_answer(name),
            Theme::NotServed => self.not_served(),
            Theme::LateSubscriber => self.late_subscriber(name),
            Theme::Gap => self.gap(name),
            Theme::Quiet => self.quiet(name),
            Theme::StopWithRetries => self.stop_with_retries(),
            Theme::Burst => self.burst(name),
            Theme::EndWhileStarting => self.end_while_starting(),
        }
        (self.steps, self.at)
    }

    /// Sees to it that the kind is in use and has some objects.
    fn prepare(&mut self, name: u16) {
        let number = [METADATA, CONTENT][self.random.usize(..2)];
        self.command(Verb::Register, number);
        for name in name..name + 3 {
            self.client(name, Change::Put);
        }
        self.wait(1000, 3000);
    }

    /// Cuts the watch and holds the next one back, so that changes are not seen.
    pub(super) fn blind(&mut self) {
        // The next watch is delayed for longer than the fault lasts, so changes until then are not seen.
        let delay = self.time(2_500, 6_000);
        self.fault(FaultKind::Delay(delay), Some("watch"), 2_500);
        self.now(FaultKind::CutWatches);
        self.wait(50, 300);
    }

    pub(super) fn any_write(&mut self) -> Own {
        match self.random.u8(..8) {
            0..3 => Own::Annotate,
            3 => Own::Update,
            4 => Own::Apply,
            5 => Own::Delete,
            6 => Own::Relabel(1),
            _ => Own::Create(true),
        }
    }

    pub(super) fn time(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.random.u64(least..=most))
    }

    pub(super) fn wait(&mut self, least: u64, most: u64) {
        let time = self.time(least, most);
        self.at += time;
    }

    pub(super) fn push(&mut self, what: Happening) {
        self.steps.push(PlanStep { at: self.at, what });
    }

    pub(super) fn client(&mut self, name: u16, what: Change) {
        let kind = self.place.kind;
        self.push(Happening::Write(Write { kind, name, what }));
    }

    pub(super) fn own(&mut self, name: u16, own: Own) {
        self.own_later(name, own, 0);
    }

    /// The program writes after so many milliseconds.
    pub(super) fn own_later(&mut self, name: u16, own: Own, later: u32) {
        // The name is the remainder and the delay the quotient, as the trial's `Crew::command` takes them apart.
        self.command(Verb::Write(own), u32::from(name) + NAMES * later);
    }

    pub(super) fn command(&mut self, verb: Verb, number: u32) {
        let Subject { process, kind } = self.place;
        let what = Command { verb, kind, number };
        self.push(Happening::Command { process, what });
    }

    pub(super) fn now(&mut self, kind: FaultKind) {
        self.fault_for_all(kind, 0);
    }

    pub(super) fn fault_for_all(&mut self, kind: FaultKind, lasts: u64) {
        self.push(Happening::Fault(Fault {
            kind,
            process: None,
            resource: None,
            verb: None,
            times: u64::MAX,
            lasts: Duration::from_millis(lasts),
        }));
    }

    pub(super) fn fault(&mut self, kind: FaultKind, verb: Option<&'static str>, lasts: u64) {
        self.push(Happening::Fault(Fault {
            kind,
            process: Some(self.place.process),
            resource: Some(self.place.kind),
            verb,
            times: u64::MAX,
            lasts: Duration::from_millis(lasts),
        }));
    }
}
