//! Cells of Events, whose members the newer group calls otherwise than the core group.

use super::row::UNKNOWN;
use crate::printers::source::Row;

/// Returns how long ago the last of the Events was that this one stands for.
pub(super) fn last_seen(event: Row<'_>) -> String {
    if event.has("/series") {
        return event.since("/series/lastObservedTime");
    }
    let last = ["/lastTimestamp", "/deprecatedLastTimestamp"];
    since_first_of(event, &last).unwrap_or_else(|| first_seen(event))
}

/// Returns how long ago the first of them was.
pub(super) fn first_seen(event: Row<'_>) -> String {
    let first = ["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"];
    since_first_of(event, &first).unwrap_or_else(|| UNKNOWN.to_owned())
}

/// Returns how long ago the first of some times was that there is.
fn since_first_of(event: Row<'_>, times: &[&str]) -> Option<String> {
    let mut times = times.iter().filter(|time| event.has(time));
    times.next().map(|time| event.since(time))
}

/// Returns how many Events this one stands for.
pub(super) fn count(event: Row<'_>) -> i64 {
    if event.has("/series") {
        return event.number("/series/count");
    }
    // Each group has one of these members. As printEvent: what happened once may have no count.
    let counts = ["/count", "/deprecatedCount"].map(|count| event.number(count));
    match counts.into_iter().sum::<i64>() {
        0 => 1,
        count => count,
    }
}

/// Returns kind and name of the object that an Event is about.
pub(super) fn object(object: Row<'_>) -> String {
    let kind = object.text("/kind").to_lowercase();
    match object.text("/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

/// Returns the component that reported an Event, and its host.
pub(super) fn source(event: Row<'_>) -> String {
    let first_of = |members: &[&str]| {
        let mut texts = members.iter().map(|member| event.text(member));
        texts.find(|text| !text.is_empty()).unwrap_or_default()
    };
    // As formatEventSource, which chooses the one whatever the other is.
    let component = first_of(&[
        "/source/component",
        "/deprecatedSource/component",
        "/reportingComponent",
        "/reportingController",
    ]);
    let host = first_of(&[
        "/source/host",
        "/deprecatedSource/host",
        "/reportingInstance",
    ]);
    match host {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    }
}
