//! Gates of handlers: who is asked before a handler writes.

use std::fmt;
use std::sync::Arc;

use lariat_cache::{Admission, CachedObject, PendingWrite, WriteEnd, WriteReceipt};
use lariat_core::{Gvk, ObjectKey};

/// Is asked before a handler writes; see [`HandlerOptions::gate`](crate::HandlerOptions::gate).
///
/// It sees every write through the factory's clients on the task of the call, whoever made the client and as whoever
/// it writes: kube's `Api`, requests made by hand, retries. It does not see what is written through a client the
/// factory did not give out, nor on tasks the handler spawned.
pub trait Gate: Send + Sync + 'static {
    /// Judges a write. The call waits for it, so it must be prompt; a panic in it is the handler's.
    fn admit(&self, write: &HandlerWrite<'_>) -> Admission;
}

/// A write of a handler that is about to be sent.
pub struct HandlerWrite<'a> {
    gvk: &'a Gvk,
    gated: &'a Gated,
    write: &'a PendingWrite<'a>,
}

/// A call of a handler that has gates.
#[derive(Clone)]
pub(crate) struct Gated {
    handler: Arc<str>,
    gates: Arc<[Arc<dyn Gate>]>,
    key: ObjectKey,
    object: Option<Arc<CachedObject>>,
}

impl HandlerWrite<'_> {
    /// Returns what is written.
    #[must_use]
    pub fn write(&self) -> &PendingWrite<'_> {
        self.write
    }

    /// Returns the name of the handler.
    #[must_use]
    pub fn handler(&self) -> &str {
        &self.gated.handler
    }

    /// Returns the kind the handler is called for.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        self.gvk
    }

    /// Returns the key the handler is called for.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.gated.key
    }

    /// Returns the object the handler is called for, in the state it was shown; the last one if it was deleted.
    #[must_use]
    pub fn object(&self) -> Option<&Arc<CachedObject>> {
        self.gated.object.as_ref()
    }
}

impl fmt::Debug for HandlerWrite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerWrite")
            .field("handler", &self.handler())
            .field("key", self.key())
            .field("write", self.write)
            .finish()
    }
}

impl Gated {
    /// Makes the call of a handler by its name, its gates and what it is about.
    pub(crate) fn new(
        handler: &Arc<str>,
        gates: &Arc<[Arc<dyn Gate>]>,
        key: &ObjectKey,
        object: Option<&Arc<CachedObject>>,
    ) -> Self {
        Self {
            handler: Arc::clone(handler),
            gates: Arc::clone(gates),
            key: key.clone(),
            object: object.cloned(),
        }
    }

    /// Asks all gates; one that refuses decides.
    pub(crate) fn admit(&self, gvk: &Gvk, write: &PendingWrite<'_>) -> Admission {
        let write = HandlerWrite {
            gvk,
            gated: self,
            write,
        };
        if let [gate] = &*self.gates {
            return gate.admit(&write);
        }
        let mut receipts = Receipts::default();
        let mut is_dry_run = false;
        for gate in self.gates.iter() {
            match gate.admit(&write) {
                Admission::Send(receipt) => receipts.0.push(receipt),
                Admission::DryRun(receipt) => {
                    receipts.0.push(receipt);
                    is_dry_run = true;
                }
                Admission::Refuse(error) => {
                    Box::new(receipts).ended(&WriteEnd::NotSent);
                    return Admission::Refuse(error);
                }
                _ => {}
            }
        }
        if is_dry_run {
            Admission::DryRun(Box::new(receipts))
        } else if receipts.0.is_empty() {
            Admission::Pass
        } else {
            Admission::Send(Box::new(receipts))
        }
    }
}

/// The receipts of several gates.
#[derive(Default)]
struct Receipts(Vec<Box<dyn WriteReceipt>>);

impl WriteReceipt for Receipts {
    fn ended(self: Box<Self>, end: &WriteEnd<'_>) {
        self.0.into_iter().for_each(|receipt| receipt.ended(end));
    }
}
