//! Serves an empty cluster until Ctrl-C, for kubectl and every other client.
//!
//! Run: `cargo run -p lariat-cluster --example serve`, with `-- ADDRESS` on another than 127.0.0.1:8001,
//! and with `-- ADDRESS TOKEN` for a cluster with RBAC, whose administrator has the token.

use std::net::SocketAddr;
use std::process::ExitCode;

use lariat_cluster::Cluster;

const ADDRESS: &str = "127.0.0.1:8001";

#[tokio::main]
async fn main() -> ExitCode {
    let given = std::env::args().nth(1);
    let address = given.as_deref().unwrap_or(ADDRESS);
    let Ok(address) = address.parse::<SocketAddr>() else {
        eprintln!("error: {address:?} is no address; give one such as {ADDRESS}");
        return ExitCode::FAILURE;
    };
    let mut builder = Cluster::builder().listen_on(address);
    if let Some(token) = std::env::args().nth(2) {
        builder = builder.token(token).rbac();
        // kubectl shows its token over HTTPS only.
        #[cfg(feature = "tls")]
        {
            builder = builder.tls_generated();
        }
    }
    let cluster = match builder.start().await {
        Ok(cluster) => cluster,
        Err(error) => {
            eprintln!("error: cannot listen on {address}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let url = cluster.url().unwrap_or_default();
    let path = std::env::temp_dir().join(format!("lariat-{}.kubeconfig", address.port()));
    let config = cluster.kubeconfig().unwrap_or_default();
    println!("ready at {url}");
    match std::fs::write(&path, config) {
        Ok(()) => println!(
            "try: export KUBECONFIG={}; kubectl get namespaces",
            path.display()
        ),
        Err(error) => eprintln!("cannot write {}: {error}", path.display()),
    }
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
    cluster.shutdown().await;
    ExitCode::SUCCESS
}
