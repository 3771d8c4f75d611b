//! Exec plugins: programs that print a credential.

use std::io::{self, IsTerminal};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kube::config::{ExecConfig, ExecInteractiveMode};
use lariat_core::{without_values, yaml};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::printed::Printed;
use crate::clock;

/// The timeout of a plugin that cannot ask its user anything.
///
/// An interactive plugin waits for a person, as with client-go.
const RUN_TIMEOUT: Duration = Duration::from_secs(60);

/// How often a running plugin is checked.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The error of an exec plugin that returned no credential.
///
/// Its standard error is not included: it is the standard error of the program, as with client-go.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ExecError {
    #[error("the kubeconfig has an exec plugin without a command")]
    NoCommand,
    #[error("cannot start the exec plugin {command:?} of the kubeconfig{hint}")]
    Start {
        command: String,
        hint: String,
        source: Arc<io::Error>,
    },
    #[error(
        "the exec plugin {command:?} of the kubeconfig failed ({status}); its messages are on standard error"
    )]
    Failed { command: String, status: ExitStatus },
    #[error(
        "the exec plugin {command:?} of the kubeconfig did not end within {after:?} and was killed"
    )]
    TookTooLong { command: String, after: Duration },
    #[error(
        "the exec plugin {command:?} of the kubeconfig printed no usable ExecCredential: {detail}"
    )]
    Output { command: String, detail: String },
}

/// The credential of an exec plugin.
pub(crate) struct Credential {
    pub(crate) token: Option<String>,
    /// The certificate and its key, as PEM.
    pub(crate) certificate: Option<(String, String)>,
    /// How long it is valid; `None` if the plugin sets no expiry.
    pub(crate) lasts: Option<Duration>,
}

