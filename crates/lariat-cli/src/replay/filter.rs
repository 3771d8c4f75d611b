//! Which entries are shown.

use std::collections::HashMap;
use std::time::SystemTime;

use lariat_flight::{
    Controlled, EntryBody, Lanes, Queued, Record, Recording, RecordingEntry, Reflected, Stored,
};

use super::options::Options;
use super::when::When;

/// Which entries are shown, and what is known about lanes.
#[derive(Debug)]
pub(super) struct Filter<'a> {
    options: &'a Options,
    ended: SystemTime,
    /// Names of handlers by session and lane; a process never reuses a lane.
    handlers: HashMap<(u32, u32), &'a str>,
}

/// The lane that means all of them.
const ALL_LANES: u32 = u32::MAX;

impl<'a> Filter<'a> {
    pub(super) fn new(options: &'a Options, recording: &'a Recording) -> Self {
        let mut handlers = HashMap::new();
        let mut ended = SystemTime::UNIX_EPOCH;
        for entry in recording.entries() {
            ended = ended.max(entry.session.began + entry.at);
            if let EntryBody::Record(Record::Controller {
                what:
                    Controlled::Registered { lane, handler }
                    // The ring may not have the registration any more.
                    | Controlled::CallBegan { lane, handler, .. },
                ..
            }) = entry.body
            {
                handlers.insert((entry.session.number, lane), handler);
            }
        }
        Self {
            options,
            ended,
            handlers,
        }
    }

    pub(super) fn wants(&self, entry: &RecordingEntry<'_>) -> bool {
        let EntryBody::Record(record) = &entry.body else {
            // What is lost or damaged may be about anything, so it is shown whatever the filter is.
            return self.wants_time(entry);
        };
        let options = self.options;
        self.wants_time(entry)
            && options
                .kind
                .as_ref()
                .is_none_or(|kind| kind_of(record).is_some_and(|of| is_kind(kind, of)))
            && options
                .key
                .as_ref()
                .is_none_or(|key| key_of(record).is_some_and(|of| is_key(key, of)))
            && options
                .handler
                .as_ref()
                .is_none_or(|name| self.concerns(entry.session.number, record, name))
    }

    /// Returns whether entries of a kind are shown, as far as the kind decides.
    pub(super) fn wants_kind(&self, kind: &str) -> bool {
        let wanted = self.options.kind.as_ref();
        wanted.is_none_or(|wanted| is_kind(wanted, kind))
    }

    fn wants_time(&self, entry: &RecordingEntry<'_>) -> bool {
        let began = entry.session.began;
        let at = began + entry.at;
        let resolve = |when: When| when.resolve(began, self.ended);
        self.options.since.is_none_or(|since| at >= resolve(since))
            && self.options.until.is_none_or(|until| at <= resolve(until))
    }

    /// Returns whether a record is about a handler, or about a key that is due for it.
    fn concerns(&self, session: u32, record: &Record<'_>, name: &str) -> bool {
        let is_due = |lanes: &Lanes| {
            let mut lanes = lanes.iter();
            lanes.any(|lane| *lane == ALL_LANES || self.handler(session, *lane) == Some(name))
        };
        match record {
            Record::Controller { what, .. } => match what {
                Controlled::Registered { handler, .. }
                | Controlled::Deregistered { handler, .. }
                | Controlled::CallBegan { handler, .. }
                | Controlled::CallEnded { handler, .. } => *handler == name,
                Controlled::Started { .. } | Controlled::Stopped {} => false,
            },
            Record::Queue { what, .. } => match what {
                Queued::Added { lanes, .. } | Queued::Dequeued { lanes, .. } => is_due(lanes),
                Queued::Finished { verdicts, .. } => {
                    is_due(&verdicts.iter().map(|verdict| verdict.lane).collect())
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns the handler of a lane, if its registration is in the recording.
    pub(super) fn handler(&self, session: u32, lane: u32) -> Option<&'a str> {
        self.handlers.get(&(session, lane)).copied()
    }
}

/// Returns the kind a record is about.
pub(super) fn kind_of<'a>(record: &Record<'a>) -> Option<&'a str> {
    match record {
        Record::Reflector { kind, .. }
        | Record::Store { kind, .. }
        | Record::Queue { kind, .. }
        | Record::Controller { kind, .. } => Some(kind),
        Record::Factory { .. } => None,
    }
}

/// Returns the object a record is about.
pub(super) fn key_of<'a>(record: &Record<'a>) -> Option<&'a str> {
    match record {
        Record::Reflector {
            what: Reflected::Line { key, .. },
            ..
        } => Some(key),
        Record::Store { what, .. } => match what {
            Stored::Changed { key, .. } | Stored::Wrote { key, .. } | Stored::Removed { key } => {
                Some(key)
            }
        },
        Record::Queue {
            what:
                Queued::Added { key, .. }
                | Queued::Dequeued { key, .. }
                | Queued::Finished { key, .. }
                | Queued::GivenBack { key }
                | Queued::Forgot { key, .. },
            ..
        }
        | Record::Controller {
            what: Controlled::CallBegan { key, .. } | Controlled::CallEnded { key, .. },
            ..
        } => Some(key),
        _ => None,
    }
}

/// Returns the kind without its group and version.
pub(super) fn short(kind: &str) -> &str {
    // A recording writes kinds as `apps/v1 Deployment`.
    kind.rsplit(' ').next().unwrap_or(kind)
}

/// Returns whether a kind matches the filter, as `ConfigMap` or as `v1 ConfigMap`.
fn is_kind(wanted: &str, kind: &str) -> bool {
    wanted.eq_ignore_ascii_case(short(kind)) || wanted == kind
}

/// Returns whether a key matches the filter, or is in the namespace `NAMESPACE/`.
fn is_key(wanted: &str, key: &str) -> bool {
    wanted == key || (wanted.ends_with('/') && key.starts_with(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_short_and_full_names_and_keys_by_namespace() {
        assert!(is_kind("configmap", "v1 ConfigMap"));
        assert!(is_kind("apps/v1 Deployment", "apps/v1 Deployment"));
        assert!(!is_kind("Map", "v1 ConfigMap"));
        assert!(is_key("shop/web-0", "shop/web-0"));
        assert!(is_key("shop/", "shop/web-0"));
        assert!(!is_key("shop", "shop/web-0"));
    }
}
