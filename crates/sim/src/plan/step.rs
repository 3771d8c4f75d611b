//! Steps of a plan, and what happens in them.

use std::time::Duration;

/// One thing that happens at a time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlanStep {
    pub(crate) at: Duration,
    pub(crate) what: StepAction,
}

/// The action of a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StepAction {
    /// A foreign client writes.
    Write(Write),
    /// Something goes wrong between the processes and the cluster, or in it.
    Fault(Fault),
    /// Something happens to a process.
    Process { process: usize, what: ProcessFault },
    /// A process is asked to do something.
    Command { process: usize, what: Command },
}

/// A write of a foreign client to one object of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Write {
    /// The place of the kind in the list of kinds.
    pub(crate) kind: usize,
    pub(crate) name: u16,
    pub(crate) what: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
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
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    /// The process it is for; none for all.
    pub(crate) process: Option<usize>,
    /// The resource it is for, as the place of a kind; none for all requests.
    pub(crate) resource: Option<usize>,
    pub(crate) verb: Option<&'static str>,
    pub(crate) times: u64,
    pub(crate) lasts: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FaultKind {
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
pub(crate) enum ProcessFault {
    /// It is killed, and started again after a time.
    Kill(Duration),
    /// It ends as asked, and is started again after a time.
    Restart(Duration),
    /// It does not run for a time.
    Pause(Duration),
    /// Its wall clock jumps by so many seconds.
    Clock(i64),
}

/// A command to a program, which gives the numbers their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) verb: Verb,
    pub(crate) kind: usize,
    pub(crate) number: u32,
}

/// The number of different object names in commands.
// Few, so that commands, handlers and foreign clients meet at the same objects.
pub(crate) const NAMES: u32 = 12;

impl Command {
    /// Returns the name of the object it speaks of.
    pub(crate) fn name(self) -> String {
        format!("o{}", self.number % NAMES)
    }

    /// Returns after how long something is to happen.
    pub(crate) fn delay(self) -> Duration {
        Duration::from_millis(u64::from(self.number % 30_000))
    }

    /// Returns the fields of a selection.
    pub(crate) fn fields(self) -> &'static str {
        // Only the second kind, Secret, has a type, and only the API server evaluates it.
        let fields: &[&str] = if self.kind == 1 {
            &[
                "",
                "metadata.name!=o1",
                "metadata.namespace=default",
                "type=Opaque",
                "type!=Opaque",
            ]
        } else {
            &["", "metadata.name!=o1", "metadata.namespace=default"]
        };
        fields[(self.number >> 9) as usize % fields.len()]
    }

    /// Returns the labels of a selection.
    pub(crate) fn labels(self) -> &'static str {
        // `app!=x` also selects objects without the label.
        ["", "app=x", "app!=x", "app in (x,y)"][self.number as usize % 4]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Register,
    Leave,
    Enqueue,
    EnqueueLater,
    Select,
    Need,
    Subscribe,
    Unsubscribe,
    Stop,
    Start,
    Misbehave,
    /// All handlers of the kind leave.
    Dismiss,
    /// A handler leaves, and nothing waits for its running calls.
    Retire,
    /// A handler is paused for a while.
    Pause,
    /// A stop begins, and its future is dropped before it has ended.
    AbandonStop,
    /// The kind is listed again.
    Relist,
    /// The program fetches an object.
    Load,
    /// The program fetches all objects of the kind.
    LoadAll,
    /// The program itself writes, outside of its handlers.
    Write(OwnWrite),
    /// The program reads the cache, now and some times later.
    Read,
}

/// A write of a program to one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnWrite {
    Annotate,
    /// Sets the label that selections look at.
    Relabel(u8),
    Apply,
    Update,
    /// Creates it, with the label or without.
    Create(bool),
    Status,
    Delete,
    /// Deletes all objects of the kind that have the label.
    DeleteLabelled,
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
