//! A pool of HTTP/2 connections.

use std::sync::Arc;

use futures::FutureExt;
use http::{Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use tower::BoxError;

use super::line::{Answer, Line, SendError, Share};
use super::open::{OpenError, Opened, open};
use crate::client::dial::Dialer;
use crate::client::request::{Length, copy};
use crate::client::single::Single;

/// How often a request is sent that the server did not process.
const ATTEMPTS: usize = 3;

/// The result of a request.
pub(crate) enum Sent {
    Answered(Response<Answer>),
    /// The server does not speak HTTP/2; nothing was sent.
    NotHttp2(Request<Body>),
}

/// The pool of connections to one server.
pub(crate) struct Pool {
    lines: Mutex<Vec<Arc<Line>>>,
    /// Connections that are being opened, by the number of the certificates.
    opening: Single<Result<Opened, OpenError>, u64>,
    /// Whether HTTP/2 is used without negotiation.
    has_prior_knowledge: bool,
}

impl Pool {
    pub(crate) fn new(has_prior_knowledge: bool) -> Self {
        Self {
            lines: Mutex::default(),
            opening: Single::new(),
            has_prior_knowledge,
        }
    }

    /// Sends a request on a connection with a free slot; opens one if necessary.
    pub(crate) async fn send(
        &self,
        dialer: &Dialer,
        number: u64,
        mut request: Request<Body>,
    ) -> Result<Sent, BoxError> {
        let length = Length::of(&request);
        let mut attempt = 1;
        loop {
            let Some(share) = self.share(dialer, number, length).await? else {
                return Ok(Sent::NotHttp2(request));
            };
            // Only a request that the server has certainly not processed is sent again, whatever its method.
            let again = copy(&request).filter(|_| attempt < ATTEMPTS);
            match (share.send(request).await, again) {
                (Ok(response), _) => return Ok(Sent::Answered(response)),
                (Err(SendError::NotProcessed(_)), Some(again)) => request = again,
                (Err(SendError::NotProcessed(error) | SendError::Failed(error)), _) => {
                    return Err(error);
                }
            }
            attempt += 1;
        }
    }

    /// Returns a slot on a connection, or `None` if the server does not support HTTP/2.
    async fn share(
        &self,
        dialer: &Dialer,
        number: u64,
        length: Length,
    ) -> Result<Option<Share>, OpenError> {
        let mut opened: Option<Arc<Line>> = None;
        loop {
            if let Some(share) = self.room(number, length) {
                return Ok(Some(share));
            }
            // If other requests have filled the new connection, another one is opened. But a server that ends each
            // connection at once, or lowers its limit to zero, would cause an endless loop.
            if let Some(line) = opened.filter(|line| line.takes_none()) {
                return Err(OpenError::of_no_use(dialer, line.is_closed()));
            }
            let open = || {
                let (dialer, has_prior_knowledge) = (dialer.clone(), self.has_prior_knowledge);
                async move { open(&dialer, number, has_prior_knowledge).await }.boxed()
            };
            let line = match self.opening.join(number, open).await? {
                Opened::Line(line) => line,
                Opened::NotHttp2 => return Ok(None),
            };
            let mut lines = self.lines.lock();
            // All requests that waited for the connection get here; the first one adds it.
            if !lines.iter().any(|each| Arc::ptr_eq(each, &line)) {
                lines.push(Arc::clone(&line));
            }
            opened = Some(line);
        }
    }

    /// Returns a slot on an open connection; closes connections that are not needed.
    fn room(&self, number: u64, length: Length) -> Option<Share> {
        let mut lines = self.lines.lock();
        let usable = |line: &Arc<Line>| line.is_usable(number);
        let share = lines
            .iter()
            .filter(|line| usable(line))
            .find_map(|line| line.claim(length));
        let mut has_another = false;
        lines.retain(|line| {
            let keeps = line.is_used() || usable(line) && line.waits(has_another);
            has_another |= keeps && usable(line);
            keeps
        });
        share
    }
}
