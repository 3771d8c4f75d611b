//! The checker of Kubernetes Events.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use lariat_cluster::{Commit, StoredObject};
use lariat_core::Gvk;
use lariat_sim::internals::{Event, IncarnationId, Moment, Rest};
use serde_json::Value;

use crate::check::operator::Operators;
use crate::check::{Check, Findings};
use crate::operator_action::OperatorAction;
use crate::oracle::Oracle;
use crate::shop::{self, OPERATOR, SETTLED};

/// The limit of Events about one object: `EventOptions::burst` and `EventOptions::refill`.
// As client-go's `defaultSpamBurst` and `defaultSpamQPS` in `tools/record`.
const BURST: u64 = 25;

const REFILL: Duration = Duration::from_secs(300);

/// After how long without an event a series is over (`EventApi::Events`).
// As client-go's `finishTime` in `tools/events`.
const SERIES: Duration = Duration::from_secs(360);

/// Events are counted, not repeated, and are there if they must be.
///
/// A count never goes down, an Event is not created twice for the same thing, and there are no more about an object
/// than the limit allows.
///
/// `EventApi::Core`: "Repetitions are counted in the Event"; `EventApi::Events`: "one series from the start"; and
/// `EventOptions::burst` says how many are written. A process that starts again knows nothing of the Events of its last
/// incarnation, so each incarnation may create them once more. What is published while nothing goes wrong, and within
/// the limit, is there at rest. Not so what is published while the operator stops, as `Recorder` says: "what is in the
/// queue gets up to 5 seconds; then events are dropped". A request of before the faults ended may take longer to fail.
///
/// A backup brings back the Events of series that are over by the time it is restored: what follows is a further one,
/// as it was before. So time counts from the first Event of a subject, whatever is restored since.
///
/// A change of nothing but metadata is not counted as written: the recorder changes no metadata of an Event there is,
/// and what changes them, such as the foreign write of a [conflict](lariat_cluster::faults::Action::Conflict), is none
/// of its writes.
#[derive(Default)]
pub(crate) struct Events {
    operators: Operators,
    /// The content of each present Event without its metadata, by uid.
    written: BTreeMap<String, Written>,
    /// The number of Events of each subject, and the time of the first.
    created: BTreeMap<String, (u64, Duration)>,
    /// The number of Events about an object that were created and counted up, and the time of the first.
    about: BTreeMap<String, (u64, u64, Duration)>,
    published: BTreeMap<(IncarnationId, String), Published>,
    /// The incarnations whose operator stops, or has stopped.
    stopping: BTreeSet<IncarnationId>,
}

/// The known history of an Event that was written.
struct Written {
    /// The hash of all but its metadata.
    hash: u64,
    count: i64,
}

#[derive(Default)]
struct Published {
    events: u64,
    /// Whether it was published that the shop is settled, in which epoch.
    settled: Option<u32>,
}

