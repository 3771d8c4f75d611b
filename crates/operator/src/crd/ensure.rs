//! Installs CRDs, and waits until they are served.
//!
//! Each CRD is checked in a loop: it is read, created or patched if that is needed and allowed, and read again, until
//! it is established and all its versions are served. The loop ends with a report, a final error, or at the timeout.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use serde_json::Value;
use tokio::time;

use super::compare::{Comparison, compare, complaints, is_condition, served};
use super::error::{CrdError, InstallError};
use super::json::{is_true, text};
use super::options::{CrdOptions, Install};
use super::report::{CrdChange, CrdMismatch, CrdReport};
use super::requests::{Failure, Requests};
use super::schema::{Fields, fields_of_version, new_fields};

/// The first and the longest pause between two checks.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Installs CRDs, and waits until they are established and served.
///
/// All CRDs are installed concurrently. The reports are in the order of the CRDs. No operator is needed.
///
/// A missing CRD is created. One that differs is patched, on the condition that it has not changed since it was read.
/// Only what the CRD of this program contains is written. The following parts are kept:
///
/// - labels and annotations of others, members of the specification that the program's CRD does not have, and the
///   status;
/// - the conversion and its `caBundle`, unless the program's CRD has them;
/// - versions that the program's CRD does not have, which a newer program may have added. They are reported. If
///   objects are stored in such a version, and it is newer than all versions of the program, it stays the storage
///   version;
/// - fields that the schema of a version in the program's CRD does not have, unless it has a greater number. They are
///   reported.
///
/// A CRD without differences is not written, so replicas that start at the same time do not conflict. A number can tell
/// which of two CRDs is newer, see [`with_crd_version`](crate::with_crd_version); without it the last program wins, but
/// removes no fields. [`Install`] restricts what is written.
///
/// An API server applies an updated schema later than it stores the CRD, and drops new fields from objects until then.
/// So after an update that adds fields, the call returns when the API server publishes them in its OpenAPI document,
/// and an object that is written then is stored whole by the API server that has answered; other API servers of the
/// cluster may drop the fields for some moments more. It does not wait if `/openapi/v3` cannot be read (403 or 404), or
/// if another replica has updated the CRD before.
///
/// If a CRD is being deleted, it is created again after its deletion. Transient errors, such as conflicts and overload,
/// are retried until the timeout.
///
/// ```no_run
/// use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
/// use lariat::operator::{CrdOptions, ensure_crds};
///
/// # async fn example(client: kube::Client, widgets: CustomResourceDefinition)
/// # -> Result<(), lariat::operator::InstallError> {
/// for report in ensure_crds(&client, &[widgets], &CrdOptions::default()).await? {
///     println!("{report}");
/// }
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// Some CRDs are not installed. The error names all of them, with what is missing and what to do. The other CRDs may
/// have been written.
///
/// # Cancel safety
///
/// If the future is dropped, each CRD may have been written. A further call continues.
pub async fn ensure_crds(
    client: &Client,
    definitions: &[CustomResourceDefinition],
    options: &CrdOptions,
) -> Result<Vec<CrdReport>, InstallError> {
    // Two CRDs of one name would overwrite each other in turns until the timeout.
    let mut seen = BTreeSet::new();
    let tasks: Vec<_> = definitions
        .iter()
        .map(|definition| {
            let name = definition.metadata.name.clone().unwrap_or_default();
            let is_new = seen.insert(name.clone());
            ensure(client, definition, name, is_new, options)
        })
        .collect();
    let (mut reports, mut failures) = (Vec::new(), Vec::new());
    for result in join_all(tasks).await {
        match result {
            Ok(report) => reports.push(report),
            Err(error) => failures.push(error),
        }
    }
    if failures.is_empty() {
        Ok(reports)
    } else {
        Err(InstallError { failures })
    }
}

