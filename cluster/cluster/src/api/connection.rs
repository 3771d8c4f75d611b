//! A connection, as the requests that come by it know it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use crate::journal::Mark;
use crate::server::Server;
use crate::wire::delivery::Delivery;

tokio::task_local! {
    /// The delivery of the response that is made and sent by this task, over HTTP/2.
    pub(super) static DELIVERY: Delivery;
}

/// The shared state of one connection.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    server: Arc<Server>,
    state: Arc<State>,
    /// Ends the connection.
    pub(super) ended: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    /// A request has come by it.
    is_used: AtomicBool,
    /// Its client took nothing for too long.
    is_cut_off: AtomicBool,
}

impl Connection {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self {
            ended: server.stopped.child_token(),
            server,
            state: Arc::default(),
        }
    }

    /// Notes that a request has come.
    pub(super) fn used(&self) {
        // Relaxed here and below: the flags guard no other memory.
        self.state.is_used.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_used(&self) -> bool {
        self.state.is_used.load(Ordering::Relaxed)
    }

    /// Notes that the client took nothing for too long.
    pub(super) fn cut_off(&self) {
        self.state.is_cut_off.store(true, Ordering::Relaxed);
        self.server.count_cut_off();
    }

    pub(super) fn is_cut_off(&self) -> bool {
        self.state.is_cut_off.load(Ordering::Relaxed)
    }

    /// Records that the client did not read one response, given by its delivery.
    pub(super) fn cut_off_from(&self, delivery: &Delivery) {
        delivery.cut_off();
        self.server.count_cut_off();
    }

    /// Returns the journal's writer of whether a response was cut off.
    pub(super) fn cut_off_guard(&self, request: Option<Mark>) -> CutOffGuard {
        CutOffGuard {
            connection: self.clone(),
            // HTTP/1.1 has none: its connection carries one response at a time.
            delivery: DELIVERY.try_with(Delivery::clone).ok(),
            request,
        }
    }
}

/// Notes in the journal, when it is dropped, whether a response was cut off.
#[derive(Debug)]
pub(super) struct CutOffGuard {
    connection: Connection,
    delivery: Option<Delivery>,
    request: Option<Mark>,
}

impl Drop for CutOffGuard {
    fn drop(&mut self) {
        let Some(request) = self.request else { return };
        let delivery = self.delivery.as_ref();
        if self.connection.is_cut_off() || delivery.is_some_and(Delivery::is_cut_off) {
            self.connection.server.journal.cut_off(request);
        }
    }
}
