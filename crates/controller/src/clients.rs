//! The authority of a factory's clients: gates, and the fence of the lease.
//!
//! The client of a call has the authority of the call, on whichever task or thread it is used, and when: the gates of
//! the handler, and the term in which it was called. A client that the factory or a kind hands out has the authority of
//! the factory: its gates, and the present term. On the task of a call it has that of the call, so that the gates of a
//! handler are asked about clients that the handler captured.

use std::sync::Arc;

use kube::Client;
use lariat_cache::{ClientIdentity, GateDecision, PendingWrite, SharedClientFactory, WriteGate};
use lariat_core::Fence;
use lariat_lease::Leadership;
use parking_lot::RwLock;

use crate::current::{self, Caller};
use crate::gate::{self, Gate, GatedWrite};
use crate::written::{self, Elsewhere};

/// The write gate of all clients of a factory.
pub(crate) struct FactoryGate {
    gates: RwLock<Arc<[Arc<dyn Gate>]>>,
    /// The leadership that writes need; `None` without an election.
    leadership: Option<Leadership>,
}

impl FactoryGate {
    pub(crate) fn new(leadership: Option<Leadership>) -> Self {
        Self {
            gates: RwLock::new(Arc::new([])),
            leadership,
        }
    }

    /// Adds a gate, for all further writes.
    pub(crate) fn add(&self, gate: Arc<dyn Gate>) {
        let mut gates = self.gates.write();
        *gates = gates.iter().cloned().chain([gate]).collect();
    }

    fn admit_for(&self, caller: Option<&Caller>, write: &PendingWrite<'_>) -> GateDecision {
        written::note(write);
        let of_factory = Arc::clone(&self.gates.read());
        let of_handler = caller.map_or(&[][..], |caller| &caller.gates);
        if of_factory.is_empty() && of_handler.is_empty() {
            return GateDecision::Pass;
        }
        let call = caller.map(Caller::gated);
        gate::admit(&of_factory, of_handler, &GatedWrite { call, write })
    }

    fn fence_for(&self, caller: Option<&Caller>) -> Option<Box<dyn Fence>> {
        let term = match caller {
            Some(caller) => caller.term.clone(),
            None => self.leadership.as_ref().map(Leadership::term),
        };
        Some(Box::new(term?))
    }
}

impl WriteGate for FactoryGate {
    fn admit(&self, write: &PendingWrite<'_>) -> GateDecision {
        current::with(|caller| self.admit_for(caller, write))
    }

    fn fence(&self) -> Option<Box<dyn Fence>> {
        current::with(|caller| self.fence_for(caller))
    }
}

/// The write gate of the client of one call.
struct CallGate {
    factory: Arc<FactoryGate>,
    caller: Caller,
    /// Records writes on other tasks; `None` if the client was not made on the task of the call.
    elsewhere: Option<Arc<Elsewhere>>,
}

impl WriteGate for CallGate {
    fn admit(&self, write: &PendingWrite<'_>) -> GateDecision {
        if let Some(elsewhere) = &self.elsewhere {
            elsewhere.note(write, self.caller.gvk(), self.caller.key());
        }
        self.factory.admit_for(Some(&self.caller), write)
    }

    fn fence(&self) -> Option<Box<dyn Fence>> {
        self.factory.fence_for(Some(&self.caller))
    }

    fn attribute(&self, publish: &mut dyn FnMut()) {
        current::attribute(&self.caller, publish);
    }
}

/// Creates the clients of calls.
#[derive(Clone)]
pub(crate) struct CallClients {
    pub(crate) clients: SharedClientFactory,
    pub(crate) gate: Arc<FactoryGate>,
}

impl CallClients {
    /// Creates a client with the authority of a call.
    pub(crate) fn of_call(&self, caller: Caller, identity: Option<&ClientIdentity>) -> Client {
        let gate = Arc::new(CallGate {
            factory: Arc::clone(&self.gate),
            caller,
            elsewhere: Elsewhere::of_call(),
        });
        let identity = identity.cloned().unwrap_or_default();
        self.clients
            .client_with_gate(identity, gate)
            .expect("the identity was checked when the handler was registered")
    }
}
