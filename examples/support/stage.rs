//! Where an example plays: a cluster, a namespace of its own, a factory, and the end of it all.

use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams};
use lariat::kube::{Client, CustomResourceExt, Error};
use lariat::{Operator, SharedControllerFactory};
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

use super::{
    Flag, Options, Paint, Place, delete, ensure, ensure_namespace, error_exit, log_errors,
    output_closed, paint, say, unique,
};

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
    /// The command line.
    pub options: Options,
    place: Place,
    /// The kinds that were defined for the example.
    defined: Mutex<Vec<(ApiResource, bool)>>,
}

/// Performs an example: sets it up, starts the factory, lets the story happen, and takes away what was made.
///
/// With `--watch` there is no story: it goes on until Ctrl-C or SIGTERM, which end a story early too.
pub async fn perform(
    about: About,
    set_up: impl AsyncFnOnce(&Stage) -> Result<()>,
    story: impl AsyncFnOnce(&Stage) -> Result<()>,
) -> ExitCode {
    log_errors();
    let outcome = match Options::parse(&about) {
        Ok(Some(options)) => play(about, options, set_up, story).await,
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error_exit(&error),
    }
}

async fn play(
    about: About,
    options: Options,
    set_up: impl AsyncFnOnce(&Stage) -> Result<()>,
    story: impl AsyncFnOnce(&Stage) -> Result<()>,
) -> Result<()> {
    let stage = Stage::new(about, options).await?;
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
    async fn new(about: About, options: Options) -> Result<Self> {
        let place = Place::with_workloads(options.kubeconfig.clone()).await?;
        let name = about.name.replace('_', "-");
        let title = paint(Paint::Bold, format!("Lariat {name}"), 0);
        say(format_args!("{title} on {}", place.name));
        say(paint(Paint::Dim, about.what, 0));
        let namespace = unique(&name);
        ensure_namespace(&place.client, &namespace).await?;
        let factory = SharedControllerFactory::builder(place.client.clone()).build();
        Ok(Self {
            client: place.client.clone(),
            operator: Operator::new(&name, &factory),
            namespace,
            factory,
            options,
            place,
            defined: Mutex::default(),
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

    /// Tells of a step of the story.
    pub fn step(&self, what: impl fmt::Display) {
        say(paint(Paint::Magenta, format!("▸ {what}"), 0));
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
        let objects: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let served = async {
            while objects.list(&ListParams::default().limit(1)).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let served = timeout(Duration::from_secs(30), served).await;
        served.with_context(|| format!("{name} is defined, but not served"))
    }

    async fn wait_for_the_end(&self) {
        self.step(format_args!(
            "running; namespace {} is yours, Ctrl-C ends",
            self.namespace
        ));
        if let Some(url) = self
            .place
            .embedded
            .as_ref()
            .and_then(|cluster| cluster.url())
        {
            let hint = format!(
                "  kubectl --server {url} --namespace {} get all",
                self.namespace
            );
            say(paint(Paint::Dim, hint, 0));
        }
        std::future::pending().await
    }

    /// Ends the example: its objects first, while their finalizers are looked after.
    async fn leave(self) -> Result<()> {
        let removed = timeout(FAREWELL, self.remove_objects()).await;
        let stopped = self.operator.stop().await;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let cleaned = delete(&namespaces, &self.namespace).await;
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
        Ok(stopped?)
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
                let ours = |object: &&DynamicObject| {
                    *is_new || object.metadata.namespace.as_deref() == Some(&self.namespace)
                };
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
