//! Shared functions of the tests of Events.

use k8s_openapi::api::core::v1::{Event as CoreEvent, ObjectReference};
use kube::api::{Api, ListParams};
use lariat_operator::EventStatus;

use crate::bench::Bench;

impl Bench {
    /// Publishes an event about a Pod in `default`, which need not exist.
    pub(crate) fn say(&self, pod: &str, note: &str) {
        let event = lariat_operator::Event::normal("Created", note);
        self.operator
            .events()
            .publish(&pod_in("default", pod), event);
    }

    /// Returns all Events, oldest first.
    pub(crate) async fn events(&self) -> Vec<CoreEvent> {
        let events: Api<CoreEvent> = Api::all(self.cluster.client());
        let listed = events.list(&ListParams::default()).await;
        let mut events = listed.expect("listed").items;
        events.sort_by_key(|event| event.metadata.resource_version.clone());
        events
    }

    /// Returns the number of requested creations and patches of Events.
    pub(crate) fn writes(&self) -> (usize, usize) {
        let journal = self.cluster.journal();
        (
            journal.count("create", "events"),
            journal.count("patch", "events"),
        )
    }

    pub(crate) fn status(&self) -> EventStatus {
        self.operator.events().status()
    }
}

/// Returns a reference to a Pod.
pub(crate) fn pod_in(namespace: &str, name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        ..ObjectReference::default()
    }
}