impl Check for Events {
    fn name(&self) -> &'static str {
        "events are counted"
    }

    fn saw(&mut self, oracle: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.operators.saw(event);
        match event {
            Event::Committed(Commit::Stored(object)) if object.resource().starts_with("events") => {
                self.stored(object, moment)
            }
            Event::Committed(Commit::Reset { .. }) => {
                self.reset();
                Vec::new()
            }
            Event::Did {
                incarnation,
                action,
            } => {
                self.did(oracle, incarnation, action.get());
                Vec::new()
            }
            Event::IncarnationEnded(incarnation) => {
                self.stopping.remove(incarnation);
                self.published.retain(|of, _| of.0 != *incarnation);
                Vec::new()
            }
            Event::Committed(Commit::Removed { last }) => {
                // Only the content is forgotten: the limits count the Events that were ever written.
                self.written.remove(last.uid());
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn at_rest(&mut self, oracle: &Oracle, rest: &Rest<'_>) -> Findings {
        let mut found = Vec::new();
        for ((incarnation, uid), published) in &self.published {
            let is_due = published.settled == Some(oracle.epoch());
            if incarnation != rest.incarnation || !is_due {
                continue;
            }
            // The oracle knows an Event by the API through which it was written, which is up to the options.
            let groups = ["", "events.k8s.io"].map(|group| Gvk::new(group, "v1", "Event"));
            let mut events = groups.iter().flat_map(|kind| oracle.all(kind));
            let is_it = |event: Value| {
                let view = View::of(&event);
                view.about == *uid && view.reason == SETTLED
            };
            if !events.any(|(_, event)| is_it(shop::json_of(event))) {
                found.push(format!("no Event says that the shop {uid} is settled"));
            }
        }
        found
    }
}

impl Events {
    fn did(
        &mut self,
        oracle: &Oracle,
        incarnation: &IncarnationId,
        action: Option<&OperatorAction>,
    ) {
        match action {
            Some(OperatorAction::Published { uid, reason }) => {
                let of = (incarnation.clone(), uid.clone());
                let published = self.published.entry(of).or_default();
                published.events += 1;
                let is_stopping = self.stopping.contains(incarnation);
                if *reason == SETTLED && published.events <= BURST && !is_stopping {
                    published.settled = Some(oracle.epoch());
                }
            }
            Some(OperatorAction::Starts) => {
                self.stopping.remove(incarnation);
            }
            Some(OperatorAction::Stops) => {
                self.stopping.insert(incarnation.clone());
            }
            _ => {}
        }
    }

    /// Counts again from the Events of a backup, which come next.
    ///
    /// They were created, and processes have known their subjects, since before: the times of the first remain.
    fn reset(&mut self) {
        self.written.clear();
        for (created, _) in self.created.values_mut() {
            *created = 0;
        }
        for (created, counted, _) in self.about.values_mut() {
            (*created, *counted) = (0, 0);
        }
    }

    fn stored(&mut self, object: &StoredObject, moment: &Moment) -> Findings {
        let mut json = shop::json_of(object);
        if let Some(json) = json.as_object_mut() {
            // A change of metadata alone is not the recorder's; see the type.
            json.remove("metadata");
        }
        let event = View::of(&json);
        if event.component != OPERATOR {
            return Vec::new();
        }
        let mut found = Vec::new();
        let (key, incarnations) = (object.key(), self.incarnations());
        let now = Written::of(&json, &event);
        let hash = now.hash;
        let before = self.written.insert(object.uid().to_owned(), now);
        if before.as_ref().is_some_and(|before| before.hash == hash) {
            return found;
        }
        match before.as_ref().map(|before| before.count) {
            Some(before) if before > event.count => found.push(format!(
                "the count of {key} goes down from {before} to {}",
                event.count
            )),
            Some(_) => {}
            None => {
                let (created, first) = self
                    .created
                    .entry(event.subject())
                    .or_insert((0, moment.at));
                *created += 1;
                let allowed = event.allowed(moment.at.saturating_sub(*first)) * incarnations;
                if *created > allowed {
                    found.push(format!("{key} is Event {created} of {}", event.subject()));
                }
            }
        }
        found.extend(self.limit(&event, before.is_none(), moment));
        found
    }

    fn limit(&mut self, event: &View<'_>, is_new: bool, moment: &Moment) -> Option<String> {
        let incarnations = self.incarnations();
        let about = self.about.entry(event.about.to_owned());
        let (created, counted, first) = about.or_insert((0, 0, moment.at));
        *created += u64::from(is_new);
        *counted += u64::from(!is_new);
        let refills = moment.at.saturating_sub(*first).as_secs() / REFILL.as_secs();
        // A series is counted up without asking the limit.
        let writes = if event.is_series {
            *created
        } else {
            *created + *counted
        };
        let allowed = incarnations * (BURST + refills + 1);
        (writes > allowed).then(|| {
            format!(
                "{writes} Events were written about {}, {allowed} are allowed",
                event.about
            )
        })
    }

    fn incarnations(&self) -> u64 {
        self.operators.incarnations.max(1).into()
    }
}

impl Written {
    fn of(json: &Value, event: &View<'_>) -> Self {
        let mut hasher = DefaultHasher::new();
        json.hash(&mut hasher);
        Self {
            hash: hasher.finish(),
            count: event.count,
        }
    }
}

/// The relevant members of an Event, in whichever API it was written.
struct View<'a> {
    about: &'a str,
    reason: &'a str,
    note: &'a str,
    component: &'a str,
    count: i64,
    is_series: bool,
}

impl<'a> View<'a> {
    fn of(event: &'a Value) -> Self {
        let text = |names: [&str; 2]| {
            let mut texts = names
                .iter()
                .filter_map(|name| event.pointer(name)?.as_str());
            texts.find(|text| !text.is_empty()).unwrap_or_default()
        };
        let number = |name| event.pointer(name).and_then(Value::as_i64);
        let count = number("/series/count").or(number("/count"));
        Self {
            about: text(["/involvedObject/uid", "/regarding/uid"]),
            reason: text(["/reason", "/reason"]),
            note: text(["/message", "/note"]),
            component: text(["/reportingComponent", "/reportingController"]),
            count: count.unwrap_or(1),
            // `events.k8s.io` requires `eventTime`; the core API leaves it null.
            is_series: event.get("eventTime").is_some_and(|time| !time.is_null()),
        }
    }

    /// Returns the text by which Events of one incarnation differ.
    fn subject(&self) -> String {
        let note = match self.note {
            // As in client-go's `getKey` of `tools/events`, the note is not part of what a series is about.
            _ if self.is_series => "",
            // The aggregator of client-go puts this before the note of Events that differ in nothing else.
            note if note.starts_with("(combined") => "(combined)",
            note => note,
        };
        format!("{} about {} {note:?}", self.reason, self.about)
    }

    /// Returns the number of Events of its subject that an incarnation may have made.
    fn allowed(&self, since: Duration) -> u64 {
        if self.is_series {
            return 1 + since.as_secs() / SERIES.as_secs();
        }
        1
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
