//! Compares the marks of an object with those that it should have, and writes them alone.
//!
//! An apply writes marks together with the content. It does not do everything: an object that is
//! [created only](super::Dependent::create_only) is not applied again, and an apply does not remove a mark that another
//! field manager has set. For these the marks are written by a merge patch, in the state that was read.

use lariat_core::describe;
use serde_json::{Map, Value, json};

use super::error::ObjectError;
use super::marks::{Membership, OWNER};
use super::meta::{Existing, Partial};
use super::present::{Answer, Present};
use super::resolve::Target;
use super::run::Run;
use super::send::parse;
use crate::wire::identity_of;

impl Run<'_> {
    /// Returns whether an object has the marks of a member: its labels and the reference to the owner.
    pub(super) fn has_marks(&self, existing: &Existing, target: &Target) -> bool {
        let owner = self.set.owner.uid();
        let mut owners = existing.owners.iter();
        let found = owners.find(|(uid, _)| uid == owner);
        let is_owned_well = match found {
            _ if target.owner_reference.is_some() => found.is_some_and(|(_, controls)| *controls),
            // The garbage collector would delete a kept object together with its owner.
            Some(_) => !target.options.kept,
            None => true,
        };
        is_owned_well
            && self.set.marks.read(&existing.marks) == Membership::Ours
            && existing.marks.order == target.order
            && existing.marks.is_kept == target.options.kept
    }

    /// Returns whether an existing object lacks a reference to the owner that it gets.
    pub(super) fn lacks_owner(&self, existing: &Existing, target: &Target) -> bool {
        let owner = self.set.owner.uid();
        let mut owners = existing.owners.iter();
        target.owner_reference.is_some() && owners.all(|(uid, _)| uid != owner)
    }

    /// Returns the merge patch that gives an object the marks of a member.
    ///
    /// `live` is its state on the API server, and the patch is for this state only.
    fn marks_patch(&self, live: &Value, target: &Target) -> Value {
        let labels = self.set.marks.labels(target.order, target.options.kept);
        let labels: Map<String, Value> = labels
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        let own = self.set.owner.uid().to_string();
        let references = live.pointer("/metadata/ownerReferences");
        let references = references.and_then(Value::as_array);
        let mut references = references.cloned().unwrap_or_default();
        if target.owner_reference.is_some() || target.options.kept {
            references.retain(|each| each["uid"] != *own);
            references.extend(target.owner_reference.clone());
        }
        json!({"metadata": {
            "uid": live["metadata"]["uid"],
            "resourceVersion": live["metadata"]["resourceVersion"],
            "labels": labels,
            "annotations": {OWNER: self.set.marks.owner.to_string()},
            "ownerReferences": references,
        }})
    }

    /// Writes the marks of an existing object, and nothing else.
    pub(super) async fn mark(&self, live: &Value, target: &Target) -> Result<Answer, ObjectError> {
        let patch = self.marks_patch(live, target);
        self.merge(&patch, target).await
    }

    /// Writes the marks of an object that exists and whose content is not written.
    ///
    /// An object that this operator has never applied is applied with its marks alone, so that its managed fields show
    /// whose it is. If it has applied the object, such an apply would remove the content.
    pub(super) async fn mark_only(
        &self,
        present: &Present,
        target: &Target,
    ) -> Result<Answer, ObjectError> {
        let live: Value = parse("get", present.live.as_deref().unwrap_or_default())?;
        let Partial { metadata } = parse("get", present.live.as_deref().unwrap_or_default())?;
        let is_applied = metadata.is_applied_by_any(&self.managers());
        if is_applied {
            return self.mark(&live, target).await;
        }
        let mut object = identity_of(target.gvk(), &target.key);
        let wanted = &self.marks_patch(&live, target)["metadata"];
        let labels = wanted["labels"].as_object().into_iter().flatten();
        let labels: Map<String, Value> = labels
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        for name in ["uid", "resourceVersion", "annotations"] {
            object["metadata"][name] = wanted[name].clone();
        }
        object["metadata"]["labels"] = Value::Object(labels);
        if let Some(reference) = &target.owner_reference {
            object["metadata"]["ownerReferences"] = json!([reference]);
        }
        let answer = self.send_apply(&object, target).await?;
        self.with_marks(answer, target).await
    }

    /// Completes the marks of an object after an apply.
    ///
    /// An apply leaves a label or reference that another manager has set. A user's `lariat.dev/keep` would protect an
    /// object that the set does not keep.
    pub(super) async fn with_marks(
        &self,
        answer: Answer,
        target: &Target,
    ) -> Result<Answer, ObjectError> {
        let Partial { metadata } = parse("apply", &answer.json)?;
        if self.has_marks(&Existing::from(&metadata), target) {
            return Ok(answer);
        }
        let mut live: Value = parse("apply", &answer.json)?;
        if self.is_planning() {
            // The answer to a dry run is not a state to which a patch could be applied.
            let patch = self.marks_patch(&live, target);
            merge(&mut live, &patch);
            let json = live.to_string();
            return Ok(Answer { json, ..answer });
        }
        self.mark(&live, target).await
    }

    /// Writes the marks of an object whose content was refused; the error is that of the content.
    ///
    /// An apply writes both or neither. Without this an object would be deleted with its owner although the set keeps it
    /// by now, only because a field of it cannot be changed.
    pub(super) async fn mark_in_spite(&self, target: &Target) {
        if let Err(error) = self.mark_live(target).await {
            let (gvk, key, error) = (target.gvk(), &target.key, describe(&error));
            tracing::debug!(%gvk, %key, %error, "the marks were not written either");
        }
    }

    async fn mark_live(&self, target: &Target) -> Result<(), ObjectError> {
        let present = self.read_live(target).await?;
        let (present, claim) = self.claimed(present, target).await?;
        let existing = present.existing.as_ref();
        // An object that would only be adopted stays as it is: with the marks it would be deleted with the owner.
        if claim.is_some() && existing.is_some_and(|existing| self.is_of_owner(existing)) {
            let present = self.rename_manager(present, target).await?;
            let live = present.live.as_deref().unwrap_or_default();
            self.mark(&parse("get", live)?, target).await?;
        }
        Ok(())
    }

    /// Renames the field manager of a former name of the operator in the managed fields of an object.
    ///
    /// Otherwise the former name would own the fields for ever, and those that are not wanted any more would stay. As in
    /// client-go's `csaupgrade`, the managed fields are written for the state that was read.
    pub(super) async fn rename_manager(
        &self,
        present: Present,
        target: &Target,
    ) -> Result<Present, ObjectError> {
        let former = self.set.operator.former();
        let Some(live) = present.live.as_deref().filter(|_| !former.is_empty()) else {
            return Ok(present);
        };
        let live: Value = parse("get", live)?;
        let entries = live.pointer("/metadata/managedFields");
        let entries = entries.and_then(Value::as_array).map(Vec::as_slice);
        let Some(renamed) = renamed(
            entries.unwrap_or_default(),
            &former,
            &self.set.operator.name,
        ) else {
            return Ok(present);
        };
        let patch = json!({"metadata": {
            "uid": live["metadata"]["uid"],
            "resourceVersion": live["metadata"]["resourceVersion"],
            "managedFields": renamed,
        }});
        let answer = self.merge(&patch, target).await?;
        if self.is_planning() {
            return Ok(present);
        }
        Present::read(answer.json)
    }
}

