//! Switches controllers of the control plane on and off.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use crate::time::Time;
use crate::workloads::Workloads;

/// The control plane's settings in a new cluster.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) time: Time,
    pub(crate) garbage_collection: bool,
    pub(crate) namespace_deletion: bool,
    pub(crate) namespace_defaults: bool,
    pub(crate) service_accounts: bool,
    pub(crate) quotas: bool,
    pub(crate) volume_protection: bool,
    pub(crate) role_aggregation: bool,
    pub(crate) workloads: Option<Workloads>,
    /// The addresses of Services that webhooks are behind, by namespace and name.
    pub(crate) services: BTreeMap<(String, String), SocketAddr>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            time: Time::default(),
            garbage_collection: true,
            namespace_deletion: true,
            namespace_defaults: false,
            service_accounts: false,
            quotas: true,
            volume_protection: true,
            role_aggregation: true,
            workloads: None,
            services: BTreeMap::new(),
        }
    }
}

/// The switches of the controllers.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    pub(crate) garbage_collection_off: AtomicBool,
    pub(crate) namespaces_off: AtomicBool,
    makes_defaults: bool,
    admits_accounts: bool,
    enforces_quotas: bool,
    protects_volumes: bool,
    aggregates_roles: bool,
    turned: Notify,
}

impl Switches {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            garbage_collection_off: AtomicBool::new(!settings.garbage_collection),
            namespaces_off: AtomicBool::new(!settings.namespace_deletion),
            makes_defaults: settings.namespace_defaults || settings.service_accounts,
            admits_accounts: settings.service_accounts,
            enforces_quotas: settings.quotas,
            protects_volumes: settings.volume_protection,
            aggregates_roles: settings.role_aggregation,
            turned: Notify::new(),
        }
    }

    /// Waits until something is switched.
    pub(crate) async fn turned(&self) {
        self.turned.notified().await;
    }

    pub(crate) fn collects_garbage(&self) -> bool {
        !self.garbage_collection_off.load(Ordering::Relaxed)
    }

    pub(crate) fn empties_namespaces(&self) -> bool {
        !self.namespaces_off.load(Ordering::Relaxed)
    }

    /// Returns whether namespaces get their default objects.
    pub(crate) fn makes_defaults(&self) -> bool {
        self.makes_defaults
    }

    /// Returns whether Pods get a service account and its token.
    pub(crate) fn admits_accounts(&self) -> bool {
        self.admits_accounts
    }

    /// Returns whether quotas are enforced, and their usage is counted.
    pub(crate) fn enforces_quotas(&self) -> bool {
        self.enforces_quotas
    }

    /// Returns whether deleted volumes and claims go once nothing uses them.
    pub(crate) fn protects_volumes(&self) -> bool {
        self.protects_volumes
    }

    /// Returns whether ClusterRoles get the rules of those they select.
    pub(crate) fn aggregates_roles(&self) -> bool {
        self.aggregates_roles
    }

    /// Wakes the controllers.
    pub(crate) fn notify(&self) {
        // Unlike `notify_waiters` this is kept for controllers that are at work and not waiting now.
        self.turned.notify_one();
    }

    pub(crate) fn set(&self, switch: &AtomicBool, off: bool) {
        switch.store(off, Ordering::Relaxed);
        self.notify();
    }
}
