//! The built-in kinds, a row each.
//!
//! Source of the rows: kube-apiserver, observed with one object of each kind.

use super::machinery;
use super::resource::Generation;
use super::row::{Row, cluster, ns};
use crate::names::NameRule;

const POD_FIELDS: [&str; 9] = [
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    // A label that is known, of which no Pod has a value.
    "status.podIPs",
    "status.nominatedNodeName",
];

// The same Events have other labels in `events.k8s.io`, whose fields are named otherwise.
const CORE_EVENT_FIELDS: [&str; 11] = [
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "source",
    "type",
    "reportingComponent",
];

pub(super) fn rows() -> Vec<Row> {
    [
        core(),
        core_of_cluster(),
        workloads(),
        networking(),
        policy(),
        storage(),
        machinery::rows(),
    ]
    .concat()
}

fn core() -> Vec<Row> {
    vec![
        ns("v1", "ConfigMap", "configmaps").short(&["cm"]),
        ns("v1", "Secret", "secrets").fields(&["type"]),
        // The name is part of a DNS name, hence a label.
        ns("v1", "Service", "services")
            .short(&["svc"])
            .all()
            .status()
            .put_creates()
            .answers_object()
            .fields(&["spec.type", "spec.clusterIP"])
            .names(NameRule::Label),
        ns("v1", "ServiceAccount", "serviceaccounts")
            .short(&["sa"])
            .answers_object(),
        ns("v1", "Pod", "pods")
            .short(&["po"])
            .all()
            .generation()
            .status()
            .answers_object()
            .fields(&POD_FIELDS),
        ns("v1", "Endpoints", "endpoints")
            .short(&["ep"])
            .put_creates()
            .deprecated(
                "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
            ),
        ns("v1", "Event", "events")
            .short(&["ev"])
            .names(NameRule::PathSegment)
            .put_creates()
            .fields(&CORE_EVENT_FIELDS),
        ns("v1", "LimitRange", "limitranges")
            .short(&["limits"])
            .put_creates(),
        ns("v1", "ResourceQuota", "resourcequotas")
            .short(&["quota"])
            .status()
            .answers_object(),
        ns("v1", "PodTemplate", "podtemplates")
            .generation()
            .answers_object(),
        ns("v1", "ReplicationController", "replicationcontrollers")
            .short(&["rc"])
            .all()
            .generation()
            .status()
            .fields(&["status.replicas"]),
    ]
}

fn core_of_cluster() -> Vec<Row> {
    vec![
        cluster("v1", "ComponentStatus", "componentstatuses")
            .short(&["cs"])
            .read_only()
            // It is made up at each request, so nothing can be written.
            .deprecated("v1 ComponentStatus is deprecated in v1.19+"),
        cluster("v1", "Node", "nodes")
            .short(&["no"])
            .status()
            .fields(&["spec.unschedulable"]),
        cluster("v1", "Namespace", "namespaces")
            .short(&["ns"])
            .status()
            .answers_object()
            .fields(&["status.phase"])
            .names(NameRule::Label),
    ]
}

fn workloads() -> Vec<Row> {
    let mut deployment = ns("apps/v1", "Deployment", "deployments")
        .short(&["deploy"])
        .all()
        .status();
    // The strategy of Deployments compares annotations too.
    deployment.rules.generation = Generation::ContentAndAnnotations;
    vec![
        deployment,
        ns("apps/v1", "ReplicaSet", "replicasets")
            .short(&["rs"])
            .all()
            .generation()
            .status(),
        ns("apps/v1", "StatefulSet", "statefulsets")
            // The names of its Pods are made of it, and each is a host name.
            .names(NameRule::Label)
            .short(&["sts"])
            .all()
            .generation()
            .status(),
        ns("apps/v1", "DaemonSet", "daemonsets")
            .short(&["ds"])
            .all()
            .generation()
            .status(),
        ns("apps/v1", "ControllerRevision", "controllerrevisions"),
        ns("batch/v1", "Job", "jobs")
            .all()
            .generation()
            .status()
            .fields(&["status.successful"]),
        ns("batch/v1", "CronJob", "cronjobs")
            .short(&["cj"])
            .all()
            .generation()
            .status(),
        ns(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
        )
        .short(&["hpa"])
        .all()
        .status(),
        ns(
            "autoscaling/v1",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
        )
        .short(&["hpa"])
        .all()
        .status(),
    ]
}

fn networking() -> Vec<Row> {
    vec![
        ns("networking.k8s.io/v1", "Ingress", "ingresses")
            .short(&["ing"])
            .generation()
            .status(),
        ns("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
            .short(&["netpol"])
            .generation_as_sent(),
        cluster("networking.k8s.io/v1", "IngressClass", "ingressclasses").generation(),
        cluster("networking.k8s.io/v1", "ServiceCIDR", "servicecidrs").status(),
        cluster("networking.k8s.io/v1", "IPAddress", "ipaddresses").short(&["ip"]),
        ns("discovery.k8s.io/v1", "EndpointSlice", "endpointslices").generation_and_labels(),
    ]
}

fn policy() -> Vec<Row> {
    let rbac = "rbac.authorization.k8s.io/v1";
    vec![
        ns("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
            .names(NameRule::PathSegment)
            .short(&["pdb"])
            .generation()
            .status()
            .version_required(),
        ns(rbac, "Role", "roles")
            .put_creates()
            // Names of roles and bindings may have colons, as `system:node`.
            .names(NameRule::PathSegment),
        ns(rbac, "RoleBinding", "rolebindings")
            .put_creates()
            .names(NameRule::PathSegment),
        cluster(rbac, "ClusterRole", "clusterroles")
            .put_creates()
            .names(NameRule::PathSegment),
        cluster(rbac, "ClusterRoleBinding", "clusterrolebindings")
            .put_creates()
            .names(NameRule::PathSegment),
        cluster("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses")
            .short(&["pc"])
            .generation_of_creation(),
        cluster("node.k8s.io/v1", "RuntimeClass", "runtimeclasses")
            .put_creates()
            .version_required(),
        cluster(
            "certificates.k8s.io/v1",
            "CertificateSigningRequest",
            "certificatesigningrequests",
        )
        .names(NameRule::PathSegment)
        .short(&["csr"])
        .status()
        .fields(&["spec.signerName"]),
    ]
}

fn storage() -> Vec<Row> {
    let storage = "storage.k8s.io/v1";
    vec![
        ns("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
            .short(&["pvc"])
            .status()
            .answers_object(),
        cluster("v1", "PersistentVolume", "persistentvolumes")
            .short(&["pv"])
            .status()
            .answers_object(),
        cluster(storage, "StorageClass", "storageclasses")
            .short(&["sc"])
            .answers_object(),
        cluster(storage, "CSIDriver", "csidrivers")
            .generation_of_changes()
            .version_required()
            .answers_object(),
        cluster(storage, "CSINode", "csinodes")
            .version_required()
            .answers_object(),
        cluster(storage, "VolumeAttachment", "volumeattachments")
            .status()
            .version_required()
            .answers_object(),
        ns(storage, "CSIStorageCapacity", "csistoragecapacities").version_required(),
        cluster(storage, "VolumeAttributesClass", "volumeattributesclasses")
            .short(&["vac"])
            .answers_object(),
    ]
}
