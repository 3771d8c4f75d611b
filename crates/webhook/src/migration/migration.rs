//! The migration of the stored objects of a kind.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::{Client, Error, ResourceExt};
use lariat_operator::Rule;
use serde_json::json;
use tokio::time::{self, Interval, MissedTickBehavior};

use super::error::MigrationError;
use super::report::MigrationReport;

/// The default number of objects in a page.
const PAGE: u32 = 500;
/// The default number of writes per second.
const RATE: u32 = 50;
/// The number of attempts of a request that the API server cannot answer now.
const ATTEMPTS: u32 = 6;
/// The pause before the second attempt, which doubles with each further one.
const PAUSE: Duration = Duration::from_millis(250);

/// Rewrites all objects of a custom resource in its storage version.
///
/// Run it after the storage version of a CRD has changed, and before an old version is removed from the CRD: a version
/// in `status.storedVersions` cannot be removed. At the end the old versions are removed from that list.
///
/// The objects do not change. Each one is written by an empty patch, which is valid only for the state that was listed.
/// Only metadata is transferred. With several API servers, first wait until all of them know the new storage version.
///
/// ```no_run
/// use lariat::webhook::StorageMigration;
///
/// # async fn example(client: kube::Client) -> Result<(), lariat::webhook::MigrationError> {
/// let report = StorageMigration::new(&client, "widgets.demo.dev").rate(20).run().await?;
/// println!("{} rewritten as {}", report.rewritten, report.version);
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "a migration does nothing until it is run"]
pub struct StorageMigration {
    client: Client,
    definition: String,
    page: u32,
    rate: u32,
    continue_token: Option<String>,
}

/// The kind, in its storage version.
struct Stored {
    resource: ApiResource,
    is_namespaced: bool,
}

impl StorageMigration {
    /// Creates a migration for the kind of a CRD, such as `widgets.demo.dev`.
    pub fn new(client: &Client, definition: &str) -> Self {
        Self {
            client: client.clone(),
            definition: definition.to_owned(),
            page: PAGE,
            rate: RATE,
            continue_token: None,
        }
    }

    /// Sets the number of objects in a page (default 500; at least 1).
    pub fn page(self, page: u32) -> Self {
        let page = page.max(1);
        Self { page, ..self }
    }

    /// Sets the number of writes per second (default 50; at least 1).
    pub fn rate(self, rate: u32) -> Self {
        let rate = rate.max(1);
        Self { rate, ..self }
    }

