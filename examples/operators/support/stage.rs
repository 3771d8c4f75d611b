//! The stage of an example: a cluster, a namespace, a factory, and the clean-up.

use std::fmt;
use std::future::pending;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::kube::api::{Api, ApiResource, DynamicObject, ListParams};
use lariat::kube::{Client, CustomResourceExt};
use lariat::{
    CancellationToken, ControllerOptions, FactoryBuilder, KindOptions, Operator, Selection,
    SharedControllerFactory,
};
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use super::{
    ExampleCluster, Flag, Options, Paint, ensure_crd, ensure_namespace, exit_code, forget,
    log_errors, output_closed, paint, say, until_printed,
};

/// The number of workers per kind.
const WORKERS: usize = 2;

/// The description of an example.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Its name, as cargo knows it.
    pub name: &'static str,
    /// What it shows, in one line.
    pub what: &'static str,
    /// Its own options.
    pub flags: &'static [Flag],
    /// Checks the values of these options, before anything is started or created.
    pub check: fn(&Options) -> Result<()>,
}

/// The stage of an example.
pub struct Stage {
    /// The client of the story, as a user of the cluster.
    pub client: Client,
    /// The example's namespace.
    pub namespace: String,
    /// The factory, started after the set-up.
    pub factory: SharedControllerFactory,
    /// The operator, which has the example's name.
    pub operator: Operator,
    /// The example's own tasks: the end waits for them after the operator has stopped.
    pub tasks: TaskTracker,
    /// Cancelled when the operator has stopped, for those tasks.
    pub ending: CancellationToken,
    /// The command line.
    pub options: Options,
    pub(super) target: ExampleCluster,
    /// Suggestions for users of `--watch`.
    pub(super) suggestions: Mutex<Vec<String>>,
    /// The name of the example, also the label value of its namespaces.
    pub(super) name: String,
    /// The kinds whose CRDs were installed for the example, by this run or another.
    defined: Mutex<Vec<ApiResource>>,
    /// Further namespaces of the example.
    others: Mutex<Vec<String>>,
}

/// Runs an example: sets it up, starts the factory, plays the story, and deletes its objects.
///
/// The operator sees the objects in the example's namespace only, since others may belong to another run or user.
///
/// With `--watch` there is no story: it runs until Ctrl-C or SIGTERM, which also end a story early.
pub async fn perform(
    about: About,
    set_up: impl AsyncFnOnce(&Stage) -> Result<()>,
    story: impl AsyncFnOnce(&Stage) -> Result<()>,
) -> ExitCode {
    let configure = |_: &Options, namespace: &str, builder: FactoryBuilder| {
        Ok(builder.default_options(only_in(namespace)))
    };
    perform_with(about, configure, set_up, story).await
}

/// Returns options of a kind that cache the objects of one namespace only.
pub fn only_in(namespace: &str) -> ControllerOptions {
    let selection = Selection::all().in_namespaces([namespace]);
    ControllerOptions::default().cache(KindOptions::default().selection(selection))
}