/// Installs one CRD; `is_new` tells that no other one has its name.
async fn ensure(
    client: &Client,
    definition: &CustomResourceDefinition,
    name: String,
    is_new: bool,
    options: &CrdOptions,
) -> Result<CrdReport, CrdError> {
    let invalid = |reason| {
        Err(CrdError::Invalid {
            name: name.clone(),
            reason,
        })
    };
    if name.is_empty() {
        return invalid("it has no name");
    }
    if !is_new {
        return invalid(
            "two CRDs have this name; merge several versions into one with kube's merge_crds",
        );
    }
    let Ok(mut ours) = serde_json::to_value(definition) else {
        return invalid("it cannot be written as JSON");
    };
    // The status belongs to the API server.
    if let Some(members) = ours.as_object_mut() {
        members.remove("status");
    }
    let mut task = Task {
        requests: Requests::new(client, &name, options.manager()),
        ours: &ours,
        install: options.install,
        plans: options.plans,
        change: CrdChange::Unchanged,
        added: BTreeMap::new(),
        patched: None,
        waiting: "no request was sent yet".to_owned(),
        is_logged: false,
    };
    let limit = options.timeout;
    let Ok(result) = time::timeout(limit, task.run()).await else {
        let missing = task.waiting;
        return Err(CrdError::NotReady {
            name,
            after: limit,
            missing,
        });
    };
    let report = result?;
    tracing::info!(crd = report.name, "{report}");
    Ok(report)
}

/// The installation of one CRD.
struct Task<'a> {
    requests: Requests<'a>,
    ours: &'a Value,
    install: Install,
    /// Whether writes are dry runs.
    plans: bool,
    change: CrdChange,
    /// The fields that patches add, by version.
    added: BTreeMap<String, Fields>,
    /// The differing paths at the last patch.
    ///
    /// If the same paths differ after it, the API server does not keep them, and another patch would not help.
    patched: Option<Vec<String>>,
    /// What is missing, for the error at the timeout.
    waiting: String,
    /// Whether the wait was logged.
    is_logged: bool,
}

/// The step after a check.
enum Next {
    Ready(Vec<CrdMismatch>),
    /// Check again immediately, because the CRD was written.
    CheckAgain,
    /// Check again after a pause, for this reason.
    Wait(String),
}

