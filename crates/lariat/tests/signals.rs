//! What a program does when it is asked to end, seen from outside.

#![cfg(unix)]

use std::future::{Future, pending, poll_fn};
use std::io::{BufRead, BufReader};
use std::pin::pin;
use std::process::{Child, Command, Stdio};
use std::task::Poll;

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
        "a signal asks the program to end; the next one ends it at once"
    ));
    signal(&child);
    assert!(until("a second signal ends the program at once"));
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
        let mut signalled = pin!(lariat::termination());
        // From the first poll on signals do not end the process by themselves.
        let first = poll_fn(|cx| Poll::Ready(signalled.as_mut().poll(cx))).await;
        assert!(first.is_pending());
        println!("ready");
        signalled.await;
        pending::<()>().await;
    });
}
