//! Which webhooks a request is for.
//!
//! Source: `ShouldCallHook` in `k8s.io/apiserver/pkg/admission/plugin/webhook/generic`.

use lariat_apimachinery::admission::{Met, ResourceName, Scope, Webhook};
use lariat_apimachinery::object::Object;
use lariat_apimachinery::selector::selects;
use lariat_core::{Gvk, ObjectKey};
use serde_json::Value;

use super::request::Request;
use crate::status::ApiError;
use crate::strategy::view;

/// What a webhook is called with.
#[derive(Debug)]
pub(super) struct Invocation {
    /// The resource in the version that its rules name.
    pub(super) resource: ResourceName,
    /// The kind in that version.
    pub(super) kind: Gvk,
}

impl Request<'_> {
    /// Returns how a webhook is called for the request; `None` if it is not.
    pub(super) fn select(
        &self,
        hook: &Webhook,
        old: Option<&Object>,
        object: Option<&Object>,
    ) -> Result<Option<Invocation>, ApiError> {
        let in_namespace = self.is_in_selected_namespace(&hook.namespace_selector, object);
        if matches!(in_namespace, Ok(false)) || !is_selected(&hook.object_selector, old, object) {
            return Ok(None);
        }
        let Some(invocation) = self.match_rules(hook) else {
            return Ok(None);
        };
        in_namespace?;
        if hook.conditions.is_empty() {
            return Ok(Some(invocation));
        }
        let seen = |object: Option<&Object>| object.map(|object| self.seen_by(&invocation, object));
        let (new, old) = (seen(object), seen(old));
        let names = (&invocation.resource, &invocation.kind);
        let scope = Scope::new(&self.attributes, names, new.as_ref(), old.as_ref());
        match hook.conditions.judge(&scope, hook.failure_policy) {
            Met::Yes => Ok(Some(invocation)),
            Met::No => Ok(None),
            Met::Error(reason) => {
                let name = &self.attributes.name;
                Err(ApiError::forbidden(self.resource, name, &reason))
            }
        }
    }

    fn match_rules(&self, hook: &Webhook) -> Option<Invocation> {
        let requested = &self.attributes.resource;
        if hook.rules.match_exactly(&self.attributes) {
            return Some(Invocation {
                resource: requested.clone(),
                kind: self.attributes.kind.clone(),
            });
        }
        if !hook.matches_equivalent {
            return None;
        }
        let catalog = self.server.kinds.catalog();
        let equivalents = catalog
            .all()
            .filter(|each| each.table == self.resource.table);
        let names: Vec<ResourceName> = equivalents
            .map(|each| ResourceName {
                group: each.group.clone(),
                version: each.version.clone(),
                plural: each.plural.clone(),
            })
            .collect();
        let found = hook.rules.match_equivalent(&self.attributes, &names)?;
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
    pub(super) fn seen_by(&self, invocation: &Invocation, object: &Object) -> Object {
        let name = &invocation.resource;
        let catalog = self.server.kinds.catalog();
        match catalog.resource(&name.group, &name.version, &name.plural) {
            Some(to) if self.is_of_resource() => {
                let mut object = view::in_version(self.resource, to, object.clone());
                to.set_type(&mut object);
                object
            }
            _ => object.clone(),
        }
    }

    /// Returns what a webhook made of an object in the version of the request.
    pub(super) fn taken_back(&self, invocation: &Invocation, object: Object) -> Object {
        let name = &invocation.resource;
        let catalog = self.server.kinds.catalog();
        match catalog.resource(&name.group, &name.version, &name.plural) {
            Some(from) if self.is_of_resource() => view::in_version(from, self.resource, object),
            _ => object,
        }
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
    is_all(selector) || selects(object) || selects(old)
}

/// Returns whether a selector selects everything, whatever its labels.
fn is_all(selector: &Value) -> bool {
    let is_void = |member: &str| match &selector[member] {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    };
    is_void("matchLabels") && is_void("matchExpressions")
}
