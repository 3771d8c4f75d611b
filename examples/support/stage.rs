//! Where an example plays: a cluster, a namespace of its own, a factory, and the end of it all.

use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::cache::Informer;
use lariat::kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams};
use lariat::kube::{Client, CustomResourceExt, Error};
use lariat::{
    CancellationToken, FactoryBuilder, Gvk, Operator, Selection, SharedControllerFactory,
};
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use super::{
    Flag, Options, Paint, Place, delete, ensure, ensure_namespace, error_exit, forget, log_errors,
    output_closed, paint, say, told, unique,
};

/// The label of what an example makes outside of its namespace; its value is the namespace.
pub const RUN: &str = "lariat.dev/run";
/// How many workers each kind gets.
const WORKERS: usize = 2;
/// How long the objects of an example may take to go, finalizers included.
const FAREWELL: Duration = Duration::from_secs(10);

/// What an example is.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Its name, as cargo knows it.
    pub name: &'static str,
    /// What it shows, in a line.
    pub what: &'static str,
    /// Options of its own.
    pub flags: &'static [Flag],
    /// Refuses values of these that make no sense, before anything is started or made.
    pub check: fn(&Options) -> Result<()>,
}

/// Where an example plays.
pub struct Stage {
    /// The client to make things happen with, as a user of the cluster.
    pub client: Client,
    /// A namespace of the example's own.
    pub namespace: String,
    /// The factory, started after the setting up.
    pub factory: SharedControllerFactory,
    /// The operator, which has the example's name.
    pub operator: Operator,
    /// Tasks of the example's own: when the operator has stopped, the end waits for them.
    pub tasks: TaskTracker,
    /// Tells those tasks that the operator has stopped.
    pub ending: CancellationToken,
    /// The command line.
    pub options: Options,
    pub(super) place: Place,
    /// What whoever watches can try.
    pub(super) suggestions: Mutex<Vec<String>>,
    /// The kinds that were defined for the example.
    defined: Mutex<Vec<(ApiResource, bool)>>,
    /// Namespaces of the example's own beside the first.
    others: Mutex<Vec<String>>,
    /// The caches that are restricted to the example's namespace, which holds as long as somebody has them.
    restricted: Mutex<Vec<Informer>>,
}

/// Performs an example: sets it up, starts the factory, lets the story happen, and takes away what was made.
///
/// With `--watch` there is no story: it goes on until Ctrl-C or SIGTERM, which end a story early too.
pub async fn perform(
    about: About,
    set_up: impl AsyncFnOnce(&Stage) -> Result<()>,
    story: impl AsyncFnOnce(&Stage) -> Result<()>,
) -> ExitCode {
    perform_with(about, |_, _, builder| Ok(builder), set_up, story).await
}

/// Performs an example whose factory has options of its own, which may depend on the command line and on the
/// example's namespace.
pub async fn perform_with(
    about: About,
    configure: impl FnOnce(&Options, &str, FactoryBuilder) -> Result<FactoryBuilder>,
    set_up: impl AsyncFnOnce(&Stage) -> Result<()>,
    story: impl AsyncFnOnce(&Stage) -> Result<()>,
) -> ExitCode {
    log_errors();
    let outcome = match Options::parse(&about) {
        Ok(Some(options)) => match Stage::new(about, options, configure).await {
            Ok(stage) => play(stage, set_up, story).await,
            Err(error) => Err(error),
        },
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error_exit(&error),
    }
}

async fn play(
    stage: Stage,
    set_up: impl AsyncFnOnce(&Stage) -> Result<()>,
    story: impl AsyncFnOnce(&Stage) -> Result<()>,
) -> Result<()> {
    let acts = async {
        set_up(&stage).await?;
        stage.operator.start(WORKERS).await?;
        match stage.options.watch {
            true => stage.wait_for_the_end().await,
            false => story(&stage).await?,
        }
        anyhow::Ok(())
    };
    let outcome = tokio::select! {
        outcome = acts => outcome,
        () = lariat::termination() => {
            stage.step("stopping");
            Ok(())
        }
        () = output_closed() => Ok(()),
    };
    // However it ended, what was made is taken away.
    let left = stage.leave().await;
    outcome.and(left)
}

