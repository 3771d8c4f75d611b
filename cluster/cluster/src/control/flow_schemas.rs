//! The condition of FlowSchemas that says whether their priority level is missing.
//!
//! Source: `k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go`.

use std::collections::BTreeSet;

use lariat_apimachinery::kinds::{Resource, TableId};
use lariat_core::ObjectKey;
use serde_json::{Value, json};

use super::controller::{ControlPlane, Controller};
use super::write::{WriteOutcome, Writer};
use crate::server::Server;
use crate::store::{Change, EventType, Range};
use crate::strategy::Part;

const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
const CONDITION: &str = "Dangling";

/// Levels that a server has even without their objects.
const MANDATORY: [&str; 2] = ["catch-all", "exempt"];

/// Writes the condition into the status of FlowSchemas.
#[derive(Debug)]
pub(super) struct FlowSchemas {
    schemas: TableId,
    levels: TableId,
    /// Schemas to look at.
    queue: BTreeSet<String>,
    /// Whether a level came or went, so that all schemas are to be looked at.
    is_all_due: bool,
}

impl FlowSchemas {
    pub(super) fn new(server: &Server) -> Self {
        let table = |plural: &str| {
            let name = format!("{plural}.flowcontrol.apiserver.k8s.io");
            server.store.table(&name)
        };
        Self {
            schemas: table("flowschemas"),
            levels: table("prioritylevelconfigurations"),
            queue: BTreeSet::new(),
            is_all_due: false,
        }
    }

    /// Enqueues all schemas.
    fn enqueue_all(&mut self, plane: &ControlPlane) {
        let page = plane.server.store.range(self.schemas, &Range::default());
        let schemas = page.map(|page| page.objects).unwrap_or_default();
        let names = schemas.iter().map(|stored| stored.key().name().to_owned());
        self.queue.extend(names);
    }

    /// Makes the condition of a schema true to whether its level exists.
    fn check(&self, plane: &ControlPlane, resource: &Resource, name: &str) -> WriteOutcome {
        let store = &plane.server.store;
        let Some(stored) = store.get(self.schemas, &ObjectKey::cluster(name)) else {
            return WriteOutcome::Done;
        };
        let schema = Value::Object(stored.object());
        let level = &schema["spec"]["priorityLevelConfiguration"]["name"];
        let level = level.as_str().unwrap_or_default();
        let exists = MANDATORY.contains(&level)
            || store.get(self.levels, &ObjectKey::cluster(level)).is_some();
        let mut wanted = condition(level, exists);
        let known = schema["status"]["conditions"].as_array();
        let mut known = known.into_iter().flatten();
        let known = known.find(|each| each["type"] == CONDITION);
        let is_same = |known: &Value| {
            let mut members = ["status", "reason", "message"].into_iter();
            members.all(|member| known[member] == wanted[member])
        };
        if known.is_some_and(is_same) {
            return WriteOutcome::Done;
        }
        wanted["lastTransitionTime"] = plane.server.clock.now().into();
        let writer = Writer {
            server: &plane.server,
            manager: MANAGER,
        };
        let status = json!({"conditions": [wanted]});
        writer.apply(resource, Part::Status, &stored, "status", status)
    }
}

/// Returns the condition of a schema that refers to a level.
fn condition(level: &str, exists: bool) -> Value {
    let (status, reason, end) = if exists {
        ("False", "Found", "and it exists")
    } else {
        ("True", "NotFound", "but there is no such object")
    };
    let message = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named {level:?} {end}"
    );
    json!({"type": CONDITION, "status": status, "reason": reason, "message": message})
}

impl Controller for FlowSchemas {
    fn observe(&mut self, _plane: &ControlPlane, change: &Change) {
        let event = &change.event;
        if change.table == self.schemas && event.event != EventType::Deleted {
            self.queue.insert(event.object.key().name().to_owned());
        }
        self.is_all_due |= change.table == self.levels && event.event != EventType::Modified;
    }

    fn work(&mut self, plane: &ControlPlane) -> bool {
        if std::mem::take(&mut self.is_all_due) {
            self.enqueue_all(plane);
        }
        if self.queue.is_empty() {
            return false;
        }
        let catalog = plane.server.kinds.catalog();
        let Some(resource) = catalog.of_table(self.schemas) else {
            return false;
        };
        for name in std::mem::take(&mut self.queue) {
            if self.check(plane, resource, &name) == WriteOutcome::Raced {
                self.queue.insert(name);
            }
        }
        !self.queue.is_empty()
    }
}
