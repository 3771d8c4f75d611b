//! Events about workloads whose objects are refused.
//!
//! Source: `k8s.io/client-go/tools/record`. What succeeds is not recorded.

use std::time::Duration;

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use lariat_core::{FNV_OFFSET, ObjectKey, fnv1a};
use serde_json::{Value, json};

use super::kind::Kind;
use super::reconcile::Reconcile;
use crate::control::write::Writer;
use crate::store::Range;
use crate::strategy::Part;

/// The number of events that differ in the message alone before they become one.
const MOST_SIMILAR: usize = 10;
/// The time for which an event counts as similar after its last occurrence.
const SIMILAR_FOR: Duration = Duration::from_secs(600);
const COMBINED: &str = "(combined from similar events): ";

/// Records a warning about an object, or counts it if it has been recorded before.
pub(super) fn warn(about: &Reconcile<'_>, reason: &str, message: &str) {
    let catalog = about.plane.server.kinds.catalog();
    if let Some(events) = catalog.resource("", "v1", "events") {
        let recorder = Recorder {
            about,
            events,
            reason,
        };
        recorder.record(message);
    }
}

/// Returns the controller that records events about a kind.
fn component(kind: Kind) -> &'static str {
    match kind {
        Kind::ReplicaSet => "replicaset-controller",
        Kind::Deployment => "deployment-controller",
        Kind::StatefulSet => "statefulset-controller",
        Kind::DaemonSet => "daemonset-controller",
        Kind::Job => "job-controller",
        Kind::CronJob => "cronjob-controller",
        _ => "kube-controller-manager",
    }
}

/// Records events about an object for one reason.
struct Recorder<'a> {
    about: &'a Reconcile<'a>,
    events: &'a Resource,
    reason: &'a str,
}

impl Recorder<'_> {
    fn record(&self, message: &str) {
        if self.count(&self.key(message), message) {
            return;
        }
        let key = self.key(COMBINED);
        let combined = format!("{COMBINED}{message}");
        // Looked for first, since counting similar events reads all of the namespace.
        if self.is_recent(&key) && self.count(&key, &combined) {
            return;
        }
        if self.similar() + 1 < MOST_SIMILAR {
            return self.create(&self.key(message), message);
        }
        if !self.count(&key, &combined) {
            self.create(&key, &combined);
        }
    }

    /// Returns whether there is an event, and it was counted recently.
    fn is_recent(&self, key: &ObjectKey) -> bool {
        let stored = self.about.plane.server.store.get(self.events.table, key);
        stored.is_some_and(|stored| self.counts_as_recent(&stored.object()))
    }

    fn counts_as_recent(&self, event: &Object) -> bool {
        let last = event.get("lastTimestamp").and_then(Value::as_str);
        let left = last.and_then(|last| self.about.until(last, SIMILAR_FOR));
        left.is_some()
    }

    /// Returns the key of the event that a text stands for.
    ///
    /// In Go a name ends with the time in nanoseconds, and the events are kept in memory; here it ends with a hash, by
    /// which the event is found again.
    fn key(&self, text: &str) -> ObjectKey {
        let name = self.about.name();
        let parts = [self.about.stored.uid(), self.reason, text];
        let name = format!("{name}.{:016x}", hash(&parts));
        let namespace = self.about.stored.key().namespace();
        ObjectKey::namespaced(namespace.unwrap_or("default"), &name)
    }

    /// Counts an event once more; returns whether there is one.
    fn count(&self, key: &ObjectKey, message: &str) -> bool {
        let server = &self.about.plane.server;
        let Some(stored) = server.store.get(self.events.table, key) else {
            return false;
        };
        let now = self.about.now();
        // A lost race costs a count, which no one relies on.
        self.writer()
            .update(self.events, Part::Main, &stored, |event| {
                let count = event.get("count").and_then(Value::as_i64).unwrap_or(0);
                event.insert("count".into(), count.saturating_add(1).into());
                event.insert("lastTimestamp".into(), now.into());
                event.insert("message".into(), message.into());
            });
        true
    }

    /// Counts the recent events for this reason.
    fn similar(&self) -> usize {
        let server = &self.about.plane.server;
        let range = Range {
            namespace: self.about.stored.key().namespace(),
            ..Range::default()
        };
        let page = server.store.range(self.events.table, &range);
        let events = page.map(|page| page.objects).unwrap_or_default();
        let is_similar = |event: &Object| {
            let about = event.get("involvedObject");
            about.is_some_and(|about| about["uid"] == self.about.stored.uid())
                && event
                    .get("reason")
                    .is_some_and(|reason| reason == self.reason)
                && self.counts_as_recent(event)
        };
        let events = events.iter().map(|stored| stored.object());
        events.filter(is_similar).count()
    }

    fn create(&self, key: &ObjectKey, message: &str) {
        let about = self.about;
        let (now, component) = (about.now(), component(about.kind));
        let event = json!({
            "metadata": {"name": key.name(), "namespace": key.namespace()},
            "involvedObject": {
                "kind": about.resource.kind, "apiVersion": about.resource.api_version(),
                "namespace": about.stored.key().namespace(), "name": about.name(),
                "uid": about.stored.uid(), "resourceVersion": about.stored.revision().to_string(),
            },
            "reason": self.reason, "message": message, "type": "Warning", "count": 1,
            "firstTimestamp": now, "lastTimestamp": now,
            "source": {"component": component}, "reportingComponent": component,
        });
        let created = self.writer().create(self.events, key.namespace(), &event);
        if let Err(error) = created {
            let owner = about.stored.key().as_str();
            tracing::debug!(owner, error = error.message(), "cannot record an event");
        }
    }

    fn writer(&self) -> Writer<'_> {
        self.about.writer()
    }
}

/// Returns a hash of texts that is the same in every run.
fn hash(parts: &[&str]) -> u64 {
    fnv1a(FNV_OFFSET, parts.join("\0").as_bytes())
}