/// Runs an example whose factory has its own options, which may depend on the command line and the namespace.
pub async fn perform_with(
    about: About,
    configure: impl FnOnce(&Options, &str, FactoryBuilder) -> Result<FactoryBuilder>,
    set_up: impl AsyncFnOnce(&Stage) -> Result<()>,
    story: impl AsyncFnOnce(&Stage) -> Result<()>,
) -> ExitCode {
    log_errors();
    let outcome = match Options::parse(&about) {
        Ok(Some(options)) => match find(about, options, configure).await {
            Ok(stage) => play(stage, lariat::termination(), set_up, story).await,
            Err(error) => Err(error),
        },
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    exit_code(&outcome)
}

async fn find(
    about: About,
    options: Options,
    configure: impl FnOnce(&Options, &str, FactoryBuilder) -> Result<FactoryBuilder>,
) -> Result<Stage> {
    let target = ExampleCluster::with_workloads(options.kubeconfig.clone()).await?;
    Stage::new(target, about, options, configure).await
}

/// Plays the story, until its end or a signal.
///
/// A signal also ends the clean-up, unless it was the one that ended the story: then the next signal exits immediately.
pub(super) async fn play(
    stage: Stage,
    signal: impl Future<Output = ()>,
    set_up: impl AsyncFnOnce(&Stage) -> Result<()>,
    story: impl AsyncFnOnce(&Stage) -> Result<()>,
) -> Result<()> {
    let acts = async {
        set_up(&stage).await?;
        stage.operator.start(WORKERS).await?;
        if stage.options.watch {
            stage.wait_for_the_end().await
        } else {
            story(&stage).await?
        }
        anyhow::Ok(())
    };
    let (mut signal, mut asked) = (pin!(signal), false);
    let outcome = tokio::select! {
        biased;
        // Polled first, so that the signal handler is installed before anything is printed to which a user may react.
        () = &mut signal => {
            stage.step("stopping");
            asked = true;
            Ok(())
        }
        outcome = acts => outcome,
        () = output_closed() => Ok(()),
    };
    let enough = async { if asked { pending().await } else { signal.await } };
    // The objects are deleted however it ended.
    let left = stage.leave(enough).await;
    if let (Err(_), Err(left)) = (&outcome, &left) {
        say(format_args!("{left:#}"));
    }
    outcome.and(left)
}

impl Stage {
    pub(super) async fn new(
        target: ExampleCluster,
        about: About,
        options: Options,
        configure: impl FnOnce(&Options, &str, FactoryBuilder) -> Result<FactoryBuilder>,
    ) -> Result<Self> {
        let name = about.name.replace('_', "-");
        let namespace = format!("{name}-{:08x}", fastrand::u32(..));
        let builder = SharedControllerFactory::builder(target.client.clone());
        let factory = configure(&options, &namespace, builder)?.build();
        let title = paint(Paint::Bold, format!("Lariat {name}"), 0);
        say(format_args!("{title} on {}", target.name));
        say(paint(Paint::Dim, about.what, 0));
        ensure_namespace(&target.client, &namespace, &name).await?;
        Ok(Self {
            client: target.client.clone(),
            operator: Operator::new(&name, &factory),
            tasks: TaskTracker::new(),
            ending: CancellationToken::new(),
            name,
            namespace,
            factory,
            options,
            target,
            suggestions: Mutex::default(),
            defined: Mutex::default(),
            others: Mutex::default(),
        })
    }

    /// Returns the API of a kind in the example's namespace, as a user of the cluster has it.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: lariat::kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Creates another namespace of the example, which is deleted at the end like the first.
    ///
    /// # Errors
    ///
    /// The API server refuses it.
    pub async fn another_namespace(&self, what: &str) -> Result<String> {
        let name = format!("{}-{what}", self.namespace);
        self.others.lock().push(name.clone());
        ensure_namespace(&self.client, &name, &self.name).await?;
        Ok(name)
    }

    /// Returns the namespaces of the example's own.
    pub(super) fn namespaces(&self) -> Vec<String> {
        let first = std::iter::once(self.namespace.clone());
        first.chain(self.others.lock().iter().cloned()).collect()
    }

    pub(super) fn defined(&self) -> Vec<ApiResource> {
        self.defined.lock().clone()
    }

    /// Prints a step of the story.
    pub fn step(&self, what: impl fmt::Display) {
        forget();
        say(paint(Paint::Magenta, format!("▸ {what}"), 0));
    }

    /// Waits until the operator has printed a line with all these words in this step.
    ///
    /// # Errors
    ///
    /// There is no such line after two minutes.
    pub async fn until_printed(&self, words: &[&str]) -> Result<()> {
        until_printed(1, words).await.map(drop)
    }

    /// Installs a CRD, and waits until it is served.
    ///
    /// At the end it is deleted again, if an example has installed it and it is not used any more.
    ///
    /// # Errors
    ///
    /// The API server refuses it.
    pub async fn define<K: CustomResourceExt>(&self) -> Result<()> {
        self.define_as(K::crd(), K::api_resource()).await
    }

    /// Installs a given CRD; see [`define`](Self::define).
    ///
    /// # Errors
    ///
    /// The API server refuses it.
    pub async fn define_as(
        &self,
        definition: CustomResourceDefinition,
        resource: ApiResource,
    ) -> Result<()> {
        let name = definition.metadata.name.clone().unwrap_or_default();
        ensure_crd(&self.client, definition, &self.namespace).await?;
        self.defined.lock().push(resource.clone());
        let objects: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let served = async {
            while objects.list(&ListParams::default().limit(1)).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let served = timeout(Duration::from_secs(30), served).await;
        served.with_context(|| format!("{name} is installed, but not served"))
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
