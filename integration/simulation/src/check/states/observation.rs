//! The state of an object that an event shows to a process.

use std::sync::Arc;

use lariat_cache::Change;
use lariat_core::{Gvk, ObjectKey};
use lariat_sim::internals::{Event, IncarnationId, Observed};

use crate::check::wanted::Held;
use crate::oracle::Past;

/// One way in which a process is shown states of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::check) enum Channel {
    Handler(Arc<str>),
    Reads,
    Subscriber(u64),
}

/// One way in which an incarnation of a process is shown states of a kind.
pub(super) type Way = (IncarnationId, Gvk, Channel);

/// The state of an object that an event shows.
pub(in crate::check) struct Observation<'a> {
    pub(in crate::check) incarnation: &'a IncarnationId,
    pub(in crate::check) kind: &'a Gvk,
    pub(in crate::check) key: &'a ObjectKey,
    pub(in crate::check) channel: Channel,
    pub(in crate::check) object: Option<Observed>,
}

impl<'a> Observation<'a> {
    pub(in crate::check) fn of(event: &'a Event) -> Option<Self> {
        Some(match event {
            Event::Began {
                handler,
                key,
                object,
                ..
            } => Self {
                incarnation: &handler.incarnation,
                kind: &handler.kind,
                key,
                channel: Channel::Handler(Arc::clone(&handler.name)),
                object: object.clone(),
            },
            Event::Read {
                incarnation,
                kind,
                key,
                object,
            } => Self {
                incarnation,
                kind,
                key,
                channel: Channel::Reads,
                object: object.clone(),
            },
            Event::Published { subscriber, change } => {
                let object = match change {
                    Change::Added { object, .. } | Change::Resynced { object } => Some(object),
                    Change::Updated { new, .. } => Some(new),
                    // A deletion shows that there is no object; the last state that comes with it is past.
                    _ => None,
                };
                Self {
                    incarnation: &subscriber.incarnation,
                    kind: &subscriber.kind,
                    key: change.key(),
                    channel: Channel::Subscriber(subscriber.number),
                    object: object.map(Observed::new),
                }
            }
            _ => return None,
        })
    }

    pub(super) fn way(&self) -> Way {
        (
            self.incarnation.clone(),
            self.kind.clone(),
            self.channel.clone(),
        )
    }

    /// Returns whether a state is the one shown.
    ///
    /// If no object is shown, it may also be one that was not always selected.
    pub(in crate::check) fn is(&self, past: &Past, selected: &Held<'_>) -> bool {
        match (&self.object, &past.object) {
            (Some(shown), _) => past.is(&shown.uid, shown.version),
            (None, Some(object)) => !selected.always(self.key, object),
            (None, None) => true,
        }
    }

    pub(in crate::check) fn says(&self) -> String {
        let channel = match &self.channel {
            Channel::Handler(name) => format!("handler {name} was called for"),
            Channel::Reads => "a read found".to_owned(),
            Channel::Subscriber(number) => format!("subscriber {number} was given"),
        };
        let state = match &self.object {
            Some(shown) => format!("version {} of", shown.version),
            None => "no".to_owned(),
        };
        format!("{channel} {state} {} {}", self.kind.kind(), self.key)
    }
}

/// Returns the place of the first state that is not older than one with a number.
pub(in crate::check) fn since(states: &[Past], number: u64) -> usize {
    states.partition_point(|past| past.number < number)
}