/// Returns managed fields in which the applies of former managers are those of the present one.
///
/// `None` if there are none.
fn renamed(entries: &[Value], former: &[std::sync::Arc<str>], name: &str) -> Option<Vec<Value>> {
    let is_apply = |entry: &Value| entry["operation"] == "Apply";
    let is_former =
        |entry: &Value| is_apply(entry) && former.iter().any(|each| entry["manager"] == **each);
    if !entries.iter().any(is_former) {
        return None;
    }
    let mut renamed: Vec<Value> = Vec::new();
    for entry in entries {
        let mut entry = entry.clone();
        if is_former(&entry) {
            entry["manager"] = json!(name);
        }
        let is_same = |other: &&mut Value| {
            let parts = ["manager", "operation", "apiVersion", "subresource"];
            is_apply(&entry) && parts.iter().all(|part| other[*part] == entry[*part])
        };
        match renamed.iter_mut().find(is_same) {
            Some(other) => unite(&mut other["fieldsV1"], &entry["fieldsV1"]),
            None => renamed.push(entry),
        }
    }
    Some(renamed)
}

/// Merges a patch into an object, as the API server does.
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        return object.clone_from(patch);
    };
    for (name, value) in members {
        let Some(object) = object.as_object_mut() else {
            return;
        };
        if value.is_null() {
            object.remove(name);
        } else {
            merge(
                object.entry(name.clone()).or_insert_with(|| json!({})),
                value,
            );
        }
    }
}

/// Adds the fields of a set to another.
fn unite(fields: &mut Value, others: &Value) {
    match (fields, others) {
        (Value::Object(fields), Value::Object(others)) => {
            for (name, below) in others {
                unite(
                    fields.entry(name.clone()).or_insert_with(|| json!({})),
                    below,
                );
            }
        }
        (fields, others) => fields.clone_from(others),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managed_fields_of_former_operator_become_own() {
        let entry = |manager: &str, operation: &str, fields: Value| json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields});
        let former = ["old".into(), "older".into()];
        let entries = [
            entry("new", "Apply", json!({"f:data": {"f:a": {}}})),
            entry("old", "Apply", json!({"f:data": {"f:b": {}}, "f:kind": {}})),
            entry("old", "Update", json!({"f:data": {"f:c": {}}})),
            entry("kubectl", "Apply", json!({"f:data": {"f:d": {}}})),
        ];
        let expected = vec![
            entry(
                "new",
                "Apply",
                json!({"f:data": {"f:a": {}, "f:b": {}}, "f:kind": {}}),
            ),
            entries[2].clone(),
            entries[3].clone(),
        ];
        assert_eq!(renamed(&entries, &former, "new"), Some(expected));
        assert_eq!(renamed(&entries[2..], &former, "new"), None);
    }
}
