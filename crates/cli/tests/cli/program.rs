//! The command line as a process, for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long something may take that must happen.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A folder of the test's own, which goes with it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let name = format!("cli-{}", fastrand::u64(..));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir(&path).expect("the folder is new");
        Self(path)
    }

    /// Returns what is in it.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder is there");
        let name =
            |entry: std::io::Result<fs::DirEntry>| entry.expect("it can be read").file_name();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry).into_string().expect("text"))
            .collect();
        names.sort();
        names
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("the file can be written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that is left behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn lariat(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lariat"));
    command.args(arguments).kill_on_drop(true);
    // What the tests are called with is not for those they call.
    command.env_remove("LARIAT_TOKEN");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the command line to its end.
pub(crate) async fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let ended = timeout(TIMEOUT, lariat(arguments).output()).await;
    let Output {
        status,
        stdout,
        stderr,
    } = ended.expect("it ends by itself").expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    (status.code(), text(stdout), text(stderr))
}

/// A cluster that serves.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) url: String,
}

impl Served {
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        let always = ["cluster", "--listen", "127.0.0.1:0"];
        Self::of(&mut lariat(&[&always, arguments].concat())).await
    }

    pub(crate) async fn of(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("it runs");
        let stdout = child.stdout.take().expect("it is piped");
        let mut line = String::new();
        let read = timeout(TIMEOUT, BufReader::new(stdout).read_line(&mut line)).await;
        read.expect("it says something").expect("it can be read");
        let Some(url) = line.strip_prefix("ready ") else {
            panic!(
                "{line:?} is not that it is ready: {}",
                stderr(&mut child).await
            );
        };
        Self {
            url: url.trim_end().to_owned(),
            child,
        }
    }

    /// Asks for a path over a connection of its own.
    pub(crate) async fn get(&self, path: &str) -> String {
        self.get_as(path, "").await
    }

    /// Asks with headers, each with the end of its line.
    pub(crate) async fn get_as(&self, path: &str, headers: &str) -> String {
        let mut answer = String::new();
        let mut stream = self.ask_as(path, headers).await;
        let read = timeout(TIMEOUT, stream.read_to_string(&mut answer)).await;
        read.expect("it ends").expect("it answers");
        answer
    }

    /// Watches a path until a text comes.
    pub(crate) async fn watch(&self, path: &str, text: &str) {
        let mut stream = self.ask(path).await;
        let mut answer = Vec::new();
        while !String::from_utf8_lossy(&answer).contains(text) {
            let read = timeout(TIMEOUT, stream.read_buf(&mut answer)).await;
            let read = read.expect("it comes").expect("it can be read");
            assert_ne!(read, 0, "the watch goes on");
        }
    }

    pub(crate) async fn ask(&self, path: &str) -> TcpStream {
        self.ask_as(path, "").await
    }

    pub(crate) async fn ask_as(&self, path: &str, headers: &str) -> TcpStream {
        let address = self.url.strip_prefix("http://").expect("it is HTTP");
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\n\r\n");
        let sent = stream.write_all(request.as_bytes()).await;
        sent.expect("it reads");
        stream
    }

    pub(crate) async fn signal(&self, signal: &str) {
        let id = self.child.id().expect("it runs").to_string();
        let sent = Command::new("kill")
            .args(["-s", signal, &id])
            .status()
            .await;
        assert!(sent.expect("kill runs").success());
    }

    pub(crate) async fn ended(mut self) -> (Option<i32>, String) {
        let stderr = stderr(&mut self.child).await;
        let ended = timeout(TIMEOUT, self.child.wait()).await;
        (ended.expect("it ends").expect("it ran").code(), stderr)
    }
}

pub(crate) async fn stderr(child: &mut Child) -> String {
    let mut text = String::new();
    let mut pipe = child.stderr.take().expect("it is piped");
    let read = timeout(TIMEOUT, pipe.read_to_string(&mut text)).await;
    read.expect("it ends").expect("it can be read");
    text
}
