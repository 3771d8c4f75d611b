//! The options of the installation of CRDs.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// The annotation with the version number of a CRD.
pub(super) const VERSION: &str = "lariat.dev/crd-version";

/// What an installation may write.
///
/// Also the permissions on `customresourcedefinitions` that it needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Install {
    /// Creates missing CRDs, and patches those that differ.
    ///
    /// Needs `create`, `get` and `patch`.
    #[default]
    CreateOrUpdate,
    /// Creates missing CRDs; existing ones must be usable as they are.
    ///
    /// Needs `create` and `get`.
    CreateOnly,
    /// Writes nothing; a missing CRD is an error.
    ///
    /// For clusters in which CRDs are installed by other means. Needs `get`.
    Verify,
}

/// The options of the installation of CRDs.
///
/// ```
/// use std::time::Duration;
/// use lariat::operator::{CrdOptions, Install};
///
/// let options = CrdOptions::default()
///     .install(Install::Verify)
///     .timeout(Duration::from_secs(10));
/// # let _ = options;
/// ```
#[derive(Debug, Clone)]
#[must_use = "options do nothing until they are used"]
pub struct CrdOptions {
    pub(crate) install: Install,
    pub(super) timeout: Duration,
    field_manager: Option<String>,
    /// Whether writes are dry runs, so that nothing is to be waited for.
    pub(super) plans: bool,
}

impl Default for CrdOptions {
    fn default() -> Self {
        Self {
            install: Install::default(),
            timeout: Duration::from_secs(60),
            field_manager: None,
            plans: false,
        }
    }
}

impl CrdOptions {
    /// Sets what may be written (default: [`Install::CreateOrUpdate`]).
    pub fn install(self, install: Install) -> Self {
        Self { install, ..self }
    }

    /// Sets the time limit until all CRDs are served (default 60 seconds).
    ///
    /// Zero fails immediately. Errors that are not transient end the wait earlier.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the field manager of the writes.
    ///
    /// The default is the operator's name, or `lariat` without an operator.
    pub fn field_manager(self, name: impl Into<String>) -> Self {
        let field_manager = Some(name.into());
        Self {
            field_manager,
            ..self
        }
    }

    pub(crate) fn or_field_manager(mut self, name: &str) -> Self {
        self.field_manager.get_or_insert_with(|| name.to_owned());
        self
    }

    /// Sets whether the client sends writes as dry runs.
    pub(crate) fn planning(self, plans: bool) -> Self {
        Self { plans, ..self }
    }

    pub(super) fn manager(&self) -> &str {
        self.field_manager.as_deref().unwrap_or("lariat")
    }
}

/// Sets the version number of a CRD, in an annotation.
///
/// A CRD with a smaller number, or without one, does not overwrite a CRD with a greater number. Use it for schemas that
/// change without a new API version: while replicas of two releases run side by side, the older release leaves the CRD
/// of the newer one alone. Increase the number with every change of the schema; fields are removed only then. It
/// protects only against programs that use it too.
///
/// ```
/// use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
/// use lariat::operator::with_crd_version;
///
/// let widgets = CustomResourceDefinition::default(); // Widget::crd()
/// let widgets = with_crd_version(widgets, 3);
/// assert_eq!(widgets.metadata.annotations.unwrap()["lariat.dev/crd-version"], "3");
/// ```
#[must_use]
pub fn with_crd_version(
    mut definition: CustomResourceDefinition,
    version: u64,
) -> CustomResourceDefinition {
    definition
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(VERSION.to_owned(), version.to_string());
    definition
}
