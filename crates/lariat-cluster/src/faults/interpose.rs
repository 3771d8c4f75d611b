//! Where faults stand between a request and its answer.

use std::io;

use tokio::time;

use super::{Action, Met, spoil};
use crate::api::reply::Reply;
use crate::api::status::ApiError;
use crate::server::Server;

/// Handles a request, unless something decides otherwise; an error is a connection that breaks.
///
/// What happens to single verbs is up to them.
pub(crate) async fn interpose(
    server: &Server,
    met: &Met,
    handled: impl Future<Output = Reply>,
) -> io::Result<Reply> {
    if !met.delay.is_zero() {
        tokio::select! {
            () = time::sleep(met.delay) => {}
            () = server.stopped.cancelled() => return Ok(ApiError::shut_down().into()),
        }
    }
    match met.fault.as_ref().map(|fault| &fault.action) {
        Some(Action::Refuse(refusal)) => Ok(refusal.reply()),
        Some(Action::NoAnswer) => {
            server.stopped.cancelled().await;
            Err(lost("the request is not answered"))
        }
        Some(Action::Disconnect) => Err(lost("the connection is closed")),
        Some(Action::LoseReply) => {
            handled.await;
            Err(lost("the reply is lost"))
        }
        Some(Action::Html) => Ok(spoil::page()),
        Some(Action::Garble) => Ok(spoil::garble(handled.await)),
        Some(Action::Truncate(bytes)) => {
            let reply = handled.await;
            Ok(reply.map(|body| spoil::truncate(body, *bytes)))
        }
        Some(Action::Bandwidth(rate)) => {
            let reply = handled.await;
            Ok(reply.map(|body| spoil::throttle(body, *rate)))
        }
        Some(Action::SkipVersions(versions)) => {
            server.store.skip_revisions(*versions);
            Ok(handled.await)
        }
        _ => Ok(handled.await),
    }
}

fn lost(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, why)
}
