//! The built-in kinds, a row each.
//!
//! Source of the rows: kube-apiserver 1.36, observed with one object of each kind.

use super::machinery;
use super::resource::{Generation, NameRule, Rules};

/// One built-in kind.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) namespaced: bool,
    pub(super) short_names: &'static [&'static str],
    pub(super) categories: &'static [&'static str],
    pub(super) rules: Rules,
}

const POD_FIELDS: [&str; 8] = [
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
];

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

/// Begins the row of a namespaced kind.
pub(super) fn ns(api: &'static str, kind: &'static str, plural: &'static str) -> Row {
    let (group, version) = api.split_once('/').unwrap_or(("", api));
    Row {
        group,
        version,
        kind,
        plural,
        namespaced: true,
        short_names: &[],
        categories: &[],
        rules: Rules::default(),
    }
}

/// Begins the row of a cluster-scoped kind.
pub(super) fn cluster(api: &'static str, kind: &'static str, plural: &'static str) -> Row {
    Row {
        namespaced: false,
        ..ns(api, kind, plural)
    }
}

impl Row {
    pub(super) fn short(self, short_names: &'static [&'static str]) -> Self {
        Self {
            short_names,
            ..self
        }
    }

    pub(super) fn all(self) -> Self {
        Self {
            categories: &["all"],
            ..self
        }
    }

    pub(super) fn extends(self) -> Self {
        Self {
            categories: &["api-extensions"],
            ..self
        }
    }

    pub(super) fn generation(mut self) -> Self {
        self.rules.generation = Generation::Content;
        self
    }

    pub(super) fn status(mut self) -> Self {
        self.rules.status = true;
        self
    }

    pub(super) fn put_creates(mut self) -> Self {
        self.rules.put_creates = true;
        self
    }

    pub(super) fn version_required(mut self) -> Self {
        self.rules.version_required = true;
        self
    }

    pub(super) fn answers_object(mut self) -> Self {
        self.rules.delete_answers_object = true;
        self
    }

    pub(super) fn fields(mut self, labels: &[&str]) -> Self {
        self.rules.field_labels = labels.iter().map(|label| (*label).to_owned()).collect();
        self
    }

    pub(super) fn review(mut self) -> Self {
        self.rules.review = true;
        self
    }

    pub(super) fn names(mut self, rule: NameRule) -> Self {
        self.rules.names = rule;
        self
    }
}

pub(super) fn rows() -> Vec<Row> {
    [
        core(),
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
            .put_creates(),
        ns("v1", "Event", "events")
            .short(&["ev"])
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
    deployment.rules.generation = Generation::ContentAndAnnotations;
    vec![
        deployment,
        ns("apps/v1", "ReplicaSet", "replicasets")
            .short(&["rs"])
            .all()
            .generation()
            .status(),
        ns("apps/v1", "StatefulSet", "statefulsets")
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
            .generation(),
        cluster("networking.k8s.io/v1", "IngressClass", "ingressclasses").generation(),
        cluster("networking.k8s.io/v1", "ServiceCIDR", "servicecidrs").status(),
        cluster("networking.k8s.io/v1", "IPAddress", "ipaddresses").short(&["ip"]),
        ns("discovery.k8s.io/v1", "EndpointSlice", "endpointslices").generation(),
    ]
}

fn policy() -> Vec<Row> {
    let rbac = "rbac.authorization.k8s.io/v1";
    vec![
        ns("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
            .short(&["pdb"])
            .generation()
            .status()
            .version_required(),
        ns(rbac, "Role", "roles")
            .put_creates()
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
            .generation(),
        cluster("node.k8s.io/v1", "RuntimeClass", "runtimeclasses")
            .put_creates()
            .version_required(),
        cluster(
            "certificates.k8s.io/v1",
            "CertificateSigningRequest",
            "certificatesigningrequests",
        )
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
