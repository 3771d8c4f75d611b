//! Which built-in kind is printed how.
//!
//! Source: `k8s.io/kubernetes/pkg/printers/internalversion`; what is not there has the table of
//! `NewDefaultTableConvertor` in `k8s.io/apiserver/pkg/registry/rest`.

use super::column::{CREATED_AT, NAME, Printer};
use super::{autoscaling, cluster, devices, networking, pods, policy, storage, workloads};

/// Name and time of creation, for kinds without columns of their own.
const DEFAULT: Printer = Printer {
    columns: &[NAME, CREATED_AT],
    cells: |object| {
        vec![
            object.name().into(),
            object.text("/metadata/creationTimestamp").into(),
        ]
    },
};

/// Returns how the objects of a built-in kind are printed.
pub(super) fn printer(group: &str, plural: &str) -> Printer {
    match group {
        "" => core(plural),
        "apps" | "batch" | "autoscaling" | "policy" => workload(plural),
        "networking.k8s.io" | "discovery.k8s.io" => network(plural),
        "storage.k8s.io" => store(plural),
        "resource.k8s.io" => device(plural),
        _ => machinery(group, plural),
    }
}

fn core(plural: &str) -> Printer {
    match plural {
        "configmaps" => cluster::CONFIG_MAPS,
        "secrets" => cluster::SECRETS,
        "serviceaccounts" => cluster::SERVICE_ACCOUNTS,
        "namespaces" => cluster::NAMESPACES,
        "nodes" => cluster::NODES,
        "events" => cluster::CORE_EVENTS,
        "resourcequotas" => cluster::QUOTAS,
        "pods" => pods::PODS,
        "podtemplates" => pods::POD_TEMPLATES,
        "replicationcontrollers" => workloads::REPLICATION_CONTROLLERS,
        "services" => networking::SERVICES,
        "endpoints" => networking::ENDPOINTS,
        "persistentvolumes" => storage::VOLUMES,
        "persistentvolumeclaims" => storage::CLAIMS,
        _ => DEFAULT,
    }
}

fn workload(plural: &str) -> Printer {
    match plural {
        "deployments" => workloads::DEPLOYMENTS,
        "replicasets" => workloads::REPLICA_SETS,
        "statefulsets" => workloads::STATEFUL_SETS,
        "daemonsets" => workloads::DAEMON_SETS,
        "controllerrevisions" => workloads::CONTROLLER_REVISIONS,
        "jobs" => workloads::JOBS,
        "cronjobs" => workloads::CRON_JOBS,
        "horizontalpodautoscalers" => autoscaling::AUTOSCALERS,
        "poddisruptionbudgets" => workloads::DISRUPTION_BUDGETS,
        _ => DEFAULT,
    }
}

fn network(plural: &str) -> Printer {
    match plural {
        "ingresses" => networking::INGRESSES,
        "ingressclasses" => networking::INGRESS_CLASSES,
        "networkpolicies" => networking::NETWORK_POLICIES,
        "endpointslices" => networking::ENDPOINT_SLICES,
        "ipaddresses" => networking::IP_ADDRESSES,
        "servicecidrs" => networking::SERVICE_CIDRS,
        _ => DEFAULT,
    }
}

fn store(plural: &str) -> Printer {
    match plural {
        "storageclasses" => storage::STORAGE_CLASSES,
        "volumeattributesclasses" => storage::ATTRIBUTES_CLASSES,
        "volumeattachments" => storage::ATTACHMENTS,
        "csidrivers" => storage::CSI_DRIVERS,
        "csinodes" => storage::CSI_NODES,
        "csistoragecapacities" => storage::CSI_CAPACITIES,
        _ => DEFAULT,
    }
}

fn device(plural: &str) -> Printer {
    match plural {
        "resourceclaims" => devices::CLAIMS,
        "resourceslices" => devices::SLICES,
        _ => devices::OTHERS,
    }
}

fn machinery(group: &str, plural: &str) -> Printer {
    match (group, plural) {
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => policy::BINDINGS,
        ("certificates.k8s.io", "certificatesigningrequests") => policy::SIGNING_REQUESTS,
        ("coordination.k8s.io", "leases") => cluster::LEASES,
        ("events.k8s.io", "events") => cluster::EVENTS,
        ("scheduling.k8s.io", "priorityclasses") => cluster::PRIORITY_CLASSES,
        ("node.k8s.io", "runtimeclasses") => cluster::RUNTIME_CLASSES,
        (
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations" | "mutatingwebhookconfigurations",
        ) => policy::WEBHOOKS,
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => {
            policy::ADMISSION_POLICIES
        }
        ("admissionregistration.k8s.io", "validatingadmissionpolicybindings") => {
            policy::ADMISSION_BINDINGS
        }
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => policy::FLOW_SCHEMAS,
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => policy::PRIORITY_LEVELS,
        ("apiregistration.k8s.io", "apiservices") => policy::API_SERVICES,
        _ => DEFAULT,
    }
}
