//! Selects the webhooks and policies that a request is for.
//!
//! Source: `ShouldCallHook` in `k8s.io/apiserver/pkg/admission/plugin/webhook/generic`.

use lariat_apimachinery::admission::{MatchResult, Matching, ResourceName, Rules, Scope, Webhook};
use lariat_apimachinery::object::Object;
use lariat_apimachinery::schema::{self, Schema};
use lariat_apimachinery::selector::selects;
use lariat_core::{Gvk, ObjectKey};
use serde_json::Value;

use super::request::Request;
use crate::conversion;
use crate::status::ApiError;

/// The resource, kind and version with which a webhook is called.
#[derive(Debug)]
pub(super) struct Invocation {
    /// The resource in the version that its rules name.
    pub(super) resource: ResourceName,
    /// The kind in that version.
    pub(super) kind: Gvk,
}

impl Request<'_> {
    /// Returns how a webhook is called for the request; `None` if it is not.
    pub(super) async fn select(
        &self,
        hook: &Webhook,
        old: Option<&Object>,
        object: Option<&Object>,
    ) -> Result<Option<Invocation>, ApiError> {
        let Some(invocation) = self.match_with(&hook.matching, old, object)? else {
            return Ok(None);
        };
        if hook.conditions.is_empty() {
            return Ok(Some(invocation));
        }
        let (new, old) = self.both_seen_by(&invocation, object, old).await?;
        let names = (&invocation.resource, &invocation.kind);
        let mut scope = Scope::new(&self.attributes, names, new.as_ref(), old.as_ref());
        scope.add_authorizer(&self.attributes, &self.authorizer());
        match hook.conditions.evaluate(&scope, hook.failure_policy) {
            MatchResult::Yes => Ok(Some(invocation)),
            MatchResult::No => Ok(None),
            MatchResult::Error(reason) => {
                let name = &self.attributes.name;
                Err(ApiError::forbidden(self.resource, name, &reason))
            }
        }
    }

    /// Returns the form of the request that matches a webhook; `None` if none does.
    pub(super) fn match_with(
        &self,
        matching: &Matching,
        old: Option<&Object>,
        object: Option<&Object>,
    ) -> Result<Option<Invocation>, ApiError> {
        let in_namespace = self.is_in_selected_namespace(&matching.namespace_selector, object);
        if matches!(in_namespace, Ok(false)) || !is_selected(&matching.object_selector, old, object)
        {
            return Ok(None);
        }
        let is_excluded = || {
            let excluded = self.match_rules(&matching.excluded, matching.equivalent);
            excluded.is_some()
        };
        let found = if matching.any_without_rules && is_excluded() {
            None
        // Without rules a binding's policy matches everything, and a webhook nothing.
        } else if matching.any_without_rules && matching.rules.is_empty() {
            Some(self.as_requested())
        } else {
            self.match_rules(&matching.rules, matching.equivalent)
        };
        match found {
            // A missing namespace is an error only for a webhook that would be called; for others the request goes on
            // and is refused later by the store.
            Some(invocation) => in_namespace.map(|_| Some(invocation)),
            None => Ok(None),
        }
    }

    fn as_requested(&self) -> Invocation {
        Invocation {
            resource: self.attributes.resource.clone(),
            kind: self.attributes.kind.clone(),
        }
    }

    fn match_rules(&self, rules: &Rules, equivalent: bool) -> Option<Invocation> {
        if rules.match_exactly(&self.attributes) {
            return Some(self.as_requested());
        }
        if !equivalent || rules.is_empty() {
            return None;
        }
        let catalog = self.server.kinds.catalog();
        let equivalents = catalog
            .all()
            // Groups and versions that share a table are one resource, as in Go's EquivalentResourceMapper.
            .filter(|each| each.table == self.resource.table);
        let names: Vec<ResourceName> = equivalents
            .map(|each| ResourceName {
                group: each.group.clone(),
                version: each.version.clone(),
                plural: each.plural.clone(),
            })
            .collect();
        let found = rules.match_equivalent(&self.attributes, &names)?;
        let resource = catalog.resource(&found.group, &found.version, &found.plural)?;
        // A Scale is one in every version of what it scales.
        let kind = if self.is_of_resource() {
            resource.gvk()
        } else {
            self.attributes.kind.clone()
        };
        Some(Invocation {
            resource: found,
            kind,
        })
    }

    /// Returns an object in the version in which a webhook wants to see it.
    pub(super) async fn seen_by(
        &self,
        invocation: &Invocation,
        object: &Object,
    ) -> Result<Object, ApiError> {
        let name = &invocation.resource;
        let catalog = self.server.kinds.catalog();
        match catalog.resource(&name.group, &name.version, &name.plural) {
            Some(to) if self.is_of_resource() => {
                let object = object.clone();
                conversion::between(self.server, self.resource, to, object).await
            }
            _ => Ok(object.clone()),
        }
    }

    /// Returns two objects in the version in which a webhook wants to see them.
    pub(super) async fn both_seen_by(
        &self,
        invocation: &Invocation,
        first: Option<&Object>,
        second: Option<&Object>,
    ) -> Result<(Option<Object>, Option<Object>), ApiError> {
        let first = match first {
            Some(object) => Some(self.seen_by(invocation, object).await?),
            None => None,
        };
        let second = match second {
            Some(object) => Some(self.seen_by(invocation, object).await?),
            None => None,
        };
        Ok((first, second))
    }

    /// Converts an object from the version of a webhook to that of the request.
    pub(super) async fn taken_back(
        &self,
        invocation: &Invocation,
        object: Object,
    ) -> Result<Object, ApiError> {
        let name = &invocation.resource;
        let catalog = self.server.kinds.catalog();
        match catalog.resource(&name.group, &name.version, &name.plural) {
            Some(from) if self.is_of_resource() => {
                conversion::between(self.server, from, self.resource, object).await
            }
            _ => Ok(object),
        }
    }

    /// Returns the types of the object in the version that a webhook or policy sees.
    pub(super) fn types_of(&self, invocation: &Invocation) -> Schema {
        let kind = &invocation.kind;
        let known = schema::builtin(&kind.api_version(), kind.kind());
        let known = known.filter(|_| !self.resource.rules.custom);
        let name = &invocation.resource;
        let catalog = self.server.kinds.catalog();
        let defined = catalog.resource(&name.group, &name.version, &name.plural);
        let defined = defined.and_then(|defined| defined.schema.as_ref());
        known.unwrap_or_else(|| schema::custom(defined.map(|schema| schema.raw())))
    }

    /// Returns whether the namespace of the request has the labels a selector wants.
    pub(super) fn is_in_selected_namespace(
        &self,
        selector: &Value,
        object: Option<&Object>,
    ) -> Result<bool, ApiError> {
        let attributes = &self.attributes;
        let namespace = &attributes.namespace;
        // What is outside of namespaces cannot be exempted by them.
        if namespace.is_empty() && attributes.resource.plural != "namespaces" || is_all(selector) {
            return Ok(true);
        }
        // The labels it is going to have: the stored namespace may not be there yet, or be older.
        if self.is_write_of_namespace() {
            return Ok(object.is_some_and(|object| selects(selector, object)));
        }
        let key = ObjectKey::cluster(namespace);
        let found = self.server.store.get(self.server.kinds.namespaces, &key);
        let found = found.ok_or_else(|| ApiError::namespace_not_found(namespace))?;
        Ok(selects(selector, &found.object()))
    }
}

/// Returns whether a selector selects an object, or the state that it replaces.
pub(super) fn is_selected(selector: &Value, old: Option<&Object>, object: Option<&Object>) -> bool {
    let selects = |object: Option<&Object>| object.is_some_and(|object| selects(selector, object));
    // Also by the old state: otherwise a write could take off the label that selects its object.
    is_all(selector) || selects(object) || selects(old)
}

/// Returns whether a selector selects every object.
fn is_all(selector: &Value) -> bool {
    let is_void = |member: &str| match &selector[member] {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    };
    is_void("matchLabels") && is_void("matchExpressions")
}
