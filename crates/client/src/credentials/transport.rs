//! The connections of one certificate.

use hyper_util::client::legacy::{Builder, Client as HyperClient};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::Body;
use parking_lot::Mutex;

use crate::dial::{self, Dialer};
use crate::pool::{CONNECTION_WINDOW, PING_AFTER, PING_TIMEOUT, STREAM_WINDOW};
use crate::socket::Offer;

type Hyper = HyperClient<Dialer, Body>;

/// Opens connections with one certificate.
pub(crate) struct Transport {
    /// A number that differs for each certificate.
    pub(crate) number: u64,
    /// A hash of the certificates and the other settings of TLS.
    pub(super) certificate: u64,
    pub(crate) dialer: Dialer,
    /// Uses HTTP/1.1, unless the server chooses HTTP/2.
    pub(crate) http1: Http1,
    /// Uses HTTP/1.1 only, for exec, attach and port-forward.
    pub(crate) upgrades: Http1,
}

/// An HTTP/1.1 client whose idle connections can be dropped.
pub(crate) struct Http1 {
    dialer: Dialer,
    /// Replaced to drop its connections, because hyper's pool cannot be emptied.
    hyper: Mutex<Hyper>,
}

impl Transport {
    pub(super) fn new(
        config: &Config,
        offer: Offer,
        number: u64,
        certificate: u64,
    ) -> Result<Self, kube::Error> {
        let [dialer, upgrades] = dial::dialers(config, [offer, Offer::Http1])?;
        Ok(Self {
            number,
            certificate,
            http1: Http1::new(dialer.clone()),
            upgrades: Http1::new(upgrades),
            dialer,
        })
    }

    /// Closes idle HTTP/1.1 connections now, and the others once their answer was read.
    pub(crate) fn forget_idle(&self) {
        self.http1.forget_idle();
        self.upgrades.forget_idle();
    }
}

impl Http1 {
    fn new(dialer: Dialer) -> Self {
        let hyper = Mutex::new(hyper(dialer.clone()));
        Self { dialer, hyper }
    }

    pub(crate) fn get(&self) -> Hyper {
        self.hyper.lock().clone()
    }

    /// Returns the dialer of the connections.
    pub(crate) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    fn forget_idle(&self) {
        let next = hyper(self.dialer.clone());
        // The old client closes its connections when it is dropped, after the lock is released.
        let old = std::mem::replace(&mut *self.hyper.lock(), next);
        drop(old);
    }
}

/// Creates an HTTP/1.1 client.
fn hyper(dialer: Dialer) -> Hyper {
    Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .build(dialer)
}
