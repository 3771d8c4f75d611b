//! Events in the form in which they are written.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event as CoreEvent, EventSource, ObjectReference};
use k8s_openapi::api::events::v1::{Event as EventsEvent, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Event, EventApi, text};

/// The namespace of Events about cluster-scoped objects.
const DEFAULT_NAMESPACE: &str = "default";
/// The length limit of a reporting instance in bytes.
const INSTANCE_LIMIT: usize = 128;

/// A published event, before the correlator.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) about: ObjectReference,
    pub(super) event: Event,
    pub(super) at: Instant,
    pub(super) time: Timestamp,
}

/// The reporter of Events.
#[derive(Debug)]
pub(super) struct Source {
    component: String,
    controller: String,
    instance: String,
}

impl Source {
    /// Creates the reporter from the operator's name, and the host name if it is known.
    pub(super) fn new(name: &str, host: Option<String>) -> Self {
        let host = host
            .filter(|host| !host.is_empty())
            .unwrap_or_else(|| name.to_owned());
        let instance = if host.is_empty() {
            text::qualified(name)
        } else {
            text::cut(host, INSTANCE_LIMIT)
        };
        Self {
            component: name.to_owned(),
            controller: text::qualified(name),
            instance,
        }
    }
}

/// An Event with its count, ready to be written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    pub(super) api: EventApi,
    /// The key of the Event in the correlator.
    pub(super) key: String,
    pub(super) name: String,
    pub(super) about: ObjectReference,
    pub(super) event: Event,
    pub(super) count: i32,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

impl Record {
    pub(super) fn namespace(&self) -> &str {
        let namespace = self.about.namespace.as_deref();
        namespace
            .filter(|namespace| !namespace.is_empty())
            .unwrap_or(DEFAULT_NAMESPACE)
    }

    /// Returns the API path of Events in its namespace, if the namespace is valid.
    pub(super) fn path(&self) -> Option<String> {
        let namespace = self.namespace();
        let group = match self.api {
            EventApi::Core => "/api/v1",
            EventApi::Events => "/apis/events.k8s.io/v1",
        };
        text::is_namespace(namespace).then(|| format!("{group}/namespaces/{namespace}/events"))
    }

    /// Returns the whole Event as JSON, to create it.
    pub(super) fn body(&self, source: &Source) -> serde_json::Result<Vec<u8>> {
        match self.api {
            EventApi::Core => serde_json::to_vec(&self.core_event(source)),
            EventApi::Events => serde_json::to_vec(&self.events_event(source)),
        }
    }

    /// Returns the patch that counts a further event in an existing Event.
    pub(super) fn changes(&self) -> Value {
        match self.api {
            EventApi::Core => json!({
                "count": self.count,
                "lastTimestamp": Time(self.last),
                // The note of a combined event is the newest one.
                "message": self.event.note(),
            }),
            EventApi::Events => json!({"series": self.series()}),
        }
    }

    fn metadata(&self) -> ObjectMeta {
        let annotations = self.event.annotations();
        ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.namespace().to_owned()),
            annotations: (!annotations.is_empty()).then(|| annotations.clone()),
            ..ObjectMeta::default()
        }
    }

    fn core_event(&self, source: &Source) -> CoreEvent {
        CoreEvent {
            action: self.event.action_name().map(str::to_owned),
            count: Some(self.count),
            first_timestamp: Some(Time(self.first)),
            involved_object: self.about.clone(),
            last_timestamp: Some(Time(self.last)),
            message: Some(self.event.note().to_owned()),
            metadata: self.metadata(),
            reason: Some(self.event.reason().to_owned()),
            related: self.event.related_object().cloned(),
            reporting_component: Some(source.controller.clone()),
            reporting_instance: Some(source.instance.clone()),
            source: Some(EventSource {
                component: Some(source.component.clone()),
                host: None,
            }),
            type_: Some(self.event.type_().to_owned()),
            // With an `eventTime` the API server applies the stricter validation of the newer API.
            event_time: None,
            series: None,
        }
    }

    fn events_event(&self, source: &Source) -> EventsEvent {
        let reason = self.event.reason();
        // This API requires an action.
        let action = self.event.action_name().unwrap_or(reason);
        EventsEvent {
            action: Some(action.to_owned()),
            event_time: Some(MicroTime(self.first)),
            metadata: self.metadata(),
            note: Some(self.event.note().to_owned()),
            reason: Some(reason.to_owned()),
            regarding: Some(self.about.clone()),
            related: self.event.related_object().cloned(),
            reporting_controller: Some(source.controller.clone()),
            reporting_instance: Some(source.instance.clone()),
            series: (self.count > 1).then(|| self.series()),
            type_: Some(self.event.type_().to_owned()),
            ..EventsEvent::default()
        }
    }

    fn series(&self) -> EventSeries {
        EventSeries {
            count: self.count,
            last_observed_time: MicroTime(self.last),
        }
    }
}
