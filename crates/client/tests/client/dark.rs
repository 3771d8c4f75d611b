//! A network that can take everything and pass nothing on.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch::Sender;
use tokio::time;

use crate::server::{Server, listen};

/// How long an answer is silent before a liveness test, and how long the test may take.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);
pub(crate) const TEST: Duration = Duration::from_secs(15);

/// Moves the clock, which otherwise runs, so that sockets are waited for.
pub(crate) async fn pass(time: Duration) {
    time::pause();
    time::advance(time).await;
    time::resume();
}

/// Waits for a fact.
pub(crate) async fn until<T>(facts: &Sender<T>, is_so: impl FnMut(&T) -> bool) {
    let mut facts = facts.subscribe();
    let waiting = time::timeout(Duration::from_secs(60), facts.wait_for(is_so));
    waiting.await.expect("it happens").expect("it is watched");
}

/// A proxy that can take everything and pass nothing on.
pub(crate) struct Proxy {
    pub(crate) server: Server,
    is_dark: Arc<Sender<bool>>,
    /// What it took and did not pass on.
    pub(crate) swallowed: Arc<Sender<String>>,
}

impl Proxy {
    pub(crate) fn before(port: u16) -> Self {
        let is_dark = Arc::new(Sender::new(false));
        let swallowed = Arc::new(Sender::new(String::new()));
        let state = (Arc::clone(&is_dark), Arc::clone(&swallowed));
        let server = Server::with(listen(0), move |stream| {
            let (is_dark, swallowed) = state.clone();
            async move {
                let server = TcpStream::connect(("127.0.0.1", port)).await;
                let server = server.expect("the server listens");
                // However it ends: both sides leave as they like.
                let _ = relay(stream, server, &is_dark, &swallowed).await;
            }
        });
        Self {
            server,
            is_dark,
            swallowed,
        }
    }

    /// Takes requests from now on, and does not pass them on.
    pub(crate) fn darken(&self) {
        self.is_dark.send_replace(true);
    }

    /// Passes on what comes on new connections.
    pub(crate) fn lighten(&self) {
        self.is_dark.send_replace(false);
    }

    /// Waits until it has a liveness test.
    pub(crate) async fn until_tested(&self) {
        until(&self.swallowed, |text| text.contains("GET /version ")).await;
    }
}

/// Passes on what both sides say. A connection that was dark once stays dark.
async fn relay(
    mut client: TcpStream,
    mut server: TcpStream,
    is_dark: &Sender<bool>,
    swallowed: &Sender<String>,
) -> std::io::Result<()> {
    let (mut up, mut down) = ([0; 4096], [0; 4096]);
    let mut is_lost = false;
    let mut dark = is_dark.subscribe();
    loop {
        tokio::select! {
            biased;
            () = darkness(&mut dark), if !is_lost => is_lost = true,
            read = client.read(&mut up) => match read? {
                0 => return Ok(()),
                length if is_lost => {
                    let text = String::from_utf8_lossy(&up[..length]);
                    swallowed.send_modify(|all| all.push_str(&text));
                }
                length => server.write_all(&up[..length]).await?,
            },
            read = server.read(&mut down), if !is_lost => match read? {
                0 => return Ok(()),
                length => client.write_all(&down[..length]).await?,
            },
        }
    }
}

/// Waits until it is dark, or the test is over.
async fn darkness(is_dark: &mut tokio::sync::watch::Receiver<bool>) {
    drop(is_dark.wait_for(|is_dark| *is_dark).await);
}
