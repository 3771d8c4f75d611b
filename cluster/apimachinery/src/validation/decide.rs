//! The validation function of each kind.

use super::causes::Causes;
use super::context::{Check, Context, Part};
use super::field::Field;
use super::{
    admission, apps, authorization, autoscaling, batch, certificates, coordination, core, devices,
    discovery, flow_control, networking, node, pod, policy, rbac, registration, scheduling,
    storage,
};
use crate::cause::StatusCause;
use crate::kinds::Resource;
use crate::object::Object;

/// Validates an object of a built-in kind, except for its metadata.
///
/// `old` is the state it replaces, of which `part` is written; at a creation there is none, and the part is
/// [`Part::Main`]. Defaults have been filled in. Custom resources have no causes here.
///
/// ```
/// use lariat_apimachinery::kinds::{Kinds, TableId};
/// use lariat_apimachinery::validation::{Part, validate};
/// use serde_json::json;
///
/// let catalog = Kinds::new(|_| TableId(0)).catalog();
/// let config_maps = catalog.resource("", "v1", "configmaps").expect("it is built in");
/// let object = json!({"data": {"not a key": "1"}});
/// let object = object.as_object().expect("an object");
/// let causes = validate(config_maps, object, None, Part::Main);
/// assert_eq!(causes[0].reason(), "FieldValueInvalid");
/// assert!(causes[0].text().starts_with("data[not a key]: Invalid value"));
/// ```
#[must_use]
pub fn validate(
    resource: &Resource,
    object: &Object,
    old: Option<&Object>,
    part: Part,
) -> Vec<StatusCause> {
    let mut causes = Causes::default();
    // A CRD may define a kind in a group of Kubernetes; its schema has all its rules.
    if !resource.rules.custom
        && let Some(check) = check_of(&resource.group, &resource.kind)
    {
        check(&Context { object, old, part }, &mut causes);
    }
    causes.into_list()
}

/// Validates the addresses and IP families of a Service before allocation.
#[must_use]
pub fn validate_service_addresses(service: &Object, old: Option<&Object>) -> Vec<StatusCause> {
    let mut causes = Causes::default();
    let spec = Field::of(service, "spec");
    let old = old.map(|old| Field::of(old, "spec"));
    core::check_addresses(&spec, old.as_ref(), &mut causes);
    causes.into_list()
}

pub(super) fn check_of(group: &str, kind: &str) -> Option<Check> {
    // Kinds without an entry have no rules beside those of their metadata and types.
    of_core(kind)
        .filter(|_| group.is_empty())
        .or_else(|| of_workloads(group, kind))
        .or_else(|| of_cluster(group, kind))
        .or_else(|| of_devices(kind).filter(|_| group == "resource.k8s.io"))
}

fn of_core(kind: &str) -> Option<Check> {
    Some(match kind {
        "Binding" => core::binding,
        "ConfigMap" => core::config_map,
        "Endpoints" => core::endpoints,
        "Event" => core::core_event,
        "LimitRange" => core::limit_range,
        "Namespace" => core::namespace,
        "Node" => core::node,
        "PersistentVolume" => core::persistent_volume,
        "PersistentVolumeClaim" => core::persistent_volume_claim,
        "Pod" => pod::pod,
        "PodTemplate" => pod::pod_template,
        "ReplicationController" => core::replication_controller,
        "ResourceQuota" => core::resource_quota,
        "Secret" => core::secret,
        "Service" => core::service,
        _ => return None,
    })
}

fn of_devices(kind: &str) -> Option<Check> {
    Some(match kind {
        "DeviceClass" => devices::device_class,
        "ResourceClaim" => devices::resource_claim,
        "ResourceClaimTemplate" => devices::resource_claim_template,
        "ResourceSlice" => devices::resource_slice,
        _ => return None,
    })
}

fn of_workloads(group: &str, kind: &str) -> Option<Check> {
    Some(match (group, kind) {
        ("apps", "ControllerRevision") => apps::controller_revision,
        ("apps", "DaemonSet") => apps::daemon_set,
        ("apps", "Deployment") => apps::deployment,
        ("apps", "ReplicaSet") => apps::replica_set,
        ("apps", "StatefulSet") => apps::stateful_set,
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::autoscaler,
        ("batch", "CronJob") => batch::cron_job,
        ("batch", "Job") => batch::job,
        ("coordination.k8s.io", "Lease") => coordination::lease,
        ("coordination.k8s.io", "LeaseCandidate") => coordination::lease_candidate,
        ("discovery.k8s.io", "EndpointSlice") => discovery::endpoint_slice,
        ("events.k8s.io", "Event") => core::event,
        ("networking.k8s.io", "IPAddress") => networking::ip_address,
        ("networking.k8s.io", "Ingress") => networking::ingress,
        ("networking.k8s.io", "IngressClass") => networking::ingress_class,
        ("networking.k8s.io", "NetworkPolicy") => networking::network_policy,
        ("networking.k8s.io", "ServiceCIDR") => networking::service_cidr,
        ("node.k8s.io", "RuntimeClass") => node::runtime_class,
        ("policy", "PodDisruptionBudget") => policy::disruption_budget,
        ("scheduling.k8s.io", "PriorityClass") => scheduling::priority_class,
        _ => return None,
    })
}

fn of_cluster(group: &str, kind: &str) -> Option<Check> {
    Some(match (group, kind) {
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => {
            admission::mutating_webhooks
        }
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => {
            admission::validating_webhooks
        }
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => admission::mutating_policy,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => {
            admission::validating_policy
        }
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding") => {
            admission::mutating_policy_binding
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
            admission::validating_policy_binding
        }
        ("apiregistration.k8s.io", "APIService") => registration::api_service,
        ("authorization.k8s.io", "LocalSubjectAccessReview") => authorization::local_access_review,
        ("authorization.k8s.io", "SelfSubjectAccessReview") => authorization::self_access_review,
        ("authorization.k8s.io", "SubjectAccessReview") => authorization::access_review,
        ("certificates.k8s.io", "CertificateSigningRequest") => certificates::signing_request,
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => flow_control::flow_schema,
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => {
            flow_control::priority_level
        }
        ("rbac.authorization.k8s.io", "ClusterRole") => rbac::cluster_role,
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => rbac::cluster_role_binding,
        ("rbac.authorization.k8s.io", "Role") => rbac::role,
        ("rbac.authorization.k8s.io", "RoleBinding") => rbac::role_binding,
        ("storage.k8s.io", "CSIDriver") => storage::csi_driver,
        ("storage.k8s.io", "CSINode") => storage::csi_node,
        ("storage.k8s.io", "CSIStorageCapacity") => storage::storage_capacity,
        ("storage.k8s.io", "StorageClass") => storage::storage_class,
        ("storage.k8s.io", "VolumeAttachment") => storage::volume_attachment,
        ("storage.k8s.io", "VolumeAttributesClass") => storage::volume_attributes_class,
        _ => return None,
    })
}
