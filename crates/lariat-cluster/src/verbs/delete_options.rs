//! The options of a deletion, from its body and its query.

use serde::Deserialize;

use super::Call;
use crate::api::query::bad_dry_run;
use crate::api::status::{ApiError, Cause};
use crate::store::Stored;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeleteOptions {
    pub(super) grace_period_seconds: Option<u64>,
    propagation_policy: Option<String>,
    preconditions: Option<Preconditions>,
    dry_run: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl DeleteOptions {
    pub(super) fn of(call: &Call) -> Result<Self, ApiError> {
        let mut options = Self::default();
        if !call.body.trim_ascii().is_empty() {
            options = serde_json::from_slice(&call.body).map_err(|error| {
                ApiError::bad_request(format!("the body is not a DeleteOptions: {error}"))
            })?;
        }
        if let Some(grace) = call.query.text("gracePeriodSeconds") {
            options.grace_period_seconds = Some(grace.parse().map_err(|_| {
                ApiError::bad_request(format!("gracePeriodSeconds {grace:?} is not a number"))
            })?);
        }
        if let Some(policy) = call.query.text("propagationPolicy") {
            options.propagation_policy = Some(policy.to_owned());
        }
        if let Some(dry_run) = call.query.text("dryRun") {
            options.dry_run = Some(vec![dry_run.to_owned()]);
        }
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<(), ApiError> {
        if let Some(policy) = &self.propagation_policy
            && !matches!(policy.as_str(), "Orphan" | "Background" | "Foreground")
        {
            let supported = r#""Foreground", "Background", "Orphan""#;
            let cause = Cause::unsupported("propagationPolicy", policy, supported);
            return Err(ApiError::invalid_options("DeleteOptions", cause));
        }
        match self.dry_run.iter().flatten().find(|value| *value != "All") {
            Some(value) => Err(bad_dry_run("DeleteOptions", value)),
            None => Ok(()),
        }
    }

    pub(super) fn is_dry_run(&self) -> bool {
        self.dry_run
            .as_ref()
            .is_some_and(|values| !values.is_empty())
    }

    /// Checks that the object is the one the client means.
    pub(super) fn check_preconditions(&self, call: &Call, stored: &Stored) -> Result<(), ApiError> {
        let Some(preconditions) = &self.preconditions else {
            return Ok(());
        };
        let refuse = |what: String| {
            Err(ApiError::precondition(
                &call.resource,
                stored.key().name(),
                &what,
            ))
        };
        if let Some(uid) = &preconditions.uid
            && uid != stored.uid()
        {
            return refuse(format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The \
                 object might have been deleted and then recreated",
                stored.uid()
            ));
        }
        if let Some(version) = &preconditions.resource_version
            && *version != stored.revision().to_string()
        {
            return refuse(format!(
                "the ResourceVersion in the precondition ({version}) does not match the \
                 ResourceVersion in record ({}). The object might have been modified",
                stored.revision()
            ));
        }
        Ok(())
    }
}
