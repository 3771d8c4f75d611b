//! Admission configurations, read once for each of their states.

use std::collections::HashMap;
use std::sync::Arc;

use lariat_apimachinery::admission::{Binding, Policy, Webhook};
use lariat_apimachinery::kinds::{Resource, TableId};
use lariat_apimachinery::object::Object;
use parking_lot::Mutex;

use crate::store::{Range, Store, Stored};

/// The registered admission webhooks and policies.
#[derive(Debug)]
pub(crate) struct Registrations {
    pub(crate) mutating_webhooks: Registered<Webhook>,
    pub(crate) validating_webhooks: Registered<Webhook>,
    pub(crate) validating_policies: Registered<Policy>,
    pub(crate) validating_bindings: Registered<Binding>,
    pub(crate) mutating_policies: Registered<Policy>,
    pub(crate) mutating_bindings: Registered<Binding>,
    pub(crate) converted: Converted,
}

/// Custom resources that webhooks converted from their stored version.
///
/// It is a cache: what was put into it may be gone at any time.
#[derive(Debug)]
pub(crate) struct Converted {
    known: Mutex<HashMap<ConvertedKey, Arc<Stored>>>,
    /// The number of objects it keeps.
    most: usize,
}

/// The uid of an object, its version, and the revision of its CRD.
type ConvertedKey = (Arc<str>, String, u64);

/// The number of objects that are kept in other versions.
const MOST_CONVERTED: usize = 10_000;

impl Converted {
    /// Makes a cache of so many objects.
    pub(crate) fn of(most: usize) -> Self {
        Self {
            known: Mutex::default(),
            most,
        }
    }

    /// Returns a state in another version, if that is known.
    pub(crate) fn get(&self, resource: &Resource, stored: &Stored) -> Option<Arc<Stored>> {
        let known = self.known.lock().get(&key(resource, stored)).cloned();
        // The key has no revision, so that a new state replaces the old one and the map does not grow with changes.
        known.filter(|known| known.revision() == stored.revision())
    }

    /// Keeps a state in another version.
    pub(crate) fn put(&self, resource: &Resource, converted: &Arc<Stored>) {
        let mut known = self.known.lock();
        // All at once: what is still in use is converted again soon, and no order of use has to be kept.
        if known.len() >= self.most {
            known.clear();
        }
        known.insert(key(resource, converted), Arc::clone(converted));
    }
}

fn key(resource: &Resource, stored: &Stored) -> ConvertedKey {
    let version = resource.version.clone();
    (stored.shared_uid(), version, resource.outdated.up_to)
}

/// The parsed objects of one table, in the order of their names.
#[derive(Debug)]
pub(crate) struct Registered<T> {
    table: TableId,
    read: fn(&Object) -> Vec<T>,
    parsed: Mutex<Parsed<T>>,
}

#[derive(Debug)]
struct Parsed<T> {
    /// The objects that were read, by uid and revision.
    states: Vec<(Arc<str>, u64)>,
    all: Arc<[Arc<T>]>,
}

impl Registrations {
    pub(crate) fn new(store: &Store) -> Self {
        let table = |plural: &str| store.table(&format!("{plural}.admissionregistration.k8s.io"));
        Self {
            mutating_webhooks: Registered::new(
                table("mutatingwebhookconfigurations"),
                Webhook::read_all,
            ),
            validating_webhooks: Registered::new(
                table("validatingwebhookconfigurations"),
                Webhook::read_all,
            ),
            validating_policies: Registered::new(
                table("validatingadmissionpolicies"),
                Policy::read,
            ),
            validating_bindings: Registered::new(
                table("validatingadmissionpolicybindings"),
                Binding::read,
            ),
            mutating_policies: Registered::new(table("mutatingadmissionpolicies"), Policy::read),
            mutating_bindings: Registered::new(
                table("mutatingadmissionpolicybindings"),
                Binding::read,
            ),
            converted: Converted::of(MOST_CONVERTED),
        }
    }

    /// Returns whether no webhook and no policy is registered.
    pub(crate) fn is_void(&self, store: &Store) -> bool {
        store.are_empty(&[
            self.mutating_webhooks.table,
            self.validating_webhooks.table,
            self.mutating_policies.table,
            self.validating_policies.table,
        ])
    }
}

impl<T> Registered<T> {
    fn new(table: TableId, read: fn(&Object) -> Vec<T>) -> Self {
        let parsed = Parsed {
            states: Vec::new(),
            all: Arc::new([]),
        };
        Self {
            table,
            read,
            parsed: Mutex::new(parsed),
        }
    }

    /// Returns the present registrations.
    pub(crate) fn all(&self, store: &Store) -> Arc<[Arc<T>]> {
        let page = store.range(self.table, &Range::default());
        let objects = page.map(|page| page.objects).unwrap_or_default();
        if objects.is_empty() {
            return Arc::new([]);
        }
        let states: Vec<_> = objects
            .iter()
            .map(|each| (each.shared_uid(), each.revision()))
            .collect();
        let mut parsed = self.parsed.lock();
        // Every write of any object comes here; only when a registration has changed are expressions compiled again.
        if parsed.states != states {
            let each = objects.iter().flat_map(|each| (self.read)(&each.object()));
            parsed.all = each.map(Arc::new).collect();
            parsed.states = states;
        }
        Arc::clone(&parsed.all)
    }
}
