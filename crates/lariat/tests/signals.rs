//! How a process reacts to termination signals.

#![cfg(unix)]

use std::future::pending;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Set in the process that gets the signals.
const CHILD: &str = "LARIAT_TEST_SIGNALS";

#[test]
fn each_signal_is_acknowledged_and_the_second_ends_the_program() {
    if std::env::var_os(CHILD).is_some() {
        return wait_for_signals();
    }
    let this = "each_signal_is_acknowledged_and_the_second_ends_the_program";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([this, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = child.stdout.take().unwrap();
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let mut until = |text: &str| lines.any(|line| line.contains(text));
    assert!(until("ready"));
    signal(&child);
    assert!(until(
        "received a termination signal, shutting down; the next one exits immediately"
    ));
    signal(&child);
    assert!(until(
        "received a second termination signal, exiting immediately"
    ));
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

fn signal(child: &Child) {
    let mut kill = Command::new("kill");
    let status = kill.arg("-TERM").arg(child.id().to_string()).status();
    assert!(status.expect("kill is there").success());
}

fn wait_for_signals() {
    let subscriber = tracing_subscriber::fmt().with_writer(std::io::stdout);
    subscriber.with_ansi(false).init();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().expect("a runtime");
    runtime.block_on(async {
        // From the call on signals do not terminate the process.
        let signalled = lariat::termination();
        println!("ready");
        signalled.await;
        pending::<()>().await;
    });
}
