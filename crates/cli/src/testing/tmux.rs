//! A terminal with a shell in it, whose screen can be read: a server of tmux.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// How long something may take that must happen.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How often the screen is looked at.
const PERIOD: Duration = Duration::from_millis(50);

/// A terminal, which ends with the test.
pub(crate) struct Tmux {
    /// The name of the server's socket.
    server: String,
}

impl Tmux {
    /// Starts a shell in a terminal of a size.
    pub(crate) fn start(width: u16, height: u16) -> Self {
        let server = format!("lariat-{:016x}", fastrand::u64(..));
        let it = Self { server };
        let (width, height) = (width.to_string(), height.to_string());
        let size = ["-x", &width, "-y", &height];
        // A shell without the settings of its user.
        let shell = "exec env -i PATH=\"$PATH\" HOME=/nonexistent TERM=\"$TERM\" LANG=C.UTF-8 PS1='shell> ' sh";
        let new = ["-f", "/dev/null", "-u", "new-session", "-d"];
        it.tmux(&[&new[..], &size, &[shell]].concat());
        it.wait("the shell", |screen| screen.contains("shell>"));
        it
    }

    /// Types a line, with Enter at its end.
    pub(crate) fn type_line(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.press("Enter");
    }

    /// Presses a key, as tmux names it.
    pub(crate) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Changes the size of the terminal.
    #[cfg_attr(test, allow(dead_code, reason = "not every test changes it"))]
    pub(crate) fn resize(&self, width: u16, height: u16) {
        let (width, height) = (width.to_string(), height.to_string());
        self.tmux(&["resize-window", "-x", &width, "-y", &height]);
    }

    /// Returns the screen.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen is as wanted, and returns it.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let deadline = now() + TIMEOUT;
        loop {
            let screen = self.screen();
            if is_wanted(&screen) {
                return screen;
            }
            assert!(now() < deadline, "{what} does not come:\n{screen}");
            pause();
        }
    }

    /// Waits until the screen has a text.
    #[track_caller]
    pub(crate) fn has(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Checks that the terminal is as a shell needs it.
    #[track_caller]
    pub(crate) fn check_restored(&self) {
        let flags = self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]);
        assert_eq!(
            flags.trim(),
            "0 1",
            "the alternate screen is left, and the cursor is seen"
        );
        self.type_line("clear; stty -a | tr ' ;' '\\n\\n' | grep -x -e icanon -e echo -e isig | sort | tr '\\n' ' '; echo .");
        self.has("echo icanon isig .");
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command
            .args(["-L", &self.server])
            .args(arguments)
            .env_remove("TMUX");
        let ran = command.output();
        let Output {
            status,
            stdout,
            stderr,
        } = ran.expect("tmux runs; scripts/tmux.sh installs it");
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        assert!(status.success(), "tmux {arguments:?}: {}", text(&stderr));
        text(&stdout)
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // It may have ended by itself.
        let mut command = Command::new("tmux");
        let _ = command.args(["-L", &self.server, "kill-server"]).output();
    }
}

#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
fn pause() {
    std::thread::sleep(PERIOD);
}
