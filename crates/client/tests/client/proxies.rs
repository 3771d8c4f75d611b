//! Servers behind proxies.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use kube::Config;
use lariat_client::{Http2, from_config};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

use crate::credentials::{Guarded, write};
use crate::server::{Server, listen};

/// A proxy that leads to one server, whichever it is asked for.
pub(crate) struct Proxy {
    pub(crate) server: Server,
    /// The users of HTTP, or the addresses that SOCKS was asked for.
    pub(crate) seen: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Starts a proxy that speaks HTTP.
    pub(crate) fn http(target: u16) -> Self {
        Self::with(target, |mut stream: TcpStream| async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await?);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            let head = String::from_utf8_lossy(&head);
            let user = head.lines().find_map(|line| line.split_once(": Basic "));
            let user = user.map_or(Ok(Vec::new()), |(_, user)| BASE64.decode(user));
            let user = String::from_utf8_lossy(&user.expect("it is base64")).into_owned();
            Ok((stream, user))
        })
    }

    /// Starts a proxy that speaks SOCKS5 and wants no password.
    fn socks(target: u16) -> Self {
        Self::with(target, |mut stream: TcpStream| async move {
            let _version = stream.read_u8().await?;
            let methods = stream.read_u8().await?;
            stream.read_exact(&mut vec![0; methods.into()]).await?;
            stream.write_all(&[5, 0]).await?;
            let mut request = [0; 4];
            stream.read_exact(&mut request).await?;
            let address = match request[3] {
                1 => Ipv4Addr::from(stream.read_u32().await?).to_string(),
                4 => Ipv6Addr::from(stream.read_u128().await?).to_string(),
                _ => {
                    let mut name = vec![0; stream.read_u8().await?.into()];
                    stream.read_exact(&mut name).await?;
                    format!("the name {}", String::from_utf8_lossy(&name))
                }
            };
            let _port = stream.read_u16().await?;
            stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
            Ok((stream, address))
        })
    }

    fn with<F>(target: u16, agree: impl Fn(TcpStream) -> F + Copy + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<(TcpStream, String)>> + Send + 'static,
    {
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&seen);
        let server = Server::with(listen(0), move |stream| {
            let noted = Arc::clone(&noted);
            async move {
                let (mut stream, text) = agree(stream).await.expect("the client goes on");
                noted.lock().push(text);
                let server = TcpStream::connect(("127.0.0.1", target)).await;
                // A client that leaves early is an end like any other.
                let _ = copy_bidirectional(&mut stream, &mut server.expect("it listens")).await;
            }
        });
        Self { server, seen }
    }
}

#[tokio::test]
async fn socks_proxy_is_asked_for_addresses_without_brackets() {
    let guarded = Guarded::start("").await;
    let proxy = Proxy::socks(guarded.server.port);
    for (server, expected) in [
        ("http://[2001:db8::1]:6443", "2001:db8::1"),
        ("http://10.0.0.1:6443", "10.0.0.1"),
        (
            "http://kubernetes.example.com",
            "the name kubernetes.example.com",
        ),
    ] {
        let mut config = Config::new(server.parse().expect("it is a URL"));
        config.proxy_url = format!("socks5://127.0.0.1:{}", proxy.server.port)
            .parse()
            .ok();
        let client = from_config(config, Http2::Negotiated).await;
        // It wants a token: its answer is enough here.
        assert_eq!(write(&client.expect("it is valid")).await, Err(401));
        assert_eq!(proxy.seen.lock().pop().as_deref(), Some(expected));
    }
}