#[derive(Deserialize)]
struct ExecCredential {
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    expiration_timestamp: Option<String>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Runs a plugin and waits for it, which blocks the thread.
///
/// A plugin that is not interactive is killed after a minute. Otherwise each attempt could block a thread, and the
/// shutdown of the runtime, for ever.
pub(crate) fn run(exec: &ExecConfig) -> Result<Credential, ExecError> {
    let command = exec.command.clone().ok_or(ExecError::NoCommand)?;
    let unusable = |detail: String| ExecError::Output {
        command: command.clone(),
        detail,
    };
    let until = (!is_interactive(exec)).then(|| Instant::now() + RUN_TIMEOUT);
    let mut prepared = prepare(&command, exec).map_err(unusable)?;
    let mut child = prepared.spawn().map_err(|source| ExecError::Start {
        command: command.clone(),
        hint: hint(exec, &source),
        source: Arc::new(source),
    })?;
    let ended = wait(&mut child, until);
    if !matches!(ended, Ok(Some(_))) {
        let _ = child.kill();
        // Reaps the process, which would stay a zombie otherwise.
        let _ = child.wait();
    }
    match ended.map_err(|error| unusable(error.to_string()))? {
        None => {
            let after = RUN_TIMEOUT;
            Err(ExecError::TookTooLong { command, after })
        }
        Some((status, _)) if !status.success() => Err(ExecError::Failed { command, status }),
        Some((_, printed)) => read(&printed).map_err(unusable),
    }
}

/// Waits for the end of a program, and returns what it has printed; `None` at the timeout.
fn wait(child: &mut Child, until: Option<Instant>) -> io::Result<Option<(ExitStatus, Vec<u8>)>> {
    let mut printed = child.stdout.take().map(Printed::new).transpose()?;
    loop {
        // Asked before the output is read, so that nothing is printed in between.
        let status = child.try_wait()?;
        if let Some(printed) = &mut printed {
            printed.read()?;
        }
        if let Some(status) = status {
            return Ok(Some((
                status,
                printed.map_or_else(Vec::new, Printed::into_bytes),
            )));
        }
        if until.is_some_and(|until| until <= Instant::now()) {
            return Ok(None);
        }
        // A blocking thread: see `Credentials::reading_for`.
        thread::park_timeout(LOOK_EVERY);
    }
}

/// Returns whether a plugin may ask its user something.
fn is_interactive(exec: &ExecConfig) -> bool {
    match exec.interactive_mode {
        Some(ExecInteractiveMode::Never) => false,
        Some(ExecInteractiveMode::Always) => true,
        _ => io::stdin().is_terminal(),
    }
}

/// Returns advice about a plugin that cannot be started.
fn hint(exec: &ExecConfig, error: &io::Error) -> String {
    match &exec.install_hint {
        Some(hint) if error.kind() == io::ErrorKind::NotFound => format!(" ({})", hint.trim()),
        None if error.kind() == io::ErrorKind::NotFound => {
            "; is it installed, and in the PATH of this program?".to_owned()
        }
        _ => String::new(),
    }
}

fn prepare(name: &str, exec: &ExecConfig) -> Result<Command, String> {
    let mut command = Command::new(name);
    command.args(exec.args.iter().flatten());
    for variable in exec.env.iter().flatten() {
        if let Some((name, value)) = variable.get("name").zip(variable.get("value")) {
            command.env(name, value);
        }
    }
    let is_interactive = is_interactive(exec);
    command.stdin(if is_interactive {
        Stdio::inherit()
    } else {
        Stdio::null()
    });
    command.stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut spec = json!({"interactive": is_interactive});
    if exec.provide_cluster_info {
        let cluster = serde_json::to_value(&exec.cluster);
        spec["cluster"] = cluster.map_err(|error| error.to_string())?;
    }
    let info = json!({"kind": "ExecCredential", "apiVersion": exec.api_version, "spec": spec});
    command.env("KUBERNETES_EXEC_INFO", info.to_string());
    for name in exec.drop_env.iter().flatten() {
        command.env_remove(name);
    }
    Ok(command)
}

/// Parses the output of a plugin: JSON, or YAML, which client-go accepts too.
fn read(output: &[u8]) -> Result<Credential, String> {
    // Further words of the errors quote the output, which contains the credential.
    let value = yaml::read(&String::from_utf8_lossy(output))
        .map_err(|error| format!("it is not YAML, see line {}", error.line()))?;
    let credential: ExecCredential =
        serde_json::from_value(value).map_err(|error| without_values(&error.to_string()))?;
    let status = credential.status.ok_or("it has no status")?;
    let set = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let lasts = status
        .expiration_timestamp
        .as_deref()
        .map(clock::until)
        .transpose()
        .map_err(|error| error.to_string())?;
    let token = set(status.token).map(|token| token.trim().to_owned());
    let certificate = match (
        set(status.client_certificate_data),
        set(status.client_key_data),
    ) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err("a client certificate and its key belong together".to_owned()),
    };
    if token.is_none() && certificate.is_none() {
        return Err("it has neither a token nor a client certificate".to_owned());
    }
    Ok(Credential {
        token,
        certificate,
        lasts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_from_json_and_yaml() {
        let json = br#"{"kind": "ExecCredential", "status": {"token": "a"}}"#;
        let credential = read(json).unwrap();
        assert_eq!(credential.token.as_deref(), Some("a"));
        assert_eq!(credential.lasts, None);
        let yaml = b"status:\n  clientCertificateData: c\n  clientKeyData: k\n  expirationTimestamp: \"2020-01-01T00:00:00Z\"\n";
        let credential = read(yaml).unwrap();
        let expected = Some(("c".to_owned(), "k".to_owned()));
        assert_eq!(credential.certificate, expected);
        assert_eq!(credential.lasts, Some(Duration::ZERO), "it has passed");
    }

    #[test]
    fn what_is_no_credential_is_refused_without_showing_it() {
        for output in [
            r#"{"status": {"token": {"secret": "hunter2"}}}"#,
            r#"{"status": "hunter2"}"#,
            "hunter2",
            "{}",
            r#"{"status": {}}"#,
            r#"{"status": {"clientKeyData": "hunter2"}}"#,
            r#"{"status": {"token": "hunter2", "expirationTimestamp": "soon"}}"#,
            r#"{"status": {"token": "", "clientCertificateData": "", "clientKeyData": "hunter2"}}"#,
            r#"{"status": {"token": "", "clientCertificateData": ""}}"#,
            "hunter2: [",
        ] {
            let Err(error) = read(output.as_bytes()) else {
                panic!("{output} is none");
            };
            assert!(!error.contains("hunter2"), "{output}: {error}");
        }
    }
}
