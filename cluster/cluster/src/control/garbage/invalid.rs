//! References to owners in namespaces where the reference does not reach.

use lariat_apimachinery::kinds::Catalog;
use serde_json::json;

use crate::control::controller::ControlPlane;
use crate::control::graph::Node;
use crate::control::metadata::OwnerReference;
use crate::control::write::Writer;

const COMPONENT: &str = "garbage-collector-controller";

/// Returns whether an object has a reference's uid, but in another namespace.
pub(super) fn is_elsewhere(plane: &ControlPlane, node: &Node, reference: &OwnerReference) -> bool {
    let owner = plane.graph.node(&reference.uid);
    owner.is_some_and(|owner| {
        let namespace = owner.key.namespace();
        namespace.is_some() && namespace != node.key.namespace()
    })
}

/// Reports such a reference by an Event about the dependent.
pub(super) fn report(
    plane: &ControlPlane,
    catalog: &Catalog,
    node: &Node,
    reference: &OwnerReference,
) {
    let resource = catalog.of_table(node.table);
    let (Some(resource), Some(events)) = (resource, catalog.resource("", "v1", "events")) else {
        return;
    };
    let (name, own) = (node.key.name(), node.key.namespace());
    // As makeEvent of client-go's recorder: Events about cluster-scoped objects are in `default`, and their names have
    // the time in hexadecimal.
    let namespace = own.unwrap_or("default");
    let now = plane.server.clock.now();
    let nanoseconds = plane.server.clock.timestamp().as_nanosecond();
    let message = format!(
        "ownerRef [{}/{}, namespace: {}, name: {}, uid: {}] does not exist in namespace {:?}",
        reference.api_version,
        reference.kind,
        own.unwrap_or_default(),
        reference.name,
        reference.uid,
        own.unwrap_or_default(),
    );
    let mut about = json!({
        "apiVersion": resource.api_version(), "kind": resource.kind, "name": name, "uid": &*node.uid,
    });
    if let Some(own) = own {
        about["namespace"] = own.into();
    }
    let event = json!({
        "kind": "Event", "apiVersion": "v1",
        "metadata": {"name": format!("{name}.{nanoseconds:x}"), "namespace": namespace},
        "involvedObject": about, "type": "Warning", "reason": "OwnerRefInvalidNamespace",
        "message": message, "count": 1, "firstTimestamp": now, "lastTimestamp": now,
        "source": {"component": COMPONENT}, "reportingComponent": COMPONENT,
        "reportingInstance": "", "eventTime": null,
    });
    let writer = Writer {
        server: &plane.server,
        manager: super::outcome::MANAGER,
    };
    if let Err(error) = writer.create(events, Some(namespace), &event) {
        tracing::debug!(
            name,
            ?error,
            "cannot record an Event about an invalid owner reference"
        );
    }
}
