//! Gates, which decide on the writes of a handler.

use std::fmt;
use std::sync::Arc;

use lariat_cache::{Admission, CachedObject, PendingWrite, WriteEnd, WriteReceipt};
use lariat_core::{Gvk, ObjectKey};

/// Decides on the writes of a handler: send, send as a dry run, or refuse.
///
/// Add it with [`HandlerOptions::gate`](crate::HandlerOptions::gate).
///
/// It is called for every write through the factory's clients on the task of the call, whatever the clone and the
/// identity: requests of kube's `Api`, raw requests, and retries. It is not called for writes through other clients,
/// nor for those of tasks that the handler spawned.
///
/// ```
/// use lariat::cache::Admission;
/// use lariat::controller::{Gate, HandlerWrite};
/// use lariat::HandlerOptions;
///
/// struct ReadOnly;
///
/// impl Gate for ReadOnly {
///     fn admit(&self, write: &HandlerWrite<'_>) -> Admission {
///         Admission::Refuse(format!("{} may only read", write.handler()).into())
///     }
/// }
///
/// let options = HandlerOptions::default().gate(ReadOnly);
/// # let _ = options;
/// ```
pub trait Gate: Send + Sync + 'static {
    /// Decides whether a write is sent.
    ///
    /// The write waits for the decision, so it must be fast. A panic counts as a panic of the handler.
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
    /// Returns the request that is about to be sent.
    #[must_use]
    pub fn write(&self) -> &PendingWrite<'_> {
        self.write
    }

    /// Returns the name of the handler.
    #[must_use]
    pub fn handler(&self) -> &str {
        &self.gated.handler
    }

    /// Returns the kind that the handler is called for.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        self.gvk
    }

    /// Returns the key that the handler is called for.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.gated.key
    }

    /// Returns the object that the handler is called for, as the handler sees it.
    ///
    /// For a deleted object it is the last state.
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
    /// Creates the call from the handler's name, its gates, and the object.
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

    /// Asks all gates.
    ///
    /// The first refusal decides, and the receipts of the gates before it are notified. If one gate asks for a dry run,
    /// the write is a dry run.
    pub(crate) fn admit(&self, gvk: &Gvk, write: &PendingWrite<'_>) -> Admission {
        let write = HandlerWrite {
            gvk,
            gated: self,
            write,
        };
        // The usual case needs no list of receipts.
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
                    // The gates before this one have counted a write that is not sent.
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

/// The receipts of several gates as one.
#[derive(Default)]
struct Receipts(Vec<Box<dyn WriteReceipt>>);

impl WriteReceipt for Receipts {
    fn ended(self: Box<Self>, end: &WriteEnd<'_>) {
        self.0.into_iter().for_each(|receipt| receipt.ended(end));
    }
}
