//! Changes without what came and went between their beginning and their end.

use std::collections::HashMap;
use std::sync::Arc;

use crate::store::{Event, EventType};

/// Returns the net change of each object, in the order of the last changes.
///
/// Objects of the same name with different uids are different objects.
pub(super) fn condensed(events: &[Arc<Event>]) -> Vec<Event> {
    let mut first: HashMap<&str, &Event> = HashMap::new();
    let mut last: HashMap<&str, &Event> = HashMap::new();
    for event in events {
        first.entry(event.object.uid()).or_insert(event);
        last.insert(event.object.uid(), event);
    }
    let net = |(uid, last): (&str, &Event)| {
        let before = &first.get(uid)?.previous;
        let event = match (before, last.event) {
            // The client never knew of it.
            (None, EventType::Deleted) => return None,
            (None, _) => EventType::Added,
            (Some(_), EventType::Deleted) => EventType::Deleted,
            (Some(_), _) => EventType::Modified,
        };
        Some(Event {
            revision: last.revision,
            event,
            object: Arc::clone(&last.object),
            previous: before.clone(),
        })
    };
    let mut net: Vec<Event> = last.into_iter().filter_map(net).collect();
    // The map has lost the order of the changes.
    net.sort_unstable_by_key(|event| event.revision);
    net
}
