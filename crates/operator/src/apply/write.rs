//! Writes one object: sends the apply, and compares what a dry run would change.

use kube::api::PatchParams;
use lariat_lease::Leadership;
use serde_json::Value;

use super::error::ObjectError;
use super::marks::Membership;
use super::memory::{self, ObjectState};
use super::meta::Existing;
use super::present::{Answer, Done, Present};
use super::report::Action;
use super::resolve::{Target, set_annotation};
use super::run::Run;
use super::send::parse;
use crate::diff::Diff;
use crate::names::LEASE;
use crate::wire::is_secret;

/// A resource version that no object has: the greatest that fits the counters of all stores.
///
/// The API server compares the version in an apply with that of the existing object, and refuses if they differ. If
/// there is no object, it creates one regardless of the version.
const NO_VERSION: &str = "9223372036854775807";

impl Run<'_> {
    /// Sends an object, and replaces it if that is needed and allowed.
    pub(super) async fn write(
        &self,
        present: Present,
        target: &Target,
    ) -> Result<Done, ObjectError> {
        let Present {
            existing, cached, ..
        } = present;
        let is_as_applied = || {
            let (set, id) = (self.set.memory(), target.id());
            let now = cached.as_ref();
            now.is_some_and(|now| set.is_as_applied(&id, target.hash, now))
        };
        let action = match (self.send(target, existing.as_ref()).await, existing) {
            (Ok(answer), None) => return Ok(answer.done(Action::Created, target)),
            // A dry run keeps the resource version, so the answer is compared with the object itself.
            (Ok(answer), Some(_)) if self.is_planning() => {
                return self.planned(target, answer).await;
            }
            // The API server keeps the resource version if an apply changes nothing.
            (Ok(answer), Some(before)) if answer.version == before.version => {
                (answer, Action::Unchanged)
            }
            // The status was written between the read and the apply, so the version differs although the apply changed
            // nothing.
            (Ok(answer), Some(_)) if is_as_applied() => (answer, Action::Unchanged),
            (Ok(answer), Some(_)) => (answer, Action::Changed),
            (Err(error @ ObjectError::Immutable { .. }), Some(before))
                if self.replaces(&before, target) =>
            {
                return self.replace(target, &before.uid, error).await;
            }
            (Err(error), _) => return Err(error),
        };
        let (answer, action) = action;
        Ok(answer.done(action, target))
    }

    /// Sends an apply, and remembers the answer.
    pub(super) async fn send(
        &self,
        target: &Target,
        existing: Option<&Existing>,
    ) -> Result<Answer, ObjectError> {
        let signed = self.signed_for_now(target)?;
        let object = match existing {
            // With the uid, the apply is refused if another object has the name by now. That one was not checked, and
            // may belong to others.
            Some(existing) if self.set.marks.read(&existing.marks) == Membership::Ours => {
                with(signed, "uid", &existing.uid.to_string())
            }
            // It is taken over in the state that was checked only: it may become another set's meanwhile.
            Some(existing) => {
                let signed = with(signed, "uid", &existing.uid.to_string());
                with(signed, "resourceVersion", &existing.version.to_string())
            }
            // With this version, the apply is refused if the object exists by now. That one was not checked either, and
            // would be taken over if its fields do not conflict.
            None => with(signed, "resourceVersion", NO_VERSION),
        };
        let answer = self.send_apply(&object, target).await?;
        let answer = self.with_marks(answer, target).await?;
        self.remember(&answer, target);
        Ok(answer)
    }

    /// Applies an object as it is.
    pub(super) async fn send_apply(
        &self,
        object: &Value,
        target: &Target,
    ) -> Result<Answer, ObjectError> {
        let endpoint = self.endpoint(&target.resource, &target.key);
        let params = self.params(target);
        let json = endpoint.apply(target.key.name(), object, &params).await?;
        Answer::read("apply", json)
    }

    /// Merges a patch into an object.
    pub(super) async fn merge(
        &self,
        patch: &Value,
        target: &Target,
    ) -> Result<Answer, ObjectError> {
        let endpoint = self.endpoint(&target.resource, &target.key);
        let params = PatchParams {
            field_manager: Some(self.set.operator.name.to_string()),
            ..PatchParams::default()
        };
        let json = endpoint.merge(target.key.name(), patch, &params).await?;
        Answer::read("patch", json)
    }

    /// Remembers the answer to a write after which the object is as wanted.
    ///
    /// The answer to a dry run is not a state of the object.
    pub(super) fn remember(&self, answer: &Answer, target: &Target) {
        if !self.is_planning() {
            let state = ObjectState {
                uid: &answer.uid,
                version: &answer.version,
                json: answer.json.as_bytes(),
            };
            // The client has taken the answer into the cache, if that holds the object.
            let cached = self.cached(target);
            let set = self.set.memory();
            set.remember(&target.id(), target.hash, state, cached.as_ref());
        }
    }

    /// Returns an object to send, with the present lease in an annotation.
    ///
    /// The lease is not part of the wanted object, so a new leader does not write objects only to record its lease.
    fn signed_for_now(&self, target: &Target) -> Result<Value, ObjectError> {
        let mut object = target.object.clone();
        // The annotation is set on what is sent, not on what is hashed, so the hash does not depend on the leader.
        let leadership = self.set.operator.leadership.as_ref();
        if let Some(signature) = leadership.and_then(Leadership::signature) {
            set_annotation(&mut object, LEASE, &signature)?;
        }
        Ok(object)
    }

    /// Returns what a write would have done to an existing object, from the answer to its dry run.
    ///
    /// A dry run does not change the resource version, so the contents are compared.
    pub(super) async fn planned(
        &self,
        target: &Target,
        answer: Answer,
    ) -> Result<Done, ObjectError> {
        let now = self
            .endpoint(&target.resource, &target.key)
            .get(target.key.name())
            .await?;
        let Some(now) = now.filter(|now| !memory::is_same(now, &answer.json)) else {
            return Ok(answer.done(Action::Unchanged, target));
        };
        let (before, after) = (parse("get", &now)?, parse("apply", &answer.json)?);
        // The status is left out on both sides: controllers change it between the read and the dry run.
        let (before, after) = (without_status(before), without_status(after));
        let diff = Diff::of(&before, &after, is_secret(target.gvk()));
        Ok(Done {
            diff,
            ..answer.done(Action::Changed, target)
        })
    }
}

/// Adds the uid or resource version that the write is meant for.
///
/// The API server does not count these as applied fields.
fn with(mut object: Value, member: &str, value: &str) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert(member.to_owned(), value.into());
    }
    object
}

/// Removes the status, which an apply does not change.
fn without_status(mut object: Value) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    object
}
