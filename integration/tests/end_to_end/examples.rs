//! The examples, as a user runs them.

use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// Building comes first, and may take a while.
const PATIENCE: Duration = Duration::from_secs(600);

/// An example under cargo, which builds it if need be and then becomes it.
fn example(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args([
        "run",
        "--quiet",
        "--package",
        "lariat-examples",
        "--example",
        name,
        "--",
    ]);
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

async fn run(mut command: Command) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = timeout(PATIENCE, command.output())
        .await
        .expect("it ends by itself")
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    (status.code(), text(stdout), text(stderr))
}

#[tokio::test]
async fn the_quickstart_ends_by_itself_with_a_summary() {
    let (code, stdout, stderr) = run(example("quickstart", &[])).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    for expected in [
        "no such pod",
        "runs v1",
        "✗ attempt 1",
        "✗ attempt 2",
        "✓ registered at attempt 3",
        "enqueued at main.rs",
        "has size 5",
        "is gone; it ran v2",
        "v1 Pod",
        "demo.dev/v1 Widget",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in:\n{stdout}");
    }
    assert_eq!(stderr, "");
    if std::env::var_os("KUBECONFIG").is_none() {
        let seen = "the API server saw 2 watches for 2 kinds and 4 handlers";
        assert!(stdout.contains(seen), "{stdout}");
    }
}

#[tokio::test]
async fn bad_options_of_the_quickstart_are_refused_in_one_line() {
    for (arguments, expected) in [
        (
            &["--bogus"][..],
            "error: unknown option \"--bogus\"; --help lists what there is\n",
        ),
        (
            &["--kubeconfig"],
            "error: --kubeconfig needs the path of a kubeconfig behind it\n",
        ),
        (
            &["--kubeconfig", "/nonexistent"],
            "error: the kubeconfig \"/nonexistent\" cannot be used: No such file or directory (os error 2)\n",
        ),
    ] {
        let (code, stdout, stderr) = run(example("quickstart", arguments)).await;
        assert_eq!((code, &*stdout, &*stderr), (Some(1), "", expected));
    }
}

/// Runs an example until it has printed all that is expected, then sends a signal.
#[cfg(unix)]
async fn interrupted(
    mut command: Command,
    signal: &str,
    expected: &[&str],
) -> (Option<i32>, String) {
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

    let mut child = command.spawn().expect("it runs");
    let id = child.id().expect("it runs").to_string();
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut text = String::new();
    while !expected.iter().all(|line| text.contains(line)) {
        let line = timeout(PATIENCE, output.read_line(&mut text)).await;
        let read = line
            .unwrap_or_else(|_| panic!("no more of {expected:?} after:\n{text}"))
            .expect("it can be read");
        assert_ne!(read, 0, "it ended before {expected:?}:\n{text}");
    }
    let mut kill = Command::new("kill");
    let sent = kill.args(["-s", signal, &id]).status().await;
    assert!(sent.expect("kill runs").success());
    let rest = timeout(PATIENCE, output.read_to_string(&mut text)).await;
    rest.expect("it ends").expect("it can be read");
    let ended = timeout(PATIENCE, child.wait()).await;
    (ended.expect("it ends").expect("it ran").code(), text)
}

#[cfg(unix)]
#[tokio::test]
async fn the_quickstart_that_goes_on_ends_cleanly_at_ctrl_c() {
    let command = example("quickstart", &["--watch"]);
    let (code, text) = interrupted(command, "INT", &["▸ again; Ctrl-C ends"]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("▸ stopping") && text.contains("demo.dev/v1 Widget"),
        "{text}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn the_pod_logger_logs_and_ends_cleanly_at_sigterm() {
    let expected: &[&str] = if std::env::var_os("KUBECONFIG").is_some() {
        &["logging pods of"]
    } else {
        &[
            "created  default/web-0",
            "updated  default/web-0",
            "deleted  default/web-0",
        ]
    };
    let (code, text) = interrupted(example("pod_logger", &[]), "TERM", expected).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with("stopped\n"), "{text}");
}
