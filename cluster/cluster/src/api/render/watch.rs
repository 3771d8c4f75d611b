//! The lines of a watch.

use bytes::Bytes;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use lariat_apimachinery::schema;

use super::renderer::Renderer;
use crate::printers::Table;
use crate::store::{EventType, METADATA_HEAD, Stored};
use crate::strategy::view;
use crate::verbs::WatchEvent;
use crate::wire::negotiate::Shape;

/// Writes the events of one watch as lines.
#[derive(Debug)]
pub(super) struct Lines {
    renderer: Renderer,
    /// `"kind":…,"apiVersion":…` of the watched version, or of bare metadata.
    head: String,
    only_metadata: bool,
    /// The rest that Go writes of an object with metadata only, after a comma.
    zeros: String,
    /// Whether a table was sent; only the first defines the columns.
    columns_sent: bool,
}

impl Lines {
    pub(super) fn new(renderer: Renderer) -> Self {
        let only_metadata = renderer.format.shape != Shape::Whole;
        Self {
            head: if only_metadata {
                renderer.metadata_head()
            } else {
                renderer.resource.head()
            },
            zeros: if only_metadata {
                String::new()
            } else {
                zeros(&renderer)
            },
            only_metadata,
            columns_sent: false,
            renderer,
        }
    }

    /// Writes an event.
    pub(super) fn line(&mut self, event: &WatchEvent) -> Bytes {
        match event {
            WatchEvent::Object { event, stored } => self.object(stored, *event),
            WatchEvent::Bookmark {
                revision,
                ends_initial,
            } => self.bookmark(*revision, *ends_initial),
            WatchEvent::Error(error) => {
                [br#"{"type":"ERROR","object":"#, &error.json()[..], b"}\n"]
                    .concat()
                    .into()
            }
            WatchEvent::HalfLine => Bytes::from_static(br#"{"type":"MODIFIED","obj"#),
        }
    }

    /// Writes a state.
    ///
    /// The stored bytes are used as they are, unless another version is watched.
    fn object(&mut self, stored: &Stored, event: EventType) -> Bytes {
        // An event has no list, so a real server sends nothing in that shape.
        if self.renderer.format.shape == Shape::MetadataList {
            return Bytes::new();
        }
        if let Some(table) = &self.renderer.table {
            let reread = view::reread(&self.renderer.resource, stored);
            let shown = reread.as_ref().unwrap_or(stored);
            return table_line(table, &mut self.columns_sent, shown, event.as_str());
        }
        // The usual form is encoded once for all watchers.
        if self.only_metadata && self.head == METADATA_HEAD {
            return stored.metadata_frame(event);
        }
        let reread = view::reread(&self.renderer.resource, stored);
        let shown = reread.as_ref().unwrap_or(stored);
        if !self.only_metadata && shown.head() == self.head.as_bytes() {
            return shown.frame(event);
        }
        let opening = format!(r#"{{"type":"{}","object":{{{}"#, event.as_str(), self.head);
        let (content, closing) = if self.only_metadata {
            (shown.metadata(), &b"}}\n"[..])
        } else {
            (shown.content(), &b"}\n"[..])
        };
        [opening.as_bytes(), content, closing].concat().into()
    }

    /// Writes that everything up to a revision was sent.
    fn bookmark(&mut self, revision: u64, ends_initial: bool) -> Bytes {
        if self.renderer.format.shape == Shape::MetadataList {
            return Bytes::new();
        }
        if let Some(table) = &self.renderer.table {
            let stored = table.bookmark(revision, ends_initial);
            return table_line(table, &mut self.columns_sent, &stored, "BOOKMARK");
        }
        let annotations = match (ends_initial, is_daemon_set(&self.renderer.resource)) {
            (true, false) => r#","annotations":{"k8s.io/initial-events-end":"true"}"#,
            (true, true) => {
                r#","annotations":{"deprecated.daemonset.template.generation":"0","k8s.io/initial-events-end":"true"}"#
            }
            (false, true) => r#","annotations":{"deprecated.daemonset.template.generation":"0"}"#,
            (false, false) => "",
        };
        let Self { head, zeros, .. } = self;
        let metadata = format!(r#"{{"resourceVersion":"{revision}"{annotations}}}"#);
        format!("{{\"type\":\"BOOKMARK\",\"object\":{{{head},\"metadata\":{metadata}{zeros}}}}}\n")
            .into()
    }
}

/// Returns whether metadata-only lists have an extra annotation.
///
/// It stands for a member of the kind's internal type.
fn is_daemon_set(resource: &Resource) -> bool {
    resource.group == "apps" && resource.plural == "daemonsets"
}

/// Writes the members beside metadata that Go writes of an empty object.
fn zeros(renderer: &Renderer) -> String {
    let resource = &renderer.resource;
    if resource.rules.custom {
        return String::new();
    }
    let mut empty = Object::new();
    schema::fill_zeros(resource.types().root(), &mut empty);
    empty.remove("metadata");
    // The replicas of Go's internal types are numbers, not pointers.
    if matches!(
        resource.kind.as_str(),
        "Deployment" | "ReplicaSet" | "StatefulSet"
    ) && let Some(serde_json::Value::Object(spec)) = empty.get_mut("spec")
    {
        spec.insert("replicas".into(), 0.into());
    }
    let members = empty.iter();
    members
        .map(|(name, value)| format!(",\"{name}\":{value}"))
        .collect()
}

/// Writes an object as a table with one row.
fn table_line(table: &Table, columns_sent: &mut bool, stored: &Stored, event: &str) -> Bytes {
    let is_first = !std::mem::replace(columns_sent, true);
    let opening = format!(r#"{{"type":"{event}","object":"#);
    let single = table.single(stored, is_first);
    [opening.as_bytes(), &single, b"}\n"].concat().into()
}