impl Stage {
    async fn new(
        about: About,
        options: Options,
        configure: impl FnOnce(&Options, &str, FactoryBuilder) -> Result<FactoryBuilder>,
    ) -> Result<Self> {
        let name = about.name.replace('_', "-");
        let namespace = unique(&name);
        let place = Place::with_workloads(options.kubeconfig.clone()).await?;
        let builder = SharedControllerFactory::builder(place.client.clone());
        let factory = configure(&options, &namespace, builder)?.build();
        let title = paint(Paint::Bold, format!("Lariat {name}"), 0);
        say(format_args!("{title} on {}", place.name));
        say(paint(Paint::Dim, about.what, 0));
        ensure_namespace(&place.client, &namespace).await?;
        Ok(Self {
            client: place.client.clone(),
            operator: Operator::new(&name, &factory),
            tasks: TaskTracker::new(),
            ending: CancellationToken::new(),
            namespace,
            factory,
            options,
            place,
            suggestions: Mutex::default(),
            defined: Mutex::default(),
            others: Mutex::default(),
            restricted: Mutex::default(),
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

    /// Makes another namespace of the example's own; it goes at the end, like the first.
    ///
    /// # Errors
    ///
    /// The API server refuses it.
    pub async fn another_namespace(&self, what: &str) -> Result<String> {
        let name = format!("{}-{what}", self.namespace);
        self.others.lock().push(name.clone());
        ensure_namespace(&self.client, &name).await?;
        Ok(name)
    }

    /// Tells of a step of the story.
    pub fn step(&self, what: impl fmt::Display) {
        forget();
        say(paint(Paint::Magenta, format!("▸ {what}"), 0));
    }

    /// Waits until the operator has told something in this step: a line with all these words.
    ///
    /// # Errors
    ///
    /// It has not after two minutes.
    pub async fn told(&self, words: &[&str]) -> Result<()> {
        told(1, words).await
    }

    /// Defines a kind, and waits until it is served; at the end it is taken away again, if it was not there before.
    ///
    /// # Errors
    ///
    /// The API server refuses it.
    pub async fn define<K: CustomResourceExt>(&self) -> Result<()> {
        let (definition, resource) = (K::crd(), K::api_resource());
        let name = definition.metadata.name.clone().unwrap_or_default();
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let is_new = loop {
            match ensure(&definitions, &definition).await {
                Ok(true) => break true,
                Ok(false) => {}
                Err(error) => return Err(error).with_context(|| format!("cannot define {name}")),
            }
            // One that an earlier run is taking away has to be gone first.
            let found = definitions.get_opt(&name).await?;
            if found.is_some_and(|found| found.metadata.deletion_timestamp.is_none()) {
                break false;
            }
            sleep(Duration::from_millis(100)).await;
        };
        self.defined.lock().push((resource.clone(), is_new));
        // What is in no namespace is kept apart by the label RUN.
        if !is_new && definition.spec.scope == "Namespaced" {
            self.keep_to_the_namespace(&resource);
        }
        let objects: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let served = async {
            while objects.list(&ListParams::default().limit(1)).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let served = timeout(Duration::from_secs(30), served).await;
        served.with_context(|| format!("{name} is defined, but not served"))
    }

    /// Lets the operator see objects of the example's namespace only; where the kind was there before, others may be
    /// somebody else's.
    fn keep_to_the_namespace(&self, resource: &ApiResource) {
        let gvk = Gvk::new(&resource.group, &resource.version, &resource.kind);
        let cache = self.factory.caches().for_kind(gvk);
        cache.select(Selection::all().in_namespaces([&self.namespace]));
        self.restricted.lock().push(cache);
    }

    /// Ends the example: its objects first, while their finalizers are looked after.
    async fn leave(self) -> Result<()> {
        let removed = timeout(FAREWELL, self.remove_objects()).await;
        let stopped = self.operator.stop().await;
        self.ending.cancel();
        self.tasks.close();
        let ended = timeout(FAREWELL, self.tasks.wait()).await;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let mut cleaned = delete(&namespaces, &self.namespace).await;
        let others = std::mem::take(&mut *self.others.lock());
        for other in others {
            cleaned = cleaned.and(delete(&namespaces, &other).await);
        }
        let defined = std::mem::take(&mut *self.defined.lock());
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for (resource, _) in defined.iter().filter(|(_, is_new)| *is_new) {
            let name = format!("{}.{}", resource.plural, resource.group);
            delete(&definitions, &name).await?;
        }
        self.place.leave().await;
        say("stopped");
        removed.context("some objects of the example have finalizers and did not go")??;
        cleaned?;
        stopped?;
        ended.context("tasks of the example go on after the operator has stopped")
    }

    /// Deletes the objects of the kinds that were defined, in the example's namespace or, where the kind was new, all.
    async fn remove_objects(&self) -> Result<()> {
        let defined = self.defined.lock().clone();
        for (resource, is_new) in &defined {
            let all: Api<DynamicObject> = Api::all_with(self.client.clone(), resource);
            loop {
                let listed = match all.list(&ListParams::default()).await {
                    // The story took the kind away itself.
                    Err(Error::Api(status)) if status.code == 404 => break,
                    listed => listed?,
                };
                let ours = |object: &&DynamicObject| *is_new || self.made(object);
                let mut left = listed.items.iter().filter(ours).peekable();
                if left.peek().is_none() {
                    break;
                }
                for object in left {
                    self.remove(resource, object).await?;
                }
                sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }

    /// Whether an object is the example's, by its namespace or its label.
    fn made(&self, object: &DynamicObject) -> bool {
        let meta = &object.metadata;
        let run = meta.labels.as_ref().and_then(|labels| labels.get(RUN));
        meta.namespace.as_ref().or(run) == Some(&self.namespace)
    }

    async fn remove(&self, resource: &ApiResource, object: &DynamicObject) -> Result<()> {
        let meta = &object.metadata;
        let api: Api<DynamicObject> = match &meta.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        };
        if meta.deletion_timestamp.is_some() {
            return Ok(());
        }
        let name = meta.name.as_deref().unwrap_or_default();
        match api.delete(name, &DeleteParams::default()).await {
            Err(Error::Api(status)) if status.code == 404 => Ok(()),
            other => other
                .map(drop)
                .with_context(|| format!("cannot delete {name}")),
        }
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
