//! What a lease says, and the objects that say it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::ObjectMeta;

/// What a lease says of its holder: client-go's `LeaderElectionRecord`.
///
/// Remote times are carried along and compared for change only, never with a clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// Empty while the lease has no holder.
    pub(crate) holder: Arc<str>,
    pub(crate) seconds: i32,
    pub(crate) acquired: Option<Timestamp>,
    pub(crate) renewed: Option<Timestamp>,
    pub(crate) transitions: i32,
}

impl Record {
    /// Makes the record of a holder that acquires the lease now.
    pub(crate) fn new(holder: &Arc<str>, seconds: i32, now: Timestamp) -> Self {
        Self {
            holder: Arc::clone(holder),
            seconds,
            acquired: Some(now),
            renewed: Some(now),
            transitions: 0,
        }
    }

    /// Makes the record of a lease that its holder releases.
    ///
    /// It expires after a second, and keeps its transitions.
    pub(crate) fn released(&self, now: Timestamp) -> Self {
        Self {
            holder: Arc::default(),
            seconds: 1,
            acquired: Some(now),
            renewed: Some(now),
            transitions: self.transitions,
        }
    }

    pub(crate) fn of(object: &Object) -> Self {
        let spec = object.spec.clone().unwrap_or_default();
        Self {
            holder: Arc::from(spec.holder_identity.unwrap_or_default()),
            seconds: spec.lease_duration_seconds.unwrap_or_default(),
            acquired: spec.acquire_time.map(|time| time.0),
            renewed: spec.renew_time.map(|time| time.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }

    /// Returns how long others wait after they saw it change.
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.seconds).unwrap_or_default())
    }

    /// Makes a new object that says this.
    pub(crate) fn create(&self, name: &str, namespace: &str) -> Object {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        };
        let spec = Some(LeaseSpec::default());
        self.replace(&Object { metadata, spec })
    }

    /// Makes the next state of an object.
    ///
    /// Labels, annotations and fields that are not the election's stay.
    pub(crate) fn replace(&self, object: &Object) -> Object {
        let mut object = object.clone();
        // The server keeps what it knows of field owners.
        object.metadata.managed_fields = None;
        let spec = object.spec.get_or_insert_default();
        spec.holder_identity = Some(self.holder.to_string());
        spec.lease_duration_seconds = Some(self.seconds);
        spec.acquire_time = self.acquired.map(MicroTime);
        spec.renew_time = self.renewed.map(MicroTime);
        spec.lease_transitions = Some(self.transitions);
        object
    }
}
