//! The contents of a lease, and their form in lease objects.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::ObjectMeta;

/// The contents of a lease: client-go's `LeaderElectionRecord`.
///
/// The times were written by other machines. They are compared with each other for changes, and never with a clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// The holder identity; empty if the lease has no holder.
    pub(crate) holder: Arc<str>,
    /// The lease duration in seconds.
    pub(crate) seconds: i32,
    /// When the holder acquired the lease, on the holder's clock.
    pub(crate) acquired: Option<Timestamp>,
    /// When the holder last renewed the lease, on the holder's clock.
    pub(crate) renewed: Option<Timestamp>,
    /// How often the lease has changed its holder.
    pub(crate) transitions: i32,
}

impl Record {
    /// Creates the record of a holder that acquires the lease now.
    pub(crate) fn new(holder: &Arc<str>, seconds: i32, now: Timestamp) -> Self {
        Self {
            holder: Arc::clone(holder),
            seconds,
            acquired: Some(now),
            renewed: Some(now),
            transitions: 0,
        }
    }

    /// Returns the record of the released lease.
    ///
    /// As in client-go, it has no holder and a duration of one second, and keeps its transitions.
    pub(crate) fn released(&self, now: Timestamp) -> Self {
        Self {
            holder: Arc::default(),
            seconds: 1,
            acquired: Some(now),
            renewed: Some(now),
            transitions: self.transitions,
        }
    }

    /// Reads the record of an object; missing fields are empty or zero.
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

    /// Returns how long others wait after they have seen the record change.
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.seconds).unwrap_or_default())
    }

    /// Creates a new object with this record.
    pub(crate) fn create(&self, name: &str, namespace: &str) -> Object {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        };
        let spec = Some(LeaseSpec::default());
        self.replace(&Object { metadata, spec })
    }

    /// Returns an object with this record in place of its own.
    ///
    /// Labels, annotations and fields that do not belong to the election are kept.
    pub(crate) fn replace(&self, object: &Object) -> Object {
        let mut object = object.clone();
        // Without them in the request, the server keeps its own.
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
