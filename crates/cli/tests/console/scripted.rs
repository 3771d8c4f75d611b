//! A console that does as it is scripted, and the command line as a process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use serde::Serialize;

use crate::samples;

/// What the console does with a connection whose request it has read.
type Script = dyn Fn(&str, &mut TcpStream) + Send + Sync;

/// A console that does as it is scripted, for each connection in a thread of its own.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    /// The heads of the requests.
    pub(crate) heads: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    pub(crate) fn start(script: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (script, kept): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&heads));
        // The thread ends with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let (script, kept) = (Arc::clone(&script), Arc::clone(&kept));
                std::thread::spawn(move || {
                    let Some(head) = read_head(&mut stream) else {
                        return;
                    };
                    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                    kept.lock().expect("no thread panics").push(head);
                    script(&path, &mut stream);
                });
            }
        });
        Self { address, heads }
    }

    /// Starts a console that answers every path with one text.
    pub(crate) fn answering(status: &str, body: String) -> Self {
        let status = status.to_owned();
        Self::start(move |_, stream| answer(stream, &status, &body))
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let url = self.address.to_string();
        ended(lariat(&[arguments, &["--url", &url]].concat()))
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no thread panics").clone()
    }
}

fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

/// Answers, and closes the connection.
pub(crate) fn answer(stream: &mut TcpStream, status: &str, body: &str) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    // A client that has gone has its answer.
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
}

pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it can be written")
}

pub(crate) fn lariat(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lariat"));
    command.args(arguments).stdin(Stdio::null());
    command
        .env_remove("LARIAT_CONSOLE_TOKEN")
        .env_remove("KUBECONFIG");
    command
}

pub(crate) fn ended(mut command: Command) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    (status.code(), text(stdout), text(stderr))
}

/// Starts a console that has the samples under the paths of the API.
pub(crate) fn whole() -> Scripted {
    Scripted::start(|path, stream| {
        let body = match path {
            "/api/v1/overview" => json(&samples::overview()),
            "/api/v1/controllers/apps~v1~Deployment" => json(&samples::detail()),
            "/api/v1/controllers/apps~v1~Deployment/keys/shop~web" => json(&samples::key()),
            "/api/v1/controllers/core~v1~Pod/keys/shop~web-1" => json(&samples::cause()),
            _ => {
                return answer(
                    stream,
                    "404 Not Found",
                    r#"{"kind":"Status","message":"no such key"}"#,
                );
            }
        };
        answer(stream, "200 OK", &body);
    })
}

/// A command that goes on, and prints a line of JSON now and then.
pub(crate) struct Following {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Following {
    pub(crate) fn start(console: &Scripted, arguments: &[&str]) -> Self {
        let url = console.address.to_string();
        let mut command = lariat(&[arguments, &["--url", &url]].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, stdout }
    }

    pub(crate) fn line(&mut self) -> serde_json::Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("it can be read");
        serde_json::from_str(&line).expect("it is one object a line")
    }

    /// Ends it, and returns what it wrote to stderr.
    pub(crate) fn end(mut self) -> String {
        self.child.kill().expect("it runs");
        let output = self.child.wait_with_output().expect("it ends");
        String::from_utf8(output.stderr).expect("output is UTF-8")
    }
}
