//! A proxy between a process and the API server, which can fall silent.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use http::Uri;
use lariat::kube::config::{Cluster, Kubeconfig};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Carries bytes between a process and the API server; TLS stays between these two.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    scheme: String,
    host: String,
    silent: watch::Sender<bool>,
    /// Dropped with the proxy, and all connections with it.
    _accept: JoinSet<Infallible>,
}

impl Proxy {
    /// Starts a proxy before the API server of a kubeconfig.
    ///
    /// # Errors
    ///
    /// The kubeconfig names no server, or loopback has no free port.
    pub async fn start(mut kubeconfig: Kubeconfig) -> Result<Self> {
        let server = current(&mut kubeconfig)?.server.clone();
        let server: Uri = server.context("the cluster has a server")?.parse()?;
        let scheme = server.scheme_str().unwrap_or("https").to_owned();
        let host = server.host().context("the server has a host")?.to_owned();
        let default = if scheme == "http" { 80 } else { 443 };
        let target = format!("{host}:{}", server.port_u16().unwrap_or(default));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let (address, silent) = (listener.local_addr()?, watch::Sender::new(false));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, target, silent.clone()));
        Ok(Self {
            address,
            scheme,
            host,
            silent,
            _accept: tasks,
        })
    }

    /// Returns the kubeconfig of a process that is behind the proxy.
    ///
    /// # Errors
    ///
    /// The kubeconfig names no cluster.
    pub fn kubeconfig(&self, mut kubeconfig: Kubeconfig) -> Result<Kubeconfig> {
        let cluster = current(&mut kubeconfig)?;
        cluster.server = Some(format!("{}://{}", self.scheme, self.address));
        if self.scheme == "https" {
            // The certificate is the server's.
            let name = cluster.tls_server_name.take();
            cluster.tls_server_name = Some(name.unwrap_or_else(|| self.host.clone()));
        }
        Ok(kubeconfig)
    }

    /// Drops everything from now on: open connections and new ones stay open without an answer.
    pub fn fall_silent(&self) {
        self.silent.send_replace(true);
    }
}

/// Returns the cluster of the current context.
fn current(kubeconfig: &mut Kubeconfig) -> Result<&mut Cluster> {
    let named = kubeconfig.current_context.clone();
    let named = named.context("there is a current context")?;
    let mut contexts = kubeconfig.contexts.iter();
    let context = contexts.find(|context| context.name == named);
    let context = context.and_then(|context| context.context.as_ref());
    let name = context
        .context("the current context is defined")?
        .cluster
        .clone();
    let mut clusters = kubeconfig.clusters.iter_mut();
    let cluster = clusters.find(|cluster| cluster.name == name);
    let cluster = cluster.and_then(|cluster| cluster.cluster.as_mut());
    cluster.context("the cluster of the current context is defined")
}

async fn accept(listener: TcpListener, target: String, silent: watch::Sender<bool>) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((client, _)) = listener.accept() => {
                connections.spawn(carry(client, target.clone(), silent.subscribe()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn carry(mut client: TcpStream, target: String, mut silent: watch::Receiver<bool>) {
    let copied = async {
        let mut server = TcpStream::connect(target).await?;
        copy_bidirectional(&mut client, &mut server).await
    };
    let silence = async { while !*silent.borrow_and_update() && silent.changed().await.is_ok() {} };
    let is_silent = tokio::select! {
        biased;
        () = silence => true,
        // Whichever end closed it, or could not be reached: the client sees the connection close.
        _ = copied => false,
    };
    if is_silent {
        // The client's connection stays open.
        pending().await
    }
}