    /// Continues a migration that was [interrupted](MigrationError::Interrupted).
    ///
    /// The token is bound to the storage version of that migration: if another version is stored now, the migration
    /// starts again. If the token has expired, the migration starts again or continues, as the API server decides.
    ///
    /// ```no_run
    /// use lariat::webhook::{MigrationError, StorageMigration};
    ///
    /// # async fn example(client: kube::Client) -> Result<(), MigrationError> {
    /// let migration = StorageMigration::new(&client, "widgets.demo.dev");
    /// if let Err(MigrationError::Interrupted { continue_token: Some(token), .. }) = migration.clone().run().await {
    ///     migration.resume(token).run().await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn resume(self, continue_token: impl Into<String>) -> Self {
        let continue_token = Some(continue_token.into());
        Self {
            continue_token,
            ..self
        }
    }

    /// Returns the permissions that the migration needs.
    #[must_use]
    pub fn needs(&self) -> Vec<Rule> {
        let (plural, group) = self
            .definition
            .split_once('.')
            .unwrap_or((&self.definition, ""));
        let because = "the migration of stored objects";
        let definitions = || {
            let rule = Rule::on("apiextensions.k8s.io", "customresourcedefinitions");
            rule.named([&*self.definition]).because(because)
        };
        vec![
            definitions().verbs(["get"]),
            definitions().subresource("status").verbs(["patch"]),
            Rule::on(group, plural)
                .verbs(["list", "patch"])
                .because(because),
        ]
    }

    /// Rewrites all objects, then removes the old versions from the status of the CRD.
    ///
    /// If the status has only the storage version, no object is written. Requests that the API server cannot answer now
    /// are retried a few times.
    ///
    /// # Errors
    ///
    /// The CRD does not exist, a request is refused, or the storage version has changed meanwhile. The status of the
    /// CRD is not changed then.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, some objects are rewritten, which does no harm.
    pub async fn run(self) -> Result<MigrationReport, MigrationError> {
        // The storage version is fixed here. If it changes during the migration, the last step notices it.
        let definition = self.definition().await?;
        let version = storage_version(&definition)
            .ok_or_else(|| MigrationError::NoStorageVersion(self.definition.clone()))?;
        let mut report = MigrationReport {
            version: version.clone(),
            ..MigrationReport::default()
        };
        // A second replica, or a second run, finds nothing to do.
        if old_versions(&definition, &version).is_empty() {
            return Ok(report);
        }
        let stored = Stored::of(&definition, &version);
        let token = self.continue_token.as_deref();
        let token = token.and_then(|token| token_of(token, &version));
        self.rewrite(&stored, token, &mut report).await?;
        report.dropped = self.drop_old(&version).await?;
        Ok(report)
    }

    async fn rewrite(
        &self,
        stored: &Stored,
        mut token: Option<String>,
        report: &mut MigrationReport,
    ) -> Result<(), MigrationError> {
        let all: Api<DynamicObject> = Api::all_with(self.client.clone(), &stored.resource);
        let mut ticks = ticks(self.rate);
        loop {
            let params = ListParams {
                limit: Some(self.page),
                continue_token: token.clone(),
                ..ListParams::default()
            };
            let interrupted = |source: Error, rewritten| MigrationError::Interrupted {
                definition: self.definition.clone(),
                rewritten,
                continue_token: token
                    .as_deref()
                    .map(|token| bound(token, &stored.resource.version)),
                source: Box::new(source),
            };
            let page = match again(async || all.list_metadata(&params).await).await {
                Ok(page) => page,
                // The continue token has expired. The API server may offer another one, which continues with a newer
                // list; without it the list starts again.
                Err(Error::Api(status)) if status.code == 410 && token.is_some() => {
                    // Only with a token: a first page that is answered so would be requested again for ever.
                    let metadata = status.metadata.as_ref();
                    token = metadata.and_then(|metadata| metadata.continue_.clone());
                    continue;
                }
                Err(error) => return Err(interrupted(error, report.rewritten)),
            };
            for object in &page.items {
                // Limits the load of the API server and of everybody who watches the kind: each write is a watch event.
                ticks.tick().await;
                match self.touch(stored, object).await {
                    Ok(true) => report.rewritten += 1,
                    Ok(false) => report.skipped += 1,
                    Err(error) => return Err(interrupted(error, report.rewritten)),
                }
            }
            let next = page.metadata.continue_.filter(|token| !token.is_empty());
            match next {
                Some(next) => token = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Writes an object without a change.
    ///
    /// Returns `false` if it does not exist any more, or another client has written it, which stores it in the new
    /// version too.
    async fn touch(
        &self,
        stored: &Stored,
        object: &PartialObjectMeta<DynamicObject>,
    ) -> Result<bool, Error> {
        let namespace = object.namespace().unwrap_or_default();
        let api: Api<DynamicObject> = if stored.is_namespaced {
            Api::namespaced_with(self.client.clone(), &namespace, &stored.resource)
        } else {
            Api::all_with(self.client.clone(), &stored.resource)
        };
        let metadata = &object.metadata;
        // The patch names uid and resource version only. The API server stores the object even though nothing changes,
        // because the stored version differs.
        let condition = json!({"metadata": {
            "uid": metadata.uid, "resourceVersion": metadata.resource_version,
        }});
        let (name, params) = (object.name_any(), PatchParams::default());
        let patch = Patch::Merge(&condition);
        match again(async || api.patch_metadata(&name, &params, &patch).await).await {
            Ok(_) => Ok(true),
            Err(Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes all versions but one from the status of the CRD, and returns them.
    async fn drop_old(&self, version: &str) -> Result<Vec<String>, MigrationError> {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        loop {
            let definition = self.definition().await?;
            let present = storage_version(&definition).unwrap_or_default();
            if present != version {
                return Err(MigrationError::Moved {
                    definition: self.definition.clone(),
                    from: version.to_owned(),
                    to: present,
                });
            }
            let patch = json!({
                "metadata": {"resourceVersion": definition.metadata.resource_version},
                "status": {"storedVersions": [version]},
            });
            let params = PatchParams::default();
            let patch = Patch::Merge(&patch);
            match api.patch_status(&self.definition, &params, &patch).await {
                Ok(_) => return Ok(old_versions(&definition, version)),
                // The CRD was changed meanwhile, perhaps its storage version: read it again.
                Err(Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(self.failed("changed", error)),
            }
        }
    }

    async fn definition(&self) -> Result<CustomResourceDefinition, MigrationError> {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let read = again(async || api.get(&self.definition).await).await;
        read.map_err(|error| self.failed("read", error))
    }

    fn failed(&self, verb: &'static str, source: Error) -> MigrationError {
        MigrationError::Definition {
            definition: self.definition.clone(),
            verb,
            source: Box::new(source),
        }
    }
}

impl Stored {
    fn of(definition: &CustomResourceDefinition, version: &str) -> Self {
        let spec = &definition.spec;
        Self {
            resource: ApiResource {
                group: spec.group.clone(),
                version: version.to_owned(),
                api_version: format!("{}/{version}", spec.group),
                kind: spec.names.kind.clone(),
                plural: spec.names.plural.clone(),
            },
            is_namespaced: spec.scope == "Namespaced",
        }
    }
}

/// Binds a continue token to the version in which the objects before it are stored.
fn bound(token: &str, version: &str) -> String {
    format!("{version}:{token}")
}

/// Returns the continue token, if it is bound to a version.
fn token_of(bound: &str, version: &str) -> Option<String> {
    let (of, token) = bound.split_once(':')?;
    (of == version && !token.is_empty()).then(|| token.to_owned())
}

fn storage_version(definition: &CustomResourceDefinition) -> Option<String> {
    let mut versions = definition.spec.versions.iter();
    let stored = versions.find(|version| version.storage);
    stored.map(|version| version.name.clone())
}

fn old_versions(definition: &CustomResourceDefinition, version: &str) -> Vec<String> {
    let status = definition.status.as_ref();
    let stored = status.and_then(|status| status.stored_versions.clone());
    let all = stored.unwrap_or_default().into_iter();
    all.filter(|each| each != version).collect()
}

/// Sends a request, and retries a few times if the API server cannot answer it now.
async fn again<T>(mut send: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
    let mut pause = PAUSE;
    // One less than all attempts: the last one is below, and returns whatever it gets.
    for _ in 1..ATTEMPTS {
        match send().await {
            Err(Error::Api(status)) if status.code == 429 || status.code >= 500 => {}
            // The connection failed. Whether the write was stored does not matter: it changes nothing.
            Err(Error::HyperError(_) | Error::Service(_)) => {}
            answered => return answered,
        }
        time::sleep(pause).await;
        pause *= 2;
    }
    send().await
}

fn ticks(rate: u32) -> Interval {
    let mut ticks = time::interval(Duration::from_secs(1) / rate);
    // After a slow answer the rate is kept; there is no burst to catch up.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

impl std::fmt::Debug for StorageMigration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StorageMigration")
            .field("definition", &self.definition)
            .finish_non_exhaustive()
    }
}