impl Task<'_> {
    async fn run(&mut self) -> Result<CrdReport, CrdError> {
        let mut pause = PAUSES.0;
        loop {
            match self.check().await {
                Ok(Next::Ready(mismatches)) => {
                    return Ok(CrdReport {
                        name: self.requests.name.to_owned(),
                        change: self.change.clone(),
                        mismatches,
                    });
                }
                Ok(Next::CheckAgain) => continue,
                Ok(Next::Wait(missing)) | Err(Failure::Again(missing)) => {
                    // Logged once, and only if the wait is not short.
                    if pause >= PAUSES.1 && !self.is_logged {
                        let crd = self.requests.name;
                        tracing::warn!(crd, missing, "waiting for the CRD");
                        self.is_logged = true;
                    }
                    self.waiting = missing;
                }
                Err(Failure::Final(error)) => return Err(error),
            }
            time::sleep(pause).await;
            pause = PAUSES.1.min(pause * 2);
        }
    }

    /// Reads the installed CRD, and writes it if that is needed and allowed.
    async fn check(&mut self) -> Result<Next, Failure> {
        let Some(theirs) = self.requests.get().await? else {
            return self.create().await;
        };
        if !text(&theirs, "/metadata/deletionTimestamp").is_empty() {
            let complaints = complaints(&theirs, &[("Terminating", "False")]).join(", ");
            return Ok(Next::Wait(format!("it is being deleted: {complaints}")));
        }
        let found = compare(self.ours, &theirs);
        // A difference that can neither be written nor ignored ends the wait at once: waiting would not change it.
        let may_write = self.install == Install::CreateOrUpdate && found.newer.is_none();
        if let Some(reason) = found
            .incompatible
            .clone()
            .or_else(|| unusable(&found, may_write))
        {
            let name = self.requests.name.to_owned();
            return Err(Failure::Final(CrdError::Incompatible { name, reason }));
        }
        // Equal paths after a patch mean that the API server or another client undoes it. Another patch would not help,
        // so the difference is reported instead.
        if may_write && !found.paths.is_empty() && self.patched.as_ref() != Some(&found.paths) {
            return self.patch(&theirs, found).await;
        }
        self.ready(&theirs, self.mismatches(found, may_write)).await
    }

    async fn create(&mut self) -> Result<Next, Failure> {
        if self.install == Install::Verify {
            let name = self.requests.name.to_owned();
            return Err(Failure::Final(CrdError::Missing { name }));
        }
        self.requests.create(self.ours).await?;
        self.change = CrdChange::Created;
        Ok(self.after_write())
    }

    async fn patch(&mut self, theirs: &Value, found: Comparison) -> Result<Next, Failure> {
        // Before the patch: its answer may be lost, and of several replicas one alone writes it.
        for (version, fields) in new_fields(self.ours, theirs) {
            self.added.entry(version).or_default().extend(fields);
        }
        let answer = self.requests.patch(&found.patch).await?;
        let version = |object: &Value| text(object, "/metadata/resourceVersion").to_owned();
        // An older API server accepts unknown fields and drops them, and keeps the resource version.
        let is_changed = self.plans || version(&answer) != version(theirs);
        if is_changed && self.change == CrdChange::Unchanged {
            self.change = CrdChange::Updated(found.paths.clone());
        }
        self.patched = Some(found.paths);
        Ok(self.after_write())
    }

    /// Returns the step after a write. A dry run has changed nothing, so that there is nothing to wait for.
    fn after_write(&self) -> Next {
        if self.plans {
            Next::Ready(Vec::new())
        } else {
            Next::CheckAgain
        }
    }

    /// Returns the differences that remain, for the report.
    fn mismatches(&self, found: Comparison, may_write: bool) -> Vec<CrdMismatch> {
        let mut mismatches = found.mismatches;
        if may_write {
            // The differences remained after the patch, so the API server does not keep the fields.
            if !found.paths.is_empty() {
                mismatches.push(CrdMismatch::NotKept { paths: found.paths });
            }
            return mismatches;
        }
        if let Some((installed, ours)) = found.newer {
            mismatches.push(CrdMismatch::NewerCrd { installed, ours });
        }
        let mut paths = found.paths;
        paths.retain(|path| path.starts_with("spec."));
        if !paths.is_empty() && found.newer.is_none() {
            mismatches.push(CrdMismatch::Differs { paths });
        }
        mismatches
    }

    /// Returns which added fields the API server does not publish yet.
    async fn unpublished(&self, theirs: &Value) -> Option<String> {
        // Such a kind has no field that is dropped.
        if is_true(theirs, "/spec/preserveUnknownFields") {
            return None;
        }
        for (version, added) in &self.added {
            // Another client may have removed some of them again.
            let installed = fields_of_version(theirs, version).unwrap_or_default();
            let fields = added & &installed;
            let missing = self.requests.unpublished(theirs, version, &fields).await;
            if missing.is_some() {
                return missing;
            }
        }
        None
    }

    /// Checks that the CRD is established, and our served versions are served.
    ///
    /// Fields that this call has added must be published too.
    async fn ready(
        &self,
        theirs: &Value,
        mut mismatches: Vec<CrdMismatch>,
    ) -> Result<Next, Failure> {
        let wanted = [("Established", "True"), ("NamesAccepted", "True")];
        let complaints = complaints(theirs, &wanted).join(", ");
        if !is_condition(theirs, "Established", "True") {
            return Ok(Next::Wait(if complaints.is_empty() {
                "the API server has not established it yet".to_owned()
            } else {
                complaints
            }));
        }
        if !complaints.is_empty() {
            mismatches.push(CrdMismatch::NamesNotAccepted {
                message: complaints,
            });
        }
        for version in served(self.ours) {
            if let Some(missing) = self.requests.unserved(self.ours, version).await {
                return Ok(Next::Wait(missing));
            }
        }
        Ok(match self.unpublished(theirs).await {
            Some(missing) => Next::Wait(missing),
            None => Next::Ready(mismatches),
        })
    }
}

/// Returns why the installed CRD cannot be used, if it may not be changed.
fn unusable(found: &Comparison, may_write: bool) -> Option<String> {
    if may_write || found.unserved.is_empty() {
        return None;
    }
    Some(format!(
        "it does not serve {}, and this program may not change it: install this program's CRD",
        found.unserved.join(", ")
    ))
}
