//! The requests of an HTTP/2 connection, each a task.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::Executor;
use tokio_util::task::TaskTracker;

use super::connection::{Connection, DELIVERY};
use crate::idle_timeout::{IdleTimeout, Passed};
use crate::wire::delivery::Delivery;

/// Runs the requests of one HTTP/2 connection as tasks of the cluster.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    pub(super) tasks: TaskTracker,
    pub(super) connection: Connection,
    pub(super) peer: SocketAddr,
    /// The longest time a client may take nothing of a response.
    pub(super) timeout: Duration,
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let delivery = Delivery::default();
        let served = Served {
            stream: Box::pin(DELIVERY.scope(delivery.clone(), stream)),
            delivery,
            offered: 0,
            idle_timeout: IdleTimeout::new(self.timeout),
            connection: self.connection.clone(),
            peer: self.peer,
        };
        let connection = self.connection.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = served => {}
                () = connection.ended.cancelled() => {}
            }
        });
    }
}

/// A stream that ends once its client has read nothing for too long.
///
/// A client that does not read one stream does read its connection, so the [socket](super::socket) goes on. That the
/// stream waits can be seen only by what is asked of the body.
struct Served<F> {
    stream: Pin<Box<F>>,
    delivery: Delivery,
    /// The number of offers when the client took something last.
    offered: u64,
    /// Begins when the client takes nothing.
    idle_timeout: IdleTimeout,
    connection: Connection,
    peer: SocketAddr,
}

impl<F: Future> Future for Served<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.stream.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        ready!(self.poll_wait(cx));
        // Then it is dropped, by which it is reset.
        self.connection.cut_off_from(&self.delivery);
        let peer = self.peer;
        tracing::warn!(%peer, "a response is cut off: its client takes nothing of it");
        Poll::Ready(())
    }
}

impl<F> Served<F> {
    /// Waits until the client has taken nothing for too long.
    fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(offered) = self.delivery.waiting() else {
            self.idle_timeout.renew();
            return Poll::Pending;
        };
        // Another piece is offered than at the last look, so the client has taken the one before.
        if std::mem::replace(&mut self.offered, offered) != offered {
            self.idle_timeout.renew();
        }
        while ready!(self.idle_timeout.poll(cx)) != Passed::All {}
        Poll::Ready(())
    }
}
