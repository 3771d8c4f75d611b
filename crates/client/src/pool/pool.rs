//! A pool of HTTP/2 connections.

use std::sync::Arc;

use futures::FutureExt;
use http::{Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::BoxError;

use super::health::{Health, Replacements};
use super::line::{Answer, Line, SendError, Share};
use super::open::{OpenError, Opened, open};
use crate::dial::Dialer;
use crate::request::{Length, copy};
use crate::single::Single;

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
    lines: Mutex<Lines>,
    /// Connections that are being opened, by the number of the certificates.
    opening: Single<Result<Opened, OpenError>, u64>,
    /// Whether HTTP/2 is used without negotiation.
    has_prior_knowledge: bool,
}

/// The connections, and when suspect ones may be replaced.
#[derive(Default)]
struct Lines {
    open: Vec<Arc<Line>>,
    replacements: Replacements,
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
            let line = match self.opening.join(number, open).await {
                Ok(Opened::Line(line)) => line,
                Ok(Opened::NotHttp2) => return Ok(None),
                // A suspect connection is better than none.
                Err(error) => {
                    let share = self.lines.lock().reinstated(number, length);
                    return share.map(Some).ok_or(error);
                }
            };
            self.lines.lock().add(&line);
            opened = Some(line);
        }
    }

    /// Returns a slot on an open connection; closes connections that are not needed.
    fn room(&self, number: u64, length: Length) -> Option<Share> {
        let mut lines = self.lines.lock();
        lines.judge(number, Instant::now());
        let share = lines.claim(number, length);
        lines.close_unneeded(number);
        share
    }
}

impl Lines {
    fn claim(&self, number: u64, length: Length) -> Option<Share> {
        let mut usable = self.open.iter().filter(|line| line.is_usable(number));
        usable.find_map(|line| line.claim(length))
    }

    /// Adds a new connection, unless another request that waited for it has added it.
    fn add(&mut self, line: &Arc<Line>) {
        if !self.open.iter().any(|each| Arc::ptr_eq(each, line)) {
            self.open.push(Arc::clone(line));
        }
    }

    /// Lets a fresh connection take the requests of suspect ones, and the watches of those that it outdoes.
    fn judge(&mut self, number: u64, now: Instant) {
        let usable = |line: &&Arc<Line>| line.is_usable(number);
        let is = |line: &Arc<Line>, is_so: fn(&Health) -> bool| line.health(|health| is_so(health));
        let suspect: Vec<&Arc<Line>> = self
            .open
            .iter()
            .filter(usable)
            .filter(|line| is(line, Health::is_suspect))
            .collect();
        if !suspect.is_empty() && self.replacements.begin(now) {
            tracing::info!(
                connections = suspect.len(),
                "requests to the API server fail or watches are silent; a fresh connection is opened"
            );
            suspect.iter().for_each(|line| line.health(Health::replace));
        }
        let mut usable = self.open.iter().filter(usable);
        if usable.any(|line| is(line, Health::is_proven)) {
            self.replacements.works();
            let outdone = self.open.iter().filter(|line| is(line, Health::is_outdone));
            outdone.for_each(|line| line.move_watches());
        }
    }

    /// Lets replaced connections take requests again; returns a slot on one of them.
    fn reinstated(&self, number: u64, length: Length) -> Option<Share> {
        self.open
            .iter()
            .for_each(|line| line.health(Health::reinstate));
        self.claim(number, length)
    }

    fn close_unneeded(&mut self, number: u64) {
        let is_replaced = |line: &Arc<Line>| line.health(|health| health.is_replaced());
        let mut usable = self.open.iter().filter(|line| line.is_usable(number));
        let has_fresh = usable.any(|line| !is_replaced(line));
        let mut has_another = false;
        self.open.retain(|line| {
            let is_usable = line.is_usable(number);
            // A replaced one waits until the fresh one is open.
            let waits = if is_replaced(line) {
                !has_fresh
            } else {
                line.waits(has_another)
            };
            let keeps = line.is_used() || is_usable && waits;
            has_another |= keeps && is_usable;
            keeps
        });
    }
}
