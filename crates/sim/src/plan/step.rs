//! Steps of a plan, and what happens in them.
#![expect(missing_docs, reason = "only the hidden `internals` show it")]

use std::time::Duration;

use crate::opaque::Opaque;

/// One thing that happens at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanStep {
    pub at: Duration,
    pub what: StepAction,
}

/// The action of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepAction {
    /// A foreign client writes.
    Write(Write),
    /// Something goes wrong between the processes and the cluster, or in it.
    Fault(Fault),
    /// Something happens to a process.
    Process { process: usize, what: ProcessFault },
    /// A process is asked to do something.
    Command { process: usize, what: Opaque },
}

/// A write of a foreign client to one object of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The place of the kind in the list of kinds.
    pub kind: usize,
    pub name: u16,
    pub what: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Creates it, or changes its content if it is there.
    Put,
    /// Sets the label that selections look at.
    Relabel(u8),
    Delete,
    /// Deletes it and creates it again at once.
    Recreate,
    /// Changes it so many times in a row.
    Burst(u8),
    /// Deletes all objects of the kind.
    DeleteAll,
    /// Removes the kind's CRD.
    Undefine,
    /// Defines the kind; the number says with which version and scope.
    Define(u8),
    /// Serves the kind's objects under another version alone, for so many seconds.
    Unserve(u8),
}

/// A fault that lasts for some time.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub kind: FaultKind,
    /// The process it is for; none for all.
    pub process: Option<usize>,
    /// The resource it is for, as the place of a kind; none for all requests.
    pub resource: Option<usize>,
    pub verb: Option<&'static str>,
    pub times: u64,
    pub lasts: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FaultKind {
    CutWatches,
    EndWatches,
    CutWatchAfter(usize),
    HangWatch(usize),
    CutBody(usize),
    /// 410 in the stream of a watch, or for a page that continues.
    Expire,
    /// 410 as the status of the answer.
    Gone,
    Compact,
    TooManyRequests,
    ServerError(u16),
    Delay(Duration),
    DelayReply(Duration),
    /// The server refuses requests beyond so many at a time.
    MaxInflight(usize),
    Bandwidth(u64),
    NoAnswer,
    NoReply,
    Disconnect,
    LoseReply,
    StaleRead,
    Conflict,
    SkipVersions(u64),
    SkipStates,
    RefuseWatchList,
    /// The server is away for `lasts`.
    Away,
    /// Packets are dropped for `lasts`.
    Blackhole,
    /// Keeps a backup for a later `Restore`.
    Backup,
    /// The server is set back to the last backup, and away for `lasts` meanwhile.
    Restore,
    /// So many requests of a process at a time for `lasts`.
    Streams(usize),
    /// Messages take up to so long for `lasts`.
    Latency(Duration),
    /// A foreign client deletes a lease, chosen by its place in their list.
    DeleteLease(usize),
    /// Watches are cut, and all requests for the resource answered with 404: it is not served, its objects stay.
    NotServed,
}

/// A fault of a process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ProcessFault {
    /// It is killed, and started again after a time.
    Kill(Duration),
    /// It ends as asked, and is started again after a time.
    Restart(Duration),
    /// It does not run for a time.
    Pause(Duration),
    /// Its wall clock jumps by so many seconds.
    Clock(i64),
}
