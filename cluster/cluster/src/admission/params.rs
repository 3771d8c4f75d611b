//! The params of admission policies, and what else their expressions see.
//!
//! Source: `CollectParams` in `k8s.io/apiserver/pkg/admission/plugin/policy/generic`.

use std::sync::Arc;

use lariat_apimachinery::admission::{Binding, ParamRef, Policy, Scope};
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use lariat_apimachinery::selector::selects;
use lariat_core::ObjectKey;
use serde_json::Value;

use super::request::Request;
use super::selection::Invocation;
use crate::store::{Range, Stored};

impl Request<'_> {
    /// Returns the params of a policy for a binding; null if it has none.
    pub(super) fn params(&self, policy: &Policy, binding: &Binding) -> Result<Vec<Value>, String> {
        let (Some((version, kind)), Some(param)) = (&policy.param_kind, &binding.param) else {
            return Ok(vec![Value::Null]);
        };
        let resource = self.param_resource(version, kind)?;
        let resource = &*resource;
        let found = self.find(resource, param)?;
        // Otherwise a binding without params evaluates nothing, which lets the request through.
        if found.is_empty() && param.denies_missing {
            return Err(
                "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned(),
            );
        }
        let object = |stored: &Arc<Stored>| {
            let mut object = stored.object();
            resource.set_type(&mut object);
            Value::Object(object)
        };
        Ok(found.iter().map(object).collect())
    }

    /// Checks that the kind of the params of a policy is served.
    pub(super) fn check_params(&self, policy: &Policy) -> Result<(), String> {
        match &policy.param_kind {
            Some((version, kind)) => self.param_resource(version, kind).map(drop),
            None => Ok(()),
        }
    }

    fn param_resource(&self, version: &str, kind: &str) -> Result<Arc<Resource>, String> {
        let catalog = self.server.kinds.catalog();
        let mut all = catalog.all();
        let found = all.find(|each| each.kind == kind && each.api_version() == version);
        found.cloned().ok_or_else(|| {
            format!("failed to find resource referenced by paramKind: '{version}, Kind={kind}'")
        })
    }

    fn find(&self, resource: &Resource, param: &ParamRef) -> Result<Vec<Arc<Stored>>, String> {
        let own = &self.attributes.namespace;
        let namespace = match (resource.namespaced, param.namespace.as_str(), own.as_str()) {
            (false, "", _) => None,
            (false, ..) => {
                let reason =
                    "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
                return Err(reason.to_owned());
            }
            (true, "", "") => {
                let reason = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
                return Err(reason.to_owned());
            }
            // A paramRef without a namespace means that of the request.
            (true, "", own) => Some(own),
            (true, given, _) => Some(given),
        };
        let store = &self.server.store;
        if !param.name.is_empty() {
            let key = match namespace {
                Some(namespace) => ObjectKey::namespaced(namespace, &param.name),
                None => ObjectKey::cluster(&param.name),
            };
            return Ok(store.get(resource.table, &key).into_iter().collect());
        }
        let range = Range {
            namespace,
            ..Range::default()
        };
        let page = store.range(resource.table, &range);
        let mut objects = page.map(|page| page.objects).unwrap_or_default();
        objects.retain(|stored| selects(&param.selector, &stored.object()));
        Ok(objects)
    }

    /// Returns the scope of a policy's expressions.
    pub(super) fn scope(
        &self,
        invocation: &Invocation,
        (old, object): (Option<&Object>, Option<&Object>),
        params: &Value,
    ) -> Scope {
        let names = (&invocation.resource, &invocation.kind);
        let mut scope = Scope::new(&self.attributes, names, object, old);
        scope.add_authorizer(&self.attributes, &self.authorizer());
        scope.add("params", params);
        scope.add("namespaceObject", &self.namespace_object());
        scope
    }

    /// Returns the namespace of the object, null for cluster-scoped objects.
    fn namespace_object(&self) -> Value {
        let name = &self.attributes.namespace;
        if name.is_empty() || !self.resource.namespaced {
            return Value::Null;
        }
        let key = ObjectKey::cluster(name);
        let found = self.server.store.get(self.server.kinds.namespaces, &key);
        found.map_or(Value::Null, |stored| {
            let mut object = stored.object();
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.remove("managedFields");
            }
            Value::Object(object)
        })
    }
}
