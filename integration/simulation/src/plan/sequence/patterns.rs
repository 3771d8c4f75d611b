//! The steps of each pattern.

use lariat_sim::internals::{Change, Fault, FaultKind, ProcessFault, StepAction};

use super::Sequence;
use super::sequence::CONTENT;
use crate::plan::{OwnWrite, Verb};

impl Sequence<'_> {
    pub(super) fn write_while_loading(&mut self, name: u16) {
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
                // The low bits choose labels, and 0x100 a namespace; each change of them has the kind read again.
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

    pub(super) fn leave_and_return(&mut self, name: u16) {
        self.command(Verb::Select, 1);
        self.client(name, Change::Relabel(1));
        self.wait(1000, 3000);
        self.blind();
        // The label is removed while the watch is away, so only the answer of the write shows that the object left.
        self.own(name, OwnWrite::Relabel(0));
        self.wait(50, 600);
        if self.random.u8(..3) == 0 {
            self.client(name, Change::Relabel(1));
        } else {
            self.own(name, OwnWrite::Relabel(1));
        }
        self.wait(100, 1500);
        match self.random.u8(..4) {
            0 => self.command(Verb::Select, 0x101),
            1 => self.command(Verb::Need, 0),
            _ => self.now(FaultKind::Compact),
        }
    }

    pub(super) fn restore(&mut self, name: u16) {
        self.now(FaultKind::Backup);
        self.wait(100, 2000);
        // A history without a change since the backup is taken for the same.
        self.client(name + 2, Change::Put);
        self.own(name, OwnWrite::Delete);
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

    pub(super) fn late_answer(&mut self, name: u16) {
        self.client(name, Change::Delete);
        self.wait(1000, 2000);
        let delay = self.time(4_000, 15_000);
        self.fault(FaultKind::DelayReply(delay), Some("create"), 2_000);
        self.blind();
        let label = self.random.bool();
        self.own(name, OwnWrite::Create(label));
        self.wait(200, 900);
        self.client(name, Change::Delete);
        self.wait(50, 500);
        match self.random.u8(..3) {
            0 => self.command(Verb::Select, 0x100),
            _ => self.now(FaultKind::Compact),
        }
        // The late answer has to arrive within the sequence.
        self.wait(15_000, 20_000);
    }

    /// Two outages of a resource, of seconds or of minutes, with a stop in the first and a start in the second one.
    ///
    /// Its objects stay on the server, so none counts as deleted. Between the outages it is served for long enough that
    /// a running factory notices.
    pub(super) fn not_served(&mut self) {
        // Handlers wait for the caches of a start, and see nothing of what a subscriber is given before.
        self.command(Verb::Subscribe, 0);
        let mut lasts = || {
            let (least, most) = [(12_000, 22_000), (60_000, 180_000)][self.random.usize(..2)];
            self.random.u64(least..most)
        };
        let (first, second) = (lasts(), lasts());
        let began = self.at;
        self.fault(FaultKind::NotServed, None, first);
        self.wait(4_000, first - 2_000);
        if self.random.bool() {
            self.command(Verb::Stop, 0);
        }
        self.at = began + self.time(first + 11_000, first + 18_000);
        self.fault(FaultKind::NotServed, None, second);
        self.wait(100, 2_000);
        self.command(Verb::Start, 0);
        self.wait(second + 5_000, second + 10_000);
    }

    pub(super) fn late_subscriber(&mut self, name: u16) {
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
            // Of the 12 names that a run has by default.
            self.client((name + number) % 12, change);
            self.wait(1, 30);
        }
    }

    pub(super) fn gap(&mut self, name: u16) {
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

    pub(super) fn quiet(&mut self, name: u16) {
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

    pub(super) fn stop_with_retries(&mut self) {
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
        // Only the kept retries are to be seen after the start, not new failures.
        self.command(Verb::Misbehave, 0);
        self.command(Verb::Start, 0);
        self.wait(1000, 5000);
    }

    pub(super) fn burst(&mut self, name: u16) {
        for _ in 0..self.random.u16(3..12) {
            self.client(name, Change::Put);
            if self.random.u8(..4) == 0 {
                self.command(Verb::Enqueue, name.into());
            }
            self.wait(1, 200);
        }
    }

    /// Fetches objects whose metadata alone may be cached, while a server that is behind answers.
    ///
    /// It is behind for reads at version zero only, which a consistent read is not.
    pub(super) fn load(&mut self, name: u16) {
        let names = 0..self.random.u16(3..12);
        for name in names.clone() {
            self.client(name, Change::Put);
        }
        self.wait(500, 2_000);
        let lasts = self.random.u64(3_000..10_000);
        self.fault(FaultKind::StaleRead, None, lasts);
        self.wait(1, 50);
        for name in names {
            self.client(name, Change::Put);
        }
        for verb in [Verb::LoadAll, Verb::Load] {
            self.wait(50, 1_000);
            self.command(verb, name.into());
            self.wait(0, 100);
            self.client(name, Change::Put);
        }
    }

    /// Ends a program while it starts.
    ///
    /// A program that stops ends its watches and lists at once. One that is asked to end while it starts goes on with
    /// both until the start is over.
    pub(super) fn end_while_starting(&mut self) {
        self.command(Verb::Stop, 0);
        self.wait(100, 1500);
        for verb in ["list", "watch"] {
            let delay = self.time(4_000, 9_000);
            self.fault(FaultKind::Delay(delay), Some(verb), 12_000);
        }
        self.command(Verb::Start, 0);
        self.wait(500, 2_000);
        let process = self.place.process;
        let down = self.time(500, 4_000);
        let what = ProcessFault::Restart(down);
        self.push(StepAction::Process { process, what });
        self.wait(1, 50);
        let kind = match self.random.u8(..4) {
            0 => FaultKind::HangWatch(0),
            1 => FaultKind::CutBody(self.random.usize(..2000)),
            2 => FaultKind::SkipVersions(self.random.u64(1..5000)),
            _ => FaultKind::SkipStates,
        };
        let lasts = self.time(3_000, 6_000);
        self.push(StepAction::Fault(Fault {
            kind,
            process: Some(process),
            resource: None,
            verb: None,
            times: u64::MAX,
            lasts,
        }));
        self.now(FaultKind::CutWatches);
        self.wait(6_000, 8_000);
    }

    /// Ends a program while handlers write, which have a conflict each.
    ///
    /// A stop drains the keys that are due when it begins, and nothing else. So many change just before.
    pub(super) fn end_while_writing(&mut self) {
        for name in 0..12 {
            self.client(name, Change::Put);
        }
        let process = self.place.process;
        let lasts = self.time(8_000, 20_000);
        self.push(StepAction::Fault(Fault {
            kind: FaultKind::Conflict,
            process: Some(process),
            resource: None,
            verb: None,
            times: u64::MAX,
            lasts,
        }));
        // The changes are under way; calls for the first of them have begun.
        self.wait(50, 600);
        let down = self.time(500, 4_000);
        let what = ProcessFault::Restart(down);
        self.push(StepAction::Process { process, what });
        self.wait(6_000, 8_000);
    }
}
