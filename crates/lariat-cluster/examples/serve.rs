//! Serves an empty cluster until Ctrl-C, for kubectl and every other client.
//!
//! Run: `cargo run -p lariat-cluster --example serve -- 127.0.0.1:8001`

use std::net::SocketAddr;

use lariat_cluster::Cluster;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:8001".to_owned());
    let address: SocketAddr = address.parse()?;
    let cluster = Cluster::builder().listen_on(address).start().await?;
    println!("ready {}", cluster.url().unwrap_or_default());
    tokio::signal::ctrl_c().await?;
    cluster.shutdown().await;
    Ok(())
}
