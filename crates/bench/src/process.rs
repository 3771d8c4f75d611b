//! Processes that are talked to line by line.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};

/// How often it is looked whether another process goes on.
const LOOK: Duration = Duration::from_millis(200);

/// This program once more, with other arguments; it is ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// None once it is closed, at which the process ends.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn spawn(arguments: &[&str]) -> Result<Self> {
        Self::start(Command::new(std::env::current_exe()?).args(arguments))
    }

    /// Starts a process in a group of its own.
    ///
    /// A Ctrl-C does not reach it, so it can clean up when its input ends.
    pub(crate) fn spawn_apart(arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        Self::start(command.args(arguments).process_group(0))
    }

    fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self {
            input: Some(child.stdin.take().context("its input is piped")?),
            output: BufReader::new(child.stdout.take().context("its output is piped")?),
            child,
        })
    }

    /// Says something, and waits for the answer.
    pub(crate) fn ask(&mut self, line: &str) -> Result<String> {
        let mut input = self.input.as_ref().context("a process was asked to end")?;
        writeln!(input, "{line}").context("a process has ended")?;
        self.hear()
    }

    /// Ends the input of the process, and waits until it has ended by itself.
    pub(crate) fn end(&mut self) -> Result<()> {
        // The end of its input is how a process learns that it has to end.
        drop(self.input.take());
        let ended = self.child.wait()?;
        ensure!(ended.success(), "a process has ended: {ended}");
        Ok(())
    }

    /// Waits for a line.
    pub(crate) fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("a process has ended: {}", self.child.wait()?);
        }
        Ok(line.trim_end().to_owned())
    }

    /// Waits for a line, unless another process ends first.
    pub(crate) fn hear_beside(&mut self, other: &mut Self) -> Result<String> {
        let Self { child, output, .. } = self;
        let (line, ended) = thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let mut line = String::new();
                output.read_line(&mut line).map(|_| line)
            });
            let mut ended = None;
            while !reading.is_finished() && ended.is_none() {
                thread::park_timeout(LOOK);
                // A server that has died would leave the subject waiting for changes until its timeout.
                ended = other.child.try_wait()?;
            }
            if ended.is_some() {
                // So that the reading ends too.
                child.kill()?;
            }
            let line = reading.join().map_err(|_| anyhow!("the reader panicked"))?;
            anyhow::Ok((line?, ended))
        })?;
        match ended {
            None if line.is_empty() => bail!("a process has ended: {}", self.child.wait()?),
            None => Ok(line.trim_end().to_owned()),
            Some(ended) => bail!("the server's process has ended: {ended}"),
        }
    }

    /// Waits for a line that begins with a word; returns the rest of it.
    pub(crate) fn hear_after(&mut self, word: &str) -> Result<String> {
        rest(&self.hear()?, word)
    }

    /// Sends a line, and waits for an answer with a first word; returns its rest.
    pub(crate) fn ask_after(&mut self, line: &str, word: &str) -> Result<String> {
        rest(&self.ask(line)?, word)
    }
}

fn rest(line: &str, word: &str) -> Result<String> {
    match line.strip_prefix(word) {
        Some(rest) => Ok(rest.trim_start().to_owned()),
        None => bail!("{line:?} instead of {word:?}"),
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says a line to the parent process.
pub(crate) fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Waits for a line with a first word from the parent; returns its rest.
pub(crate) fn hear(word: &str) -> Result<String> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    rest(line.trim_end(), word)
}
