//! Sequences of actions on one place.

use std::time::Duration;

use lariat_sim::internals::{Change, Fault, FaultKind, PlanStep, StepAction, Write};

use crate::plan::{Command, NAMES, OwnWrite, Verb};

/// A pattern of steps that reaches a rare state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
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
    /// Objects are fetched while reads are answered from an old state.
    Load,
    /// The process is asked to end while a start waits for its caches.
    ///
    /// Watches or answers go wrong meanwhile.
    EndWhileStarting,
    /// The process is asked to end while keys are due whose handlers write.
    ///
    /// Others change each object just before.
    EndWhileWriting,
}

/// The patterns that are drawn by chance; the end of a process has a chance of its own.
const PATTERNS: [Pattern; 14] = [
    Pattern::WriteWhileLoading,
    Pattern::WriteWhileLoading,
    Pattern::LeaveAndReturn,
    Pattern::LeaveAndReturn,
    Pattern::Restore,
    Pattern::Restore,
    Pattern::LateAnswer,
    Pattern::LateAnswer,
    Pattern::LateSubscriber,
    Pattern::Gap,
    Pattern::Quiet,
    Pattern::StopWithRetries,
    Pattern::Burst,
    Pattern::Load,
];

impl Pattern {
    pub(crate) fn any(random: &mut fastrand::Rng) -> Self {
        PATTERNS[random.usize(..PATTERNS.len())]
    }
}

/// The process and the kind of a sequence.
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
    /// The names of the kinds.
    kinds: &'a [&'a str],
    pub(super) steps: Vec<PlanStep>,
}

/// A handler of metadata or of content, without a limit and without resync.
// The bits are those that the trial's `TrialHandlers::register` reads.
const METADATA: u32 = 0x13;

pub(super) const CONTENT: u32 = 0x17;

impl<'a> Sequence<'a> {
    pub(crate) fn new(
        random: &'a mut fastrand::Rng,
        place: Subject,
        at: Duration,
        kinds: &'a [&'a str],
    ) -> Self {
        Self {
            random,
            place,
            at,
            kinds,
            steps: Vec::new(),
        }
    }

    /// Makes the steps; returns them with the time of the last.
    pub(crate) fn of(mut self, pattern: Pattern) -> (Vec<PlanStep>, Duration) {
        let name = self.random.u16(..4);
        self.prepare(name);
        match pattern {
            Pattern::WriteWhileLoading => self.write_while_loading(name),
            Pattern::LeaveAndReturn => self.leave_and_return(name),
            Pattern::Restore => self.restore(name),
            Pattern::LateAnswer => self.late_answer(name),
            Pattern::NotServed => self.not_served(),
            Pattern::LateSubscriber => self.late_subscriber(name),
            Pattern::Gap => self.gap(name),
            Pattern::Quiet => self.quiet(name),
            Pattern::StopWithRetries => self.stop_with_retries(),
            Pattern::Burst => self.burst(name),
            Pattern::Load => self.load(name),
            Pattern::EndWhileStarting => self.end_while_starting(),
            Pattern::EndWhileWriting => self.end_while_writing(),
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

    pub(super) fn any_write(&mut self) -> OwnWrite {
        match self.random.u8(..8) {
            0..3 => OwnWrite::Annotate,
            3 => OwnWrite::Update,
            4 => OwnWrite::Apply,
            5 => OwnWrite::Delete,
            6 => OwnWrite::Relabel(1),
            _ => OwnWrite::Create(true),
        }
    }

    pub(super) fn time(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.random.u64(least..=most))
    }

    pub(super) fn wait(&mut self, least: u64, most: u64) {
        let time = self.time(least, most);
        self.at += time;
    }

    pub(super) fn push(&mut self, what: StepAction) {
        self.steps.push(PlanStep { at: self.at, what });
    }

    pub(super) fn client(&mut self, name: u16, what: Change) {
        let kind = self.place.kind;
        self.push(StepAction::Write(Write { kind, name, what }));
    }

    pub(super) fn own(&mut self, name: u16, own: OwnWrite) {
        self.own_later(name, own, 0);
    }

    /// The program writes after so many milliseconds.
    pub(super) fn own_later(&mut self, name: u16, own: OwnWrite, later: u32) {
        // The name is the remainder and the delay the quotient, as the trial's `TrialHandlers::command` takes them
        // apart.
        self.command(Verb::Write(own), u32::from(name) + NAMES * later);
    }

    pub(super) fn command(&mut self, verb: Verb, number: u32) {
        let Subject { process, kind } = self.place;
        let what = Command { verb, kind, number }.carried(self.kinds);
        self.push(StepAction::Command { process, what });
    }

    pub(super) fn now(&mut self, kind: FaultKind) {
        self.fault_for_all(kind, 0);
    }

    pub(super) fn fault_for_all(&mut self, kind: FaultKind, lasts: u64) {
        self.push(StepAction::Fault(Fault {
            kind,
            process: None,
            resource: None,
            verb: None,
            times: u64::MAX,
            lasts: Duration::from_millis(lasts),
        }));
    }

    pub(super) fn fault(&mut self, kind: FaultKind, verb: Option<&'static str>, lasts: u64) {
        self.push(StepAction::Fault(Fault {
            kind,
            process: Some(self.place.process),
            resource: Some(self.place.kind),
            verb,
            times: u64::MAX,
            lasts: Duration::from_millis(lasts),
        }));
    }
}
