//! Gates, which decide on the writes of handlers and of a whole factory.

use std::fmt;
use std::sync::Arc;

use lariat_cache::{CachedObject, GateDecision, PendingWrite, WriteReceipt, WriteResult};
use lariat_core::{Gvk, ObjectKey};

/// Decides on writes: send, send as a dry run, or refuse.
///
/// [`HandlerOptions::gate`](crate::HandlerOptions::gate) adds one for a handler,
/// [`SharedControllerFactory::add_gate`](crate::SharedControllerFactory::add_gate) one for the whole factory.
///
/// It is called once for every write, before it is sent, whether by kube's `Api` or as a raw request:
///
/// | client | the gates of a handler are asked | the gates of the factory are asked |
/// |---|---|---|
/// | of a call ([`Context::client`](crate::Context::client)), on any task or thread, also after the call | always | always |
/// | of the factory or of a kind, kept from before | on the task of the call only | always |
/// | that the factory was created with, or another one | never | never |
///
/// ```
/// use lariat::cache::GateDecision;
/// use lariat::controller::{Gate, GatedWrite};
/// use lariat::HandlerOptions;
///
/// struct ReadOnly;
///
/// impl Gate for ReadOnly {
///     fn admit(&self, write: &GatedWrite<'_>) -> GateDecision {
///         let handler = write.handler().unwrap_or("the program");
///         GateDecision::Refuse(format!("{handler} may only read").into())
///     }
/// }
///
/// let options = HandlerOptions::default().gate(ReadOnly);
/// # let _ = options;
/// ```
pub trait Gate: Send + Sync + 'static {
    /// Decides whether a write is sent.
    ///
    /// The write waits for the decision, so it must be fast. A panic in a call counts as a panic of the handler.
    fn admit(&self, write: &GatedWrite<'_>) -> GateDecision;
}

/// A write that is about to be sent, with the call that it belongs to.
pub struct GatedWrite<'a> {
    pub(crate) call: Option<GatedCall<'a>>,
    pub(crate) write: &'a PendingWrite<'a>,
}

/// The call of a handler that writes.
#[derive(Clone, Copy)]
pub(crate) struct GatedCall<'a> {
    pub(crate) gvk: &'a Gvk,
    pub(crate) handler: &'a str,
    pub(crate) key: &'a ObjectKey,
    pub(crate) object: Option<&'a Arc<CachedObject>>,
}

impl GatedWrite<'_> {
    /// Returns the request that is about to be sent.
    #[must_use]
    pub fn write(&self) -> &PendingWrite<'_> {
        self.write
    }

    /// Returns the name of the handler; `None` outside of calls.
    ///
    /// The gates of a handler are only asked about writes of its calls.
    #[must_use]
    pub fn handler(&self) -> Option<&str> {
        Some(self.call?.handler)
    }

    /// Returns the kind that the handler is called for; `None` outside of calls.
    #[must_use]
    pub fn gvk(&self) -> Option<&Gvk> {
        Some(self.call?.gvk)
    }

    /// Returns the key that the handler is called for; `None` outside of calls.
    #[must_use]
    pub fn key(&self) -> Option<&ObjectKey> {
        Some(self.call?.key)
    }

    /// Returns the object that the handler is called for, as the handler sees it.
    ///
    /// For a deleted object it is the last state.
    #[must_use]
    pub fn object(&self) -> Option<&Arc<CachedObject>> {
        self.call?.object
    }
}

impl fmt::Debug for GatedWrite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatedWrite")
            .field("handler", &self.handler())
            .field("key", &self.key())
            .field("write", self.write)
            .finish()
    }
}

/// Asks gates about a write, those of the factory before those of the handler.
///
/// The first refusal decides, and the receipts of the gates before it are notified. If one gate asks for a dry run, the
/// write is a dry run.
pub(crate) fn admit(
    of_factory: &[Arc<dyn Gate>],
    of_handler: &[Arc<dyn Gate>],
    write: &GatedWrite<'_>,
) -> GateDecision {
    // The usual case needs no list of receipts.
    if let ([], [gate]) | ([gate], []) = (of_factory, of_handler) {
        return gate.admit(write);
    }
    let mut receipts = Receipts::default();
    let mut is_dry_run = false;
    for gate in of_factory.iter().chain(of_handler) {
        match gate.admit(write) {
            GateDecision::Send(receipt) => receipts.0.push(receipt),
            GateDecision::DryRun(receipt) => {
                receipts.0.push(receipt);
                is_dry_run = true;
            }
            GateDecision::Refuse(error) => {
                // The gates before this one have counted a write that is not sent.
                Box::new(receipts).ended(&WriteResult::NotSent);
                return GateDecision::Refuse(error);
            }
            _ => {}
        }
    }
    if is_dry_run {
        GateDecision::DryRun(Box::new(receipts))
    } else if receipts.0.is_empty() {
        GateDecision::Pass
    } else {
        GateDecision::Send(Box::new(receipts))
    }
}

/// The receipts of several gates as one.
#[derive(Default)]
struct Receipts(Vec<Box<dyn WriteReceipt>>);

impl WriteReceipt for Receipts {
    fn ended(self: Box<Self>, end: &WriteResult<'_>) {
        self.0.into_iter().for_each(|receipt| receipt.ended(end));
    }
}
