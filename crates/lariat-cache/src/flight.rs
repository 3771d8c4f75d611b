//! Flight recording: the events of a kind for the recorder.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use lariat_core::{Gvk, ObjectMetadata, Uid};
use lariat_flight::{ChangeType, LineType, Record, Recorder, Reflected, Stored, Version};

use crate::store::Change;

/// Records the events of one kind.
#[derive(Debug, Clone)]
pub(crate) struct KindFlight {
    recorder: Recorder,
    kind: Arc<str>,
}

/// Records the steps of one reflector of a kind.
#[derive(Debug, Clone)]
pub(crate) struct ReflectorFlight {
    of: KindFlight,
    number: u32,
}

impl KindFlight {
    pub(crate) fn new(recorder: Recorder, gvk: &Gvk) -> Self {
        let kind = gvk.to_string().into();
        Self { recorder, kind }
    }

    pub(crate) fn store(&self, what: Stored<'_>) {
        let kind = &self.kind;
        self.recorder.record(&Record::Store { kind, what });
    }

    pub(crate) fn changes(&self, changes: &[Change]) {
        for change in changes {
            let (change, object) = match change {
                Change::Added {
                    object,
                    initial: true,
                } => (ChangeType::Found, object),
                Change::Added { object, .. } => (ChangeType::Added, object),
                Change::Updated { new, .. } => (ChangeType::Updated, new),
                Change::Deleted { last } => (ChangeType::Deleted, last),
                Change::Resynced { object } => (ChangeType::Resynced, object),
            };
            self.store(Stored::Changed {
                change,
                key: object.key().as_str(),
                version: object.version().into(),
            });
        }
    }

    pub(crate) fn reflector(&self) -> ReflectorFlight {
        ReflectorFlight {
            of: self.clone(),
            number: self.recorder.number(),
        }
    }
}

impl ReflectorFlight {
    pub(crate) fn record(&self, what: Reflected<'_>) {
        self.of.recorder.record(&Record::Reflector {
            kind: &self.of.kind,
            reflector: self.number,
            what,
        });
    }

    pub(crate) fn line(&self, line: LineType, object: &ObjectMetadata) {
        self.record(Reflected::Line {
            line,
            key: object.key().as_str(),
            uid: short(object.uid()),
            version: Version::from(object.version()),
        });
    }
}

/// Hashes a uid to a number that is the same in every process.
fn short(uid: &Uid) -> u32 {
    // Unlike `RandomState`, `new` has fixed keys.
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    hasher.finish() as u32
}
