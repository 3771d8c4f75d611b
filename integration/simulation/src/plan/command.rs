//! What a plan asks of a program of the trial.

use std::time::Duration;

use lariat_sim::Process;
use lariat_sim::internals::{Opaque, ProcessExt, Stamp};

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
    /// Waits for the next thing the plan asks of a program.
    pub(crate) async fn next(process: &Process) -> Option<Self> {
        process.command().await?.get().copied()
    }

    /// Returns the command as the steps of a plan carry it.
    pub(crate) fn carried(self, kinds: &[&str]) -> Opaque {
        Opaque::new(self, &self.text(kinds))
    }

    fn text(self, kinds: &[&str]) -> String {
        let Self { verb, number, .. } = self;
        let kind = kinds.get(self.kind).copied().unwrap_or("no kind");
        match verb {
            Verb::Stop | Verb::Start | Verb::AbandonStop => format!("{verb:?}"),
            Verb::Leave | Verb::Retire | Verb::Pause | Verb::Unsubscribe | Verb::Misbehave => {
                format!("{verb:?} ({number})")
            }
            Verb::Need | Verb::Subscribe | Verb::Dismiss | Verb::Relist | Verb::LoadAll => {
                format!("{verb:?} {kind}")
            }
            Verb::Write(own) => format!("own write: {kind} o{}: {own:?}", number % NAMES),
            Verb::Read | Verb::Load | Verb::Enqueue => {
                format!("{verb:?} {kind} o{}", number % NAMES)
            }
            Verb::EnqueueLater => {
                let (name, delay) = (number % NAMES, self.delay());
                format!("Enqueue {kind} o{name} in {}", Stamp(delay))
            }
            Verb::Select => {
                let (labels, fields) = (self.labels(), self.fields());
                format!("Select {kind} {labels:?} {fields:?}")
            }
            Verb::Register => format!("Register {kind} ({number})"),
        }
    }

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
