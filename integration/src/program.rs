//! The examples, as a user runs them.

use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

/// How long an example may take; a real cluster has to pull images.
const TIMEOUT: Duration = Duration::from_secs(600);

/// An example as it was built last, which `scripts/test.sh --all` does before the tests.
///
/// Cargo is left out of it: build scripts look at variables that cargo sets for tests, so it would build half of all
/// again here, and once more outside.
///
/// # Panics
///
/// If it was not built.
#[must_use]
pub fn example(name: &str, arguments: &[&str]) -> Command {
    let this = std::env::current_exe().expect("a test is a file");
    let mut found = this
        .ancestors()
        .map(|folder| folder.join("examples").join(name));
    let program = found.find(|path| path.is_file());
    let missing = "it is not built: cargo build -p lariat-examples -p lariat-operators --all-features --examples";
    let mut command = Command::new(program.expect(missing));
    command
        .args(arguments)
        .env("NO_COLOR", "1")
        .kill_on_drop(true);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a command to its end; returns its exit code and what it printed to stdout and stderr.
///
/// # Panics
///
/// If it cannot be run, or does not end by itself.
pub async fn run(mut command: Command) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = timeout(TIMEOUT, command.output())
        .await
        .expect("it ends by itself")
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    (status.code(), text(stdout), text(stderr))
}

/// Runs an example until it has printed all that is expected, then sends a signal; returns its exit code and what it
/// printed to stdout.
///
/// # Panics
///
/// If it cannot be run, or ends too early or not at all.
#[cfg(unix)]
pub async fn interrupted(
    mut command: Command,
    signal: &str,
    expected: &[&str],
) -> (Option<i32>, String) {
    let mut child = command.spawn().expect("it runs");
    let id = child.id().expect("it runs");
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut text = String::new();
    while !expected.iter().all(|line| text.contains(line)) {
        let line = timeout(TIMEOUT, output.read_line(&mut text)).await;
        let read = line
            .unwrap_or_else(|_| panic!("no more of {expected:?} after:\n{text}"))
            .expect("it can be read");
        assert_ne!(read, 0, "it ended before {expected:?}:\n{text}");
    }
    self::signal(id, signal).await;
    let rest = timeout(TIMEOUT, output.read_to_string(&mut text)).await;
    rest.expect("it ends").expect("it can be read");
    let ended = timeout(TIMEOUT, child.wait()).await;
    (ended.expect("it ends").expect("it ran").code(), text)
}

/// Sends a signal to a process.
///
/// # Panics
///
/// If there is no such process.
#[cfg(unix)]
pub async fn signal(process: u32, signal: &str) {
    let mut kill = Command::new("kill");
    let sent = kill.args(["-s", signal, &process.to_string()]).status();
    assert!(sent.await.expect("kill runs").success());
}
