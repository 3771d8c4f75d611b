//! Chromium without a window, driven by its DevTools protocol over a pipe.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// How long anything may take that must happen.
const TIMEOUT: Duration = Duration::from_secs(60);

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A browser with one tab.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    profile: PathBuf,
    last: u64,
    session: Option<String>,
    /// Where the page comes from.
    origin: String,
    /// What is wrong with the page: exceptions, errors that it logs, what its policy forbids, and requests to
    /// elsewhere.
    pub(crate) complaints: Vec<Json>,
    has_loaded: bool,
}

/// Returns the program; a test of the page is not passed over without it.
fn program() -> PathBuf {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let installed = NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let found = named.into_iter().chain(installed).find(|it| it.is_file());
    found.expect(
        "Chromium is not installed, in which this test looks at the page: run scripts/chromium.sh, or apt install chromium \
         (CHROMIUM may name another)",
    )
}

impl Browser {
    /// Starts a browser with an empty tab.
    pub(crate) async fn start() -> Self {
        let name = format!("lariat-chromium-{:016x}", fastrand::u64(..));
        let profile = std::env::temp_dir().join(name);
        let mut command = Command::new("sh");
        // It reads commands from descriptor 3, and answers on 4.
        command.args([
            "-c",
            r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#,
        ]);
        command.arg(program());
        command.args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--remote-debugging-pipe",
            "--window-size=1280,800",
            "--lang=en-US",
        ]);
        command.arg(format!("--user-data-dir={}", profile.display()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().expect("sh runs");
        let mut browser = Self {
            input: child.stdin.take().expect("it is piped"),
            output: BufReader::new(child.stdout.take().expect("it is piped")),
            child,
            profile,
            last: 0,
            session: None,
            origin: String::new(),
            complaints: Vec::new(),
            has_loaded: false,
        };
        browser.open_tab().await;
        browser
    }

    /// Goes on in a new tab, which knows nothing of the one before but what the browser keeps.
    pub(crate) async fn open_tab(&mut self) {
        self.session = None;
        let tab = self
            .call("Target.createTarget", json!({"url": "about:blank"}))
            .await;
        let attach = json!({"targetId": tab["targetId"], "flatten": true});
        let attached = self.call("Target.attachToTarget", attach).await;
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({})).await;
        }
    }

    /// Opens an address, and waits until it is loaded.
    pub(crate) async fn open(&mut self, url: &str) {
        self.has_loaded = false;
        self.origin = url.split_inclusive('/').take(3).collect();
        let opened = self.call("Page.navigate", json!({"url": url})).await;
        assert!(opened["errorText"].is_null(), "{opened}");
        while !self.has_loaded {
            let message = self.read().await;
            self.note(&message);
        }
    }

    /// Returns what an expression is, or what its promise becomes.
    pub(crate) async fn value(&mut self, expression: &str) -> Json {
        let asked = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", asked).await;
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer:#}"
        );
        answer["result"]["value"].take()
    }

    /// Waits until an expression is true, which it becomes by a change of the document.
    pub(crate) async fn until(&mut self, expression: &str) {
        let wait = format!(
            "new Promise(done => {{
                const observer = new MutationObserver(look);
                function look() {{ if ({expression}) {{ observer.disconnect(); done(true); }} }}
                observer.observe(document, {{ subtree: true, childList: true, attributes: true, characterData: true }});
                look();
            }})"
        );
        let waited = timeout(TIMEOUT, self.value(&wait)).await;
        if waited.is_err() {
            panic!("it does not come true: {expression}");
        }
    }

    /// Clicks into the middle of the element that an expression is, as a user does.
    pub(crate) async fn click(&mut self, element: &str) {
        let middle = format!(
            "(() => {{ const element = {element}; element.scrollIntoView({{ block: 'nearest' }});
                const box = element.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        );
        let at = self.value(&middle).await;
        for event in ["mousePressed", "mouseReleased"] {
            let click =
                json!({"type": event, "x": at[0], "y": at[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", click).await;
        }
    }

    /// Types a text into a field, and Enter.
    pub(crate) async fn enter(&mut self, field: &str, text: &str) {
        self.click(&format!("document.getElementById('{field}')"))
            .await;
        self.call("Input.insertText", json!({"text": text})).await;
        for event in ["keyDown", "keyUp"] {
            let key = json!({"type": event, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"});
            self.call("Input.dispatchKeyEvent", key).await;
        }
    }

    /// Writes a picture of the page into the folder that `SCREENSHOTS` names, if it does.
    pub(crate) async fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("SCREENSHOTS") else {
            return;
        };
        let taken = self
            .call("Page.captureScreenshot", json!({"format": "png"}))
            .await;
        let picture = STANDARD.decode(taken["data"].as_str().expect("a picture"));
        let path = PathBuf::from(folder).join(format!("{name}.png"));
        std::fs::write(path, picture.expect("base64")).expect("written");
    }

    pub(crate) async fn call(&mut self, method: &str, params: Json) -> Json {
        self.last += 1;
        let id = self.last;
        let mut call = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            call["sessionId"] = session.as_str().into();
        }
        let mut line = call.to_string().into_bytes();
        line.push(0);
        self.input.write_all(&line).await.expect("it reads");
        loop {
            let mut message = self.read().await;
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].take();
            }
            self.note(&message);
        }
    }

    async fn read(&mut self) -> Json {
        let mut line = Vec::new();
        // Longer than each single wait, whose error says what it waited for.
        let read = timeout(2 * TIMEOUT, self.output.read_until(0, &mut line)).await;
        let read = read.expect("it answers in time").expect("it can be read");
        assert_ne!(
            read,
            0,
            "the browser has ended: {:?}",
            self.child.try_wait()
        );
        line.pop();
        serde_json::from_slice(&line).expect("JSON")
    }

    fn note(&mut self, message: &Json) {
        match message["method"].as_str() {
            Some("Page.loadEventFired") => self.has_loaded = true,
            Some("Runtime.exceptionThrown") => self.complaints.push(message["params"].clone()),
            Some("Runtime.consoleAPICalled") if message["params"]["type"] == "error" => {
                self.complaints.push(message["params"].clone());
            }
            Some("Network.requestWillBeSent") => {
                let url = message["params"]["request"]["url"].as_str();
                if url
                    .is_some_and(|url| !url.starts_with("data:") && !url.starts_with(&self.origin))
                {
                    self.complaints.push(message["params"]["request"].clone());
                }
            }
            // Requests that are refused are no fault of the page.
            Some("Log.entryAdded") if message["params"]["entry"]["source"] != "network" => {
                self.complaints.push(message["params"]["entry"].clone());
            }
            _ => {}
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.start_kill();
        // Its other processes end with it, a little later, and may write until then.
        while let Ok(None) = self.child.try_wait() {
            std::thread::yield_now();
        }
        for _ in 0..100 {
            let _ = std::fs::remove_dir_all(&self.profile);
            if !self.profile.exists() {
                return;
            }
        }
    }
}
