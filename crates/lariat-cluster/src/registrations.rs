//! What is registered for admission: configurations, read once for each of their states.

use std::sync::Arc;

use lariat_apimachinery::admission::Webhook;
use lariat_apimachinery::kinds::TableId;
use lariat_apimachinery::object::Object;
use parking_lot::Mutex;

use crate::store::{Range, Store};

/// What is registered for admission.
#[derive(Debug)]
pub(crate) struct Registrations {
    pub(crate) mutating_webhooks: Registered<Webhook>,
    pub(crate) validating_webhooks: Registered<Webhook>,
}

/// What the objects of one table register, in the order of their names.
#[derive(Debug)]
pub(crate) struct Registered<T> {
    table: TableId,
    read: fn(&Object) -> Vec<T>,
    known: Mutex<Known<T>>,
}

#[derive(Debug)]
struct Known<T> {
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
        }
    }
}

impl<T> Registered<T> {
    fn new(table: TableId, read: fn(&Object) -> Vec<T>) -> Self {
        let known = Known {
            states: Vec::new(),
            all: Arc::new([]),
        };
        Self {
            table,
            read,
            known: Mutex::new(known),
        }
    }

    /// Returns what is registered now.
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
        let mut known = self.known.lock();
        if known.states != states {
            let each = objects.iter().flat_map(|each| (self.read)(&each.object()));
            known.all = each.map(Arc::new).collect();
            known.states = states;
        }
        Arc::clone(&known.all)
    }
}
