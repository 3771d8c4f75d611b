//! The defaults of the API server for fields that a client leaves out.
//!
//! Source: the `SetDefaults_…` functions of `k8s.io/kubernetes/pkg/apis`; no schema contains these defaults.

mod addresses;
mod admission;
mod amounts;
mod container;
mod disabled;
mod members;
mod network;
mod others;
mod pod;
mod pod_resources;
mod status;
mod workloads;

use crate::kinds::Resource;
use crate::object::Object;

pub use disabled::drop_disabled;
pub use status::initial as initial_status;

/// Fills in the defaults of a built-in kind.
///
/// ```
/// use lariat_apimachinery::{defaults, object::Object};
/// use lariat_apimachinery::kinds::{Kinds, TableId};
///
/// // A server has one table for each resource; here one is enough.
/// let catalog = Kinds::new(|_| TableId(0)).catalog();
/// let services = catalog.resource("", "v1", "services").expect("it is built in");
/// let mut service = Object::from_iter([("spec".to_owned(), serde_json::json!({"ports": [{"port": 80}]}))]);
/// defaults::fill(services, &mut service);
/// assert_eq!(service["spec"]["type"], "ClusterIP");
/// assert_eq!(service["spec"]["ports"][0]["protocol"], "TCP");
/// ```
pub fn fill(resource: &Resource, object: &mut Object) {
    let Resource { group, kind, .. } = resource;
    match (group.as_str(), kind.as_str()) {
        ("", "Node") => {
            addresses::node(object);
            others::node(object);
        }
        ("", "Pod") => {
            addresses::pod(object);
            pod::pod(object);
        }
        ("", "PodTemplate") => pod::template(object, "template"),
        ("", "ReplicationController") => workloads::replication_controller(object),
        ("", "Service") => network::service(object),
        ("", "Endpoints") => network::endpoints(object),
        ("", "Namespace") => others::namespace(object),
        ("", "Secret") => others::secret(object),
        ("", "ResourceQuota") => others::quota(object),
        ("", "LimitRange") => others::limit_range(object),
        ("", "PersistentVolume") => others::volume(object),
        ("", "PersistentVolumeClaim") => others::claim(object),
        ("apps", "Deployment") => workloads::deployment(object),
        ("apps", "ReplicaSet") => workloads::replica_set(object),
        ("apps", "StatefulSet") => workloads::stateful_set(object),
        ("apps", "DaemonSet") => workloads::daemon_set(object),
        ("batch", "Job") => workloads::job(object),
        ("batch", "CronJob") => workloads::cron_job(object),
        ("autoscaling", "HorizontalPodAutoscaler") => workloads::autoscaler(object),
        ("policy", "PodDisruptionBudget") => others::disruption_budget(object),
        ("networking.k8s.io", "NetworkPolicy") => network::policy(object),
        ("networking.k8s.io", "IngressClass") => network::ingress_class(object),
        ("resource.k8s.io", "ResourceClaim") => {
            others::resource_claim(object, &["spec"]);
            others::allocation(object);
        }
        ("resource.k8s.io", "ResourceSlice") => disabled::drop_from_devices(object),
        ("resource.k8s.io", "ResourceClaimTemplate") => {
            others::resource_claim(object, &["spec", "spec"]);
        }
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => others::flow_schema(object),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => {
            others::priority_level(object);
        }
        ("discovery.k8s.io", "EndpointSlice") => network::slice(object),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            others::role_binding(object);
        }
        ("storage.k8s.io", "StorageClass") => others::storage_class(object),
        ("storage.k8s.io", "CSIDriver") => others::driver(object),
        ("scheduling.k8s.io", "PriorityClass") => others::priority_class(object),
        ("apiregistration.k8s.io", "APIService") => others::api_service(object),
        ("admissionregistration.k8s.io", kind) => admission::fill(kind, object),
        _ => {}
    }
}
