//! Happenings that matter in a certain order and at certain distances, which chance alone seldom brings together.
//!
//! Each sequence is about one kind in one process. How long its parts take is up to the seed, so that it also misses its
//! point in ways worth trying.

use std::time::Duration;

use super::{Change, Command, Fault, FaultKind, Happening, NAMES, Own, Step, Verb, Write};

/// What a sequence is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Theme {
    /// The program writes while the kind is read again.
    WriteWhileLoading,
    /// A write of the program takes an object out of the selection, and another brings it back.
    LeaveAndReturn,
    /// The cluster is restored from a backup that does not have what the program wrote.
    Restore,
    /// The answer to a creation comes when the object is gone.
    LateAnswer,
    /// The resource is not served at a stop and at the next start.
    NotServed,
    /// Somebody subscribes while objects change.
    LateSubscriber,
    /// Objects are deleted while no watch is open.
    Gap,
    /// Something is delayed in a kind in which nothing else happens.
    Quiet,
    /// A stop while retries are due later.
    StopWithRetries,
    /// Objects change while handlers run for them.
    Burst,
}

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
    pub(super) fn any(random: &mut fastrand::Rng) -> Self {
        THEMES[random.usize(..THEMES.len())]
    }
}

/// What of the run a sequence is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) process: usize,
    pub(super) kind: usize,
}

/// A sequence that grows.
pub(super) struct Sequence<'a> {
    random: &'a mut fastrand::Rng,
    place: Place,
    at: Duration,
    steps: Vec<Step>,
}

/// A handler of metadata or of content, without a limit and without resync.
const METADATA: u32 = 0x13;
const CONTENT: u32 = 0x17;

impl<'a> Sequence<'a> {
    pub(super) fn new(random: &'a mut fastrand::Rng, place: Place, at: Duration) -> Self {
        Self {
            random,
            place,
            at,
            steps: Vec::new(),
        }
    }

