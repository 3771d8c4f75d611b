//! kubectl, as a user runs it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// Where `scripts/kubectl.sh` puts kubectl in the target folder.
const INSTALLED: &str = "kubectl-1.37.1/kubectl";

/// How long a command may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// kubectl with a kubeconfig, a namespace, and a cache of discovery of its own.
#[derive(Debug)]
pub struct Kubectl {
    program: PathBuf,
    folder: PathBuf,
    kubeconfig: PathBuf,
    namespace: String,
}

/// What a command ended with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The exit code.
    pub code: Option<i32>,
    /// What it wrote to stdout.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

/// A command that goes on, such as a watch.
#[derive(Debug)]
pub struct RunningCommand {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Kubectl {
    /// Makes kubectl for a cluster: that of a kubeconfig's text, or of `KUBECONFIG`.
    ///
    /// # Errors
    ///
    /// kubectl is not installed, or its folder cannot be made.
    pub fn new(kubeconfig: Option<&str>, namespace: &str) -> Result<Self> {
        let program = kubectl_path()?;
        let own = match kubeconfig {
            Some(_) => None,
            None => Some(std::env::var_os("KUBECONFIG").context("KUBECONFIG")?),
        };
        let folder = std::env::temp_dir().join(format!("lariat-kubectl-{}", fastrand::u64(..)));
        std::fs::create_dir(&folder)?;
        // From here on the folder goes with it, whatever fails.
        let kubectl = Self {
            program,
            kubeconfig: own.map_or_else(|| folder.join("kubeconfig"), PathBuf::from),
            folder,
            namespace: namespace.to_owned(),
        };
        if let Some(content) = kubeconfig {
            std::fs::write(&kubectl.kubeconfig, content)?;
        }
        Ok(kubectl)
    }

    /// Returns a folder that is removed with this.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs a command that must succeed, and returns what it wrote to stdout.
    ///
    /// # Errors
    ///
    /// It fails; the text is what it wrote.
    pub async fn run(&self, arguments: &str) -> Result<String> {
        self.run_with(arguments, "").await
    }

    /// Runs a command that must succeed and reads objects from stdin (`-f -`).
    ///
    /// # Errors
    ///
    /// It fails; the text is what it wrote.
    pub async fn run_with(&self, arguments: &str, input: &str) -> Result<String> {
        let ended = self.ended(&words(arguments), input).await?;
        match ended.code {
            Some(0) => Ok(ended.stdout),
            code => bail!(
                "kubectl {arguments} ended with {code:?}:\n{}{}",
                ended.stdout,
                ended.stderr
            ),
        }
    }

    /// Runs a command that must fail, and returns what it wrote to stderr.
    ///
    /// # Errors
    ///
    /// It succeeds.
    pub async fn refused(&self, arguments: &str, input: &str) -> Result<String> {
        let ended = self.ended(&words(arguments), input).await?;
        match ended.code {
            Some(0) => bail!("kubectl {arguments} succeeded:\n{}", ended.stdout),
            _ => Ok(ended.stderr),
        }
    }

    /// Runs a command whose arguments may have blanks in them.
    ///
    /// # Errors
    ///
    /// It cannot be run, or does not end.
    pub async fn ended(&self, arguments: &[impl AsRef<OsStr>], input: &str) -> Result<Ended> {
        let mut child = self.command(arguments).spawn().context("kubectl runs")?;
        let mut stdin = child.stdin.take().context("stdin is piped")?;
        let feed = async {
            // A command that does not read what it is given fails by itself.
            let _ = stdin.write_all(input.as_bytes()).await;
            drop(stdin);
        };
        let wait = async { tokio::join!(feed, child.wait_with_output()).1 };
        let output = timeout(TIMEOUT, wait).await.with_context(|| {
            let words: Vec<_> = arguments.iter().map(AsRef::as_ref).collect();
            format!("kubectl {words:?} did not end in {TIMEOUT:?}")
        })??;
        Ok(Ended {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout)?,
            stderr: String::from_utf8(output.stderr)?,
        })
    }

    /// Starts a command that goes on; it ends when the result is dropped.
    ///
    /// # Errors
    ///
    /// It cannot be run.
    pub fn start(&self, arguments: &str) -> Result<RunningCommand> {
        let mut child = self.command(&words(arguments)).spawn()?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        Ok(RunningCommand {
            _child: child,
            lines: BufReader::new(stdout).lines(),
        })
    }

    fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(&self.program);
        // Its script is read and not run: nothing runs a file that may still be open in another process.
        let editor = format!("sh {}", self.folder.join("editor").display());
        command
            .args(["--namespace", &self.namespace])
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .arg("--cache-dir")
            .arg(self.folder.join("cache"))
            .args(arguments)
            .env("HOME", &self.folder)
            // An edit that is refused leaves what was written there.
            .env("TMPDIR", &self.folder)
            .env("KUBE_EDITOR", editor)
            .env_remove("KUBECONFIG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        // A folder that is left behind does no harm.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl RunningCommand {
    /// Returns the next line, with single blanks between its columns.
    ///
    /// # Errors
    ///
    /// None comes in a minute.
    pub async fn line(&mut self) -> Result<String> {
        let line = timeout(TIMEOUT, self.lines.next_line()).await;
        let line = line.context("no line came")??;
        Ok(columns(&line.context("it ended")?))
    }
}

/// Puts single blanks between the columns of a table.
#[must_use]
pub fn columns(table: &str) -> String {
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    table.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn words(arguments: &str) -> Vec<&str> {
    arguments.split_whitespace().collect()
}

/// Finds kubectl in the target folder this program was built in.
///
/// # Errors
///
/// It is not installed there.
pub fn kubectl_path() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let mut found = this.ancestors().map(|folder| folder.join(INSTALLED));
    found
        .find(|program| program.is_file())
        .with_context(|| format!("no {INSTALLED} in the target folder: run scripts/kubectl.sh"))
}
