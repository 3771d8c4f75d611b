//! The kinds that are simulated.

use std::sync::Arc;

use lariat_apimachinery::kinds::{Catalog, Resource, TableId};
use lariat_core::ObjectKey;

use crate::control::controller::ControlPlane;
use crate::store::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Node,
    Pod,
    ReplicaSet,
    Deployment,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
    Service,
    Endpoints,
    EndpointSlice,
    Claim,
    Volume,
}

const KINDS: [Kind; 13] = [
    Kind::Node,
    Kind::Pod,
    Kind::ReplicaSet,
    Kind::Deployment,
    Kind::StatefulSet,
    Kind::DaemonSet,
    Kind::Job,
    Kind::CronJob,
    Kind::Service,
    Kind::Endpoints,
    Kind::EndpointSlice,
    Kind::Claim,
    Kind::Volume,
];

impl Kind {
    fn group_and_plural(self) -> (&'static str, &'static str) {
        match self {
            Self::Node => ("", "nodes"),
            Self::Pod => ("", "pods"),
            Self::ReplicaSet => ("apps", "replicasets"),
            Self::Deployment => ("apps", "deployments"),
            Self::StatefulSet => ("apps", "statefulsets"),
            Self::DaemonSet => ("apps", "daemonsets"),
            Self::Job => ("batch", "jobs"),
            Self::CronJob => ("batch", "cronjobs"),
            Self::Service => ("", "services"),
            Self::Endpoints => ("", "endpoints"),
            Self::EndpointSlice => ("discovery.k8s.io", "endpointslices"),
            Self::Claim => ("", "persistentvolumeclaims"),
            Self::Volume => ("", "persistentvolumes"),
        }
    }

    /// Returns the component of a real cluster that writes about this kind.
    pub(super) fn manager(self) -> &'static str {
        match self {
            Self::Node | Self::Pod => "kubelet",
            _ => "kube-controller-manager",
        }
    }

    pub(super) fn resource(self, catalog: &Catalog) -> Option<&Arc<Resource>> {
        let (group, plural) = self.group_and_plural();
        catalog.resource(group, "v1", plural)
    }
}

/// The tables of the objects of each kind.
#[derive(Debug)]
pub(super) struct Tables {
    tables: Vec<(TableId, Kind)>,
}

impl Tables {
    pub(super) fn new(plane: &ControlPlane) -> Self {
        let catalog = plane.server.kinds.catalog();
        let table = |kind: Kind| Some((kind.resource(&catalog)?.table, kind));
        Self {
            tables: KINDS.into_iter().filter_map(table).collect(),
        }
    }

    pub(super) fn kind(&self, table: TableId) -> Option<Kind> {
        let found = self.tables.iter().find(|(each, _)| *each == table);
        found.map(|(_, kind)| *kind)
    }
}

/// Returns the keys of all objects of a kind.
pub(super) fn keys(plane: &ControlPlane, kind: Kind) -> Vec<ObjectKey> {
    let catalog = plane.server.kinds.catalog();
    let table = kind.resource(&catalog).map(|resource| resource.table);
    let page = table.and_then(|table| plane.server.store.range(table, &Range::default()).ok());
    let objects = page.map(|page| page.objects).unwrap_or_default();
    objects.iter().map(|stored| stored.key().clone()).collect()
}