    /// Makes the steps; returns them with the time of the last.
    pub(super) fn of(mut self, theme: Theme) -> (Vec<Step>, Duration) {
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

    fn write_while_loading(&mut self, name: u16) {
        for verb in ["list", "watch"] {
            let delay = self.time(300, 8_000);
            self.fault(FaultKind::Delay(delay), Some(verb), 2_000);
        }
        let write = self.any_write();
        match self.random.u8(..4) {
            0 => self.command(Verb::Need, 0),
            1 => {
                // A start waits for its caches, and commands for the start.
                self.command(Verb::Stop, 0);
                let later = self.random.u32(50..600);
                self.own_later(name, write, later);
                self.command(Verb::Start, 0);
            }
            _ => {
                let selection = [0, 0x100, 1, 3][self.random.usize(..4)];
                self.command(Verb::Select, selection);
            }
        }
        self.wait(20, 600);
        self.own(name, write);
        if self.random.bool() {
            let write = self.any_write();
            self.wait(0, 300);
            self.own(name + 1, write);
        }
        self.wait(0, 2000);
        self.command(Verb::Read, name.into());
    }

    fn leave_and_return(&mut self, name: u16) {
        self.command(Verb::Select, 1);
        self.client(name, Change::Relabel(1));
        self.wait(1000, 3000);
        self.blind();
        self.own(name, Own::Relabel(0));
        self.wait(50, 600);
        if self.random.u8(..3) == 0 {
            self.client(name, Change::Relabel(1));
        } else {
            self.own(name, Own::Relabel(1));
        }
        self.wait(100, 1500);
        match self.random.u8(..4) {
            0 => self.command(Verb::Select, 0x101),
            1 => self.command(Verb::Need, 0),
            _ => self.now(FaultKind::Compact),
        }
    }

    fn restore(&mut self, name: u16) {
        self.now(FaultKind::Backup);
        self.wait(100, 2000);
        // A history without a change since the backup is taken for the same.
        self.client(name + 2, Change::Put);
        self.own(name, Own::Delete);
        if self.random.bool() {
            let write = self.any_write();
            self.own(name + 1, write);
        }
        // Shorter and longer than what is remembered for a minute.
        let (least, most) = [(200, 20_000), (61_000, 90_000)][self.random.usize(..2)];
        self.wait(least, most);
        let away = self.random.u64(200..4000);
        self.fault_for_all(FaultKind::Restore, away);
    }

    fn late_answer(&mut self, name: u16) {
        self.client(name, Change::Delete);
        self.wait(1000, 2000);
        let delay = self.time(4_000, 15_000);
        self.fault(FaultKind::DelayReply(delay), Some("create"), 2_000);
        self.blind();
        let label = self.random.bool();
        self.own(name, Own::Create(label));
        self.wait(200, 900);
        self.client(name, Change::Delete);
        self.wait(50, 500);
        match self.random.u8(..3) {
            0 => self.command(Verb::Select, 0x100),
            _ => self.now(FaultKind::Compact),
        }
        self.wait(15_000, 20_000);
    }

    /// Neither outage is as long as that after which objects count as gone, and between them the resource is served for
    /// long enough that a factory that runs notices.
    fn not_served(&mut self) {
        // Handlers wait for the caches of a start, and see nothing of what a subscriber is given before.
        self.command(Verb::Subscribe, 0);
        let first = self.random.u64(12_000..22_000);
        let began = self.at;
        self.fault(FaultKind::NotServed, None, first);
        self.wait(4_000, first - 2_000);
        self.command(Verb::Stop, 0);
        self.at = began + self.time(33_000, 40_000);
        let second = self.random.u64(6_000..20_000);
        self.fault(FaultKind::NotServed, None, second);
        self.wait(100, 2_000);
        self.command(Verb::Start, 0);
        self.wait(25_000, 30_000);
    }

    fn late_subscriber(&mut self, name: u16) {
        let again = self.random.bool();
        if again {
            self.command(Verb::Dismiss, 0);
            self.wait(50, 900);
        }
        let at = self.random.u16(..6);
        for number in 0..6 {
            if number == at {
                if again {
                    self.command(Verb::Register, CONTENT);
                } else {
                    self.command(Verb::Subscribe, 0);
                }
            }
            let change = [Change::Put, Change::Put, Change::Recreate][self.random.usize(..3)];
            self.client((name + number) % 12, change);
            self.wait(1, 30);
        }
    }

    fn gap(&mut self, name: u16) {
        match self.random.u8(..3) {
            0 => {
                self.command(Verb::Stop, 0);
                self.wait(100, 2000);
                self.client(name, Change::Delete);
                self.wait(100, 2000);
                self.command(Verb::Start, 0);
            }
            _ => {
                self.blind();
                self.client(name, Change::Delete);
                self.wait(50, 1000);
                self.now(FaultKind::Compact);
            }
        }
    }

    fn quiet(&mut self, name: u16) {
        self.wait(2_000, 20_000);
        for name in 0..self.random.u16(1..4) {
            let delay = self.random.u32(500..20_000);
            // The number is both the name and the delay.
            self.command(Verb::EnqueueLater, delay);
            self.wait(0, 3_000);
            if self.random.u8(..3) == 0 {
                self.client(name, Change::Put);
            }
        }
        self.wait(20_000, 30_000);
        self.command(Verb::Read, name.into());
    }

    fn stop_with_retries(&mut self) {
        let bad = self.random.u32(100..400);
        self.command(Verb::Misbehave, bad);
        for _ in 0..self.random.u16(3..9) {
            let name = self.random.u16(..6);
            self.client(name, Change::Put);
            self.wait(0, 400);
        }
        self.wait(0, 1500);
        self.command(Verb::Stop, 0);
        self.wait(100, 3000);
        self.command(Verb::Misbehave, 0);
        self.command(Verb::Start, 0);
        self.wait(1000, 5000);
    }

    fn burst(&mut self, name: u16) {
        for _ in 0..self.random.u16(3..12) {
            self.client(name, Change::Put);
            if self.random.u8(..4) == 0 {
                self.command(Verb::Enqueue, name.into());
            }
            self.wait(1, 200);
        }
    }

    /// Cuts the watch, and lets the next one wait, so that what happens now is not seen.
    fn blind(&mut self) {
        let delay = self.time(2_500, 6_000);
        self.fault(FaultKind::Delay(delay), Some("watch"), 2_500);
        self.now(FaultKind::CutWatches);
        self.wait(50, 300);
    }

    fn any_write(&mut self) -> Own {
        match self.random.u8(..8) {
            0..3 => Own::Annotate,
            3 => Own::Update,
            4 => Own::Apply,
            5 => Own::Delete,
            6 => Own::Relabel(1),
            _ => Own::Create(true),
        }
    }

    fn time(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.random.u64(least..=most))
    }

    fn wait(&mut self, least: u64, most: u64) {
        let time = self.time(least, most);
        self.at += time;
    }

    fn push(&mut self, what: Happening) {
        self.steps.push(Step { at: self.at, what });
    }

    fn client(&mut self, name: u16, what: Change) {
        let kind = self.place.kind;
        self.push(Happening::Write(Write { kind, name, what }));
    }

    fn own(&mut self, name: u16, own: Own) {
        self.own_later(name, own, 0);
    }

    /// The program writes after so many milliseconds.
    fn own_later(&mut self, name: u16, own: Own, later: u32) {
        self.command(Verb::Write(own), u32::from(name) + NAMES * later);
    }

    fn command(&mut self, verb: Verb, number: u32) {
        let Place { process, kind } = self.place;
        let what = Command { verb, kind, number };
        self.push(Happening::Command { process, what });
    }

    fn now(&mut self, kind: FaultKind) {
        self.fault_for_all(kind, 0);
    }

    fn fault_for_all(&mut self, kind: FaultKind, lasts: u64) {
        self.push(Happening::Fault(Fault {
            kind,
            process: None,
            resource: None,
            verb: None,
            times: u64::MAX,
            lasts: Duration::from_millis(lasts),
        }));
    }

    fn fault(&mut self, kind: FaultKind, verb: Option<&'static str>, lasts: u64) {
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
