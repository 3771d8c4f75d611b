//! A process that reads the metrics of a subject once a second, as Prometheus does; its CPU is not the subject's.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::process::{Process, say};

const PERIOD: Duration = Duration::from_secs(1);

/// Starts a process that scrapes an address until it is dropped.
///
/// It has scraped once when this returns.
pub(super) fn start(address: SocketAddr) -> Result<Process> {
    let mut process = Process::spawn(&["scrape", &address.to_string()])?;
    process.hear_after("scraped")?;
    Ok(process)
}

/// Scrapes an address, until the process is ended.
pub(crate) fn scrape(address: SocketAddr) -> Result<()> {
    once(address)?;
    say("scraped")?;
    loop {
        // It may return early, which only means one scrape more.
        thread::park_timeout(PERIOD);
        once(address)?;
    }
}

fn once(address: SocketAddr) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let accepted = "application/openmetrics-text; version=1.0.0";
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: {address}\r\nAccept: {accepted}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains("workqueue_depth"),
        "a scrape was answered with {answer}"
    );
    Ok(())
}
