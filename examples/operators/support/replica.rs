//! Replicas as processes: the example starts its own program once for each.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lariat::cluster::Cluster;
use lariat::kube::Client;
use lariat::{Lease, termination};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

use super::{
    About, ExampleCluster, Flag, Options, Paint, Stage, exit_code, log_errors, output_closed,
    perform, print_action, say,
};

/// The option that makes the program one replica instead of the example.
pub const REPLICA: Flag = Flag {
    name: "replica",
    default: "",
    help: "run one replica, with this identity",
};

/// The option with the namespace of a replica.
pub const NAMESPACE: Flag = Flag {
    name: "namespace",
    default: "default",
    help: "where a replica has its lease and its objects",
};

/// The option that ends a replica with the example.
pub const ATTACHED: Flag = Flag {
    name: "attached",
    default: "false",
    help: "end a replica when its standard input ends",
};

/// One replica of several.
pub struct Replica {
    /// Its identity.
    pub name: String,
    /// The namespace of its lease and its objects.
    pub namespace: String,
    /// The client of the common cluster.
    pub client: Client,
    /// The command line.
    pub options: Options,
}

impl Replica {
    async fn find(options: Options) -> Result<Self> {
        let target = ExampleCluster::find(options.kubeconfig.clone()).await?;
        if target.embedded.is_some() {
            bail!("--replica needs the cluster that the others have: --kubeconfig or KUBECONFIG");
        }
        Ok(Self {
            name: options.value(REPLICA.name)?,
            namespace: options.value(NAMESPACE.name)?,
            client: target.client,
            options,
        })
    }

    /// Waits until the replica has to stop: for a signal, or the end of the example that started it.
    ///
    /// # Errors
    ///
    /// The command line has no option [`ATTACHED`].
    pub async fn stopped(&self) -> Result<()> {
        let is_attached: bool = self.options.value(ATTACHED.name)?;
        tokio::select! {
            () = termination() => {}
            () = output_closed() => {}
            () = input_ended(), if is_attached => {}
        }
        Ok(())
    }
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replica")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Waits for the end of the standard input, which ends when the process at its other end is killed.
async fn input_ended() {
    let (sender, ended) = oneshot::channel::<()>();
    // A thread, since a runtime would wait for a pending read when it shuts down.
    std::thread::spawn(move || {
        // An input that cannot be read has ended too.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        drop(sender);
    });
    // Nothing is ever sent.
    let _ = ended.await;
}

/// Runs an example that starts replicas, or with [`REPLICA`] one of them.
pub async fn perform_with_replicas(
    about: About,
    replica: impl AsyncFnOnce(Replica) -> Result<()>,
    set_up: impl AsyncFnOnce(&Stage) -> Result<()>,
    story: impl AsyncFnOnce(&Stage) -> Result<()>,
) -> ExitCode {
    let run = async |options| {
        log_errors();
        replica(Replica::find(options).await?).await?;
        say("stopped");
        Ok(())
    };
    let ended = match Options::parse(&about) {
        Ok(Some(options)) => match options.value::<String>(REPLICA.name) {
            Ok(name) if name.is_empty() => return perform(about, set_up, story).await,
            Ok(_) => run(options).await,
            Err(error) => Err(error),
        },
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    exit_code(&ended)
}

/// Sets the duration of a lease, and its other times in the proportions of client-go's 15, 10 and 2 seconds.
pub fn lasting(lease: Lease, duration: Duration) -> Lease {
    lease
        .duration(duration)
        .renew_deadline(duration * 2 / 3)
        .retry_period(duration * 2 / 15)
}

/// The replicas that an example has started.
#[derive(Debug)]
pub struct Replicas {
    /// Options of the example that are passed on to its replicas.
    options: &'static [&'static str],
    kubeconfig: Mutex<Option<PathBuf>>,
    processes: Mutex<BTreeMap<String, u32>>,
}

impl Replicas {
    /// Creates an empty set; `options` are passed on to replicas.
    #[must_use]
    pub const fn new(options: &'static [&'static str]) -> Self {
        Self {
            options,
            kubeconfig: Mutex::new(None),
            processes: Mutex::new(BTreeMap::new()),
        }
    }

    /// Starts a replica, and forwards its output; it is killed at the end of the example.
    ///
    /// # Errors
    ///
    /// The process does not start.
    pub fn start(
        &self,
        stage: &Stage,
        name: &'static str,
        colour: fn(&str) -> Paint,
    ) -> Result<()> {
        let mut child = self.command(stage, name)?.spawn()?;
        let id = child.id().context("it has just been started")?;
        self.processes.lock().insert(name.to_owned(), id);
        stage.suggest(format_args!("kill -9 {id}   # {name}"));
        let ending = stage.ending.clone();
        stage.tasks.spawn(async move {
            let printed = print(name, &mut child, colour);
            if ending.run_until_cancelled(printed).await.is_none() {
                // A process that has ended cannot be killed any more.
                let _ = child.start_kill();
                let _ = child.wait().await;
            } else if let Ok(status) = child.wait().await {
                print_action("replica", name, Paint::Red, format_args!("ended: {status}"));
            }
        });
        Ok(())
    }

    fn command(&self, stage: &Stage, name: &str) -> Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--replica", name, "--namespace", &stage.namespace]);
        for option in self.options {
            let value: String = stage.options.value(option)?;
            command.arg(format!("--{option}")).arg(value);
        }
        command.arg("--kubeconfig").arg(self.kubeconfig(stage)?);
        command
            .arg("--attached")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        Ok(command)
    }

    /// Returns the path of a kubeconfig of the example's cluster; that of the embedded one is deleted with the example.
    fn kubeconfig(&self, stage: &Stage) -> Result<PathBuf> {
        let mut known = self.kubeconfig.lock();
        let path = match known.take() {
            Some(path) => path,
            None => write_kubeconfig(stage)?,
        };
        Ok(known.insert(path).clone())
    }

    /// Sends a replica a signal.
    ///
    /// # Errors
    ///
    /// It was not started, or has ended.
    pub async fn signal(&self, name: &str, signal: &str) -> Result<()> {
        let process = self.processes.lock().get(name).copied();
        let process = process.with_context(|| format!("there is no replica {name}"))?;
        let mut kill = Command::new("kill");
        let sent = kill.args(["-s", signal, &process.to_string()]).status();
        if !sent.await.context("kill cannot be run")?.success() {
            bail!("SIG{signal} cannot be sent to {name}, the process {process}");
        }
        Ok(())
    }
}

async fn print(name: &str, child: &mut Child, colour: fn(&str) -> Paint) {
    let Some(output) = child.stdout.take() else {
        return;
    };
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        print_action("replica", name, colour(&line), line);
    }
}

fn write_kubeconfig(stage: &Stage) -> Result<PathBuf> {
    let Some(text) = stage.target.embedded.as_ref().and_then(Cluster::kubeconfig) else {
        let given = stage.options.kubeconfig.clone();
        let given = given.or_else(|| std::env::var_os("KUBECONFIG").map(PathBuf::from));
        return given.context("the cluster has no kubeconfig");
    };
    let path = std::env::temp_dir().join(format!("{}.kubeconfig", stage.namespace));
    std::fs::write(&path, text)?;
    let (ending, file) = (stage.ending.clone(), path.clone());
    stage.tasks.spawn(async move {
        ending.cancelled().await;
        // A file that is left behind does no harm.
        let _ = std::fs::remove_file(file);
    });
    Ok(path)
}
