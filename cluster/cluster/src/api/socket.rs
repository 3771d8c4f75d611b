//! The socket of a client, which fails if the client takes nothing.

use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::connection::Connection;
use crate::idle_timeout::{IdleTimeout, Passed};

/// A socket that cuts off a client that reads nothing for too long.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    connection: Connection,
    /// Begins when the client takes nothing, and again whenever it takes something.
    idle_timeout: IdleTimeout,
}

impl Socket {
    /// Cuts off after some time, or never if that is zero.
    pub(super) fn new(stream: TcpStream, connection: Connection, timeout: Duration) -> Self {
        Self {
            stream,
            connection,
            idle_timeout: IdleTimeout::new(timeout),
        }
    }

    /// Waits for a client that takes nothing at present.
    ///
    /// A system says that a socket can be written only when much of its buffer is free, which takes a slow client very
    /// long. So writing is tried after each pause.
    fn wait(
        &mut self,
        cx: &mut Context<'_>,
        write: impl Fn(&mut std::net::TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        while ready!(self.idle_timeout.poll(cx)) == Passed::Pause {
            // Past tokio, which would ask the system again whether the socket can be written.
            let mut stream = SockRef::from(&self.stream).try_clone()?.into();
            match write(&mut stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => {
                    self.idle_timeout.renew();
                    return Poll::Ready(written);
                }
            }
        }
        self.connection.cut_off();
        // What is not sent is not to wait in the system for a client that does not come.
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO))?;
        let reason = "the client takes nothing of what is sent to it";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, reason)))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if written.is_pending() {
            return self.wait(cx, |stream| stream.write(bytes));
        }
        self.idle_timeout.renew();
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        if written.is_pending() {
            return self.wait(cx, |stream| stream.write_vectored(parts));
        }
        self.idle_timeout.renew();
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}
