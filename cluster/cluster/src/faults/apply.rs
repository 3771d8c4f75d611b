//! Applies faults to a request and its answer.

use std::io;
use std::time::Duration;

use tokio::sync::watch::Receiver;
use tokio::time;

use super::{body, refuse};
use crate::fault::{Action, Refusal};
use crate::rules::{AppliedFaults, Partition};
use crate::server::Server;
use crate::status::ApiError;
use crate::wire::reply::Reply;

/// Handles a request under its faults; an error is a connection that breaks.
///
/// Faults of the objects of a request are applied [before its verb](super::before_verb).
pub(crate) async fn apply(
    server: &Server,
    applied: &AppliedFaults,
    handled: impl Future<Output = Reply>,
) -> io::Result<Reply> {
    if applied.actions.is_empty() {
        return Ok(handled.await);
    }
    let mut connection = Connection::new(server, &applied.client);
    if !applied.delay.is_zero() {
        connection.hold(applied.delay).await?;
        if server.stopped.is_cancelled() {
            return Ok(ApiError::shut_down().into());
        }
    }
    let reply = decide(&mut connection, applied, handled).await;
    if !applied.late.is_zero() {
        connection.hold(applied.late).await?;
    }
    reply
}

/// Applies the one fault that decides about a request.
async fn decide(
    connection: &mut Connection<'_>,
    applied: &AppliedFaults,
    handled: impl Future<Output = Reply>,
) -> io::Result<Reply> {
    match applied.fault.as_ref().map(|fault| &fault.action) {
        Some(Action::Refuse(refusal)) => Ok(refuse::reply(refusal)),
        Some(Action::LimitRequests(_)) => Ok(refuse::reply(&Refusal::too_many_requests())),
        Some(Action::NoAnswer) => Err(connection.never().await),
        Some(Action::NoReply) => {
            handled.await;
            Err(connection.never().await)
        }
        Some(Action::Disconnect) => Err(lost("the connection is closed")),
        Some(Action::LoseReply) => {
            handled.await;
            Err(lost("the reply is lost"))
        }
        Some(Action::Html) => Ok(body::page()),
        Some(Action::Garble) => Ok(body::garble(handled.await)),
        Some(Action::Truncate(bytes)) => {
            let reply = handled.await;
            Ok(reply.map(|body| body::truncate(body, *bytes)))
        }
        Some(Action::CutBody(bytes)) => {
            let reply = handled.await;
            Ok(reply.map(|body| body::cut(body, *bytes)))
        }
        Some(Action::Bandwidth(rate)) => {
            let reply = handled.await;
            Ok(reply.map(|body| body::throttle(body, *rate)))
        }
        Some(Action::SkipVersions(versions)) => {
            connection.server.store.skip_revisions(*versions);
            Ok(handled.await)
        }
        _ => Ok(handled.await),
    }
}

/// The connection of a request, as long as something is held.
struct Connection<'a> {
    server: &'a Server,
    client: &'a str,
    partitions: Receiver<Vec<Partition>>,
}

impl<'a> Connection<'a> {
    fn new(server: &'a Server, client: &'a str) -> Self {
        let mut partitions = server.faults.partitions();
        // Earlier isolations did not stop this request, so only later ones count.
        partitions.mark_unchanged();
        Self {
            server,
            client,
            partitions,
        }
    }

    /// Waits for some time, or until the cluster stops.
    ///
    /// An error is a client that was cut off meanwhile.
    async fn hold(&mut self, time: Duration) -> io::Result<()> {
        let stopped = &self.server.stopped;
        let is_silent = tokio::select! {
            // A client that is cut off at the same moment gets no answer.
            biased;
            is_silent = cut_off(&mut self.partitions, self.client) => is_silent,
            () = stopped.cancelled() => return Ok(()),
            () = time::sleep(time) => return Ok(()),
        };
        Err(self.end(is_silent).await)
    }

    /// Waits until the client is cut off, or the cluster stops.
    async fn never(&mut self) -> io::Error {
        let stopped = &self.server.stopped;
        let is_silent = tokio::select! {
            biased;
            is_silent = cut_off(&mut self.partitions, self.client) => is_silent,
            () = stopped.cancelled() => return lost("the request is not answered"),
        };
        self.end(is_silent).await
    }

    /// Ends a connection that was cut off, a silent one with the cluster.
    async fn end(&self, is_silent: bool) -> io::Error {
        if is_silent {
            self.server.stopped.cancelled().await;
        }
        lost("the client is cut off")
    }
}

/// Waits until a client is cut off, and returns whether its connections stay open.
async fn cut_off(partitions: &mut Receiver<Vec<Partition>>, client: &str) -> bool {
    while partitions.changed().await.is_ok() {
        let partitions = partitions.borrow_and_update();
        if let Some(by) = partitions.iter().find(|each| each.is(client)) {
            return by.silent;
        }
    }
    std::future::pending().await
}

fn lost(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, reason)
}
