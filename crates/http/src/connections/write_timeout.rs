//! A stream that fails if the client does not read for some time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{self, Instant, Sleep};

/// A stream that fails if the client does not read for some time.
///
/// hyper has a timeout for the header of a request, but none for writing. A client that never reads would keep its
/// connection forever. It lies directly around the socket, whose flushes and shutdowns do not wait.
pub(super) struct WriteTimeout<S> {
    /// The stream.
    stream: S,
    /// The timeout.
    limit: Duration,
    /// When the stream fails; counts only while `is_waiting`.
    timer: Pin<Box<Sleep>>,
    /// Whether a write is waiting for the client.
    is_waiting: bool,
}

impl<S> WriteTimeout<S> {
    /// Wraps a stream.
    pub(super) fn new(stream: S, limit: Duration) -> Self {
        Self {
            stream,
            limit,
            timer: Box::pin(time::sleep(limit)),
            is_waiting: false,
        }
    }

    /// Returns the result of a write, or a timeout if it has waited for too long.
    fn watched<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.timer.as_mut().reset(Instant::now() + self.limit);
        }
        ready!(self.timer.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.watched(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const STALLED: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn write_times_out_when_the_client_does_not_read() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut stream = WriteTimeout::new(ours, STALLED);
        stream.write_all(b"12345678").await.unwrap();
        // A client that reads now and then is not cut off.
        for _ in 0..3 {
            let more = async {
                time::sleep(STALLED - Duration::from_secs(1)).await;
                theirs.read_exact(&mut [0; 4]).await.unwrap();
            };
            let (written, ()) = tokio::join!(stream.write_all(b"1234"), more);
            written.unwrap();
        }
        let started = Instant::now();
        let error = stream.write_all(b"1234").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed().as_secs(), STALLED.as_secs());
    }
}
