//! Sockets: open connections, with or without TLS and proxy.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt};

/// An open connection, with or without TLS and proxy.
pub(crate) struct Socket {
    io: Box<dyn Io>,
    /// Whether HTTP/2 was negotiated.
    pub(crate) is_http2: bool,
    /// Called before each read.
    on_read: Option<Box<dyn Fn() + Send>>,
}

trait Io: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Io for T {}

pub(crate) type Connector = BoxCloneSyncService<Uri, Socket, BoxError>;

/// The protocols offered over TLS (ALPN).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    Http1,
    Http2OrHttp1,
}

/// Erases the type of a connector.
pub(crate) fn boxed<C>(connector: C) -> Connector
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Read + Write + Connection + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let socket = |io: C::Response| Socket {
        is_http2: io.connected().is_negotiated_h2(),
        io: Box::new(io),
        on_read: None,
    };
    BoxCloneSyncService::new(connector.map_response(socket).map_err(Into::into))
}

impl Socket {
    /// Calls a function before each read; by then, what was read before has been processed.
    pub(crate) fn on_read(self, call: impl Fn() + Send + 'static) -> Self {
        let on_read = Some(Box::new(call) as _);
        Self { on_read, ..self }
    }
}

impl Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(call) = &self.on_read {
            call();
        }
        Pin::new(&mut *self.io).poll_read(cx, buf)
    }
}

impl Write for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.io).poll_write_vectored(cx, bufs)
    }
}

impl Connection for Socket {
    fn connected(&self) -> Connected {
        if self.is_http2 {
            Connected::new().negotiated_h2()
        } else {
            Connected::new()
        }
    }
}
