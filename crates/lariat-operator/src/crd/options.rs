//! How CRDs are installed.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// The annotation with the number by which a newer CRD is known from an older one.
pub(super) const VERSION: &str = "lariat.dev/definition-version";

/// What may be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Install {
    /// Creates what is missing, and changes what differs. Takes `create`, `get` and `patch`.
    #[default]
    CreateOrUpdate,
    /// Creates what is missing; what is there must do as it is. Takes `create` and `get`.
    CreateOnly,
    /// Writes nothing: what is missing is an error. For clusters where somebody else installs CRDs. Takes
    /// `get`.
    Verify,
}

/// How CRDs are installed.
///
/// ```
/// use std::time::Duration;
/// use lariat_operator::{CrdOptions, Install};
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
}

impl Default for CrdOptions {
    fn default() -> Self {
        Self {
            install: Install::default(),
            timeout: Duration::from_secs(60),
            field_manager: None,
        }
    }
}

impl CrdOptions {
    /// Sets what may be written (default: [`Install::CreateOrUpdate`]).
    pub fn install(self, install: Install) -> Self {
        Self { install, ..self }
    }

    /// Sets how long may pass until all CRDs are served (default 60 s; zero fails at once). What the API server
    /// refuses for good fails earlier.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets as whom fields are written (default: the operator's name; `lariat` without an operator).
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

    pub(super) fn manager(&self) -> &str {
        self.field_manager.as_deref().unwrap_or("lariat")
    }
}

/// Numbers a CRD, in an annotation: one with a smaller number, or with none, never overwrites one with a
/// greater.
///
/// For schemas that change without a new version: while replicas of two releases run side by side, the older one
/// leaves the CRD of the newer alone. Count it up with every change. It holds among programs that use it.
///
/// ```
/// use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
/// use lariat_operator::with_crd_version;
///
/// let widgets = CustomResourceDefinition::default(); // Widget::crd()
/// let widgets = with_crd_version(widgets, 3);
/// assert_eq!(widgets.metadata.annotations.unwrap()["lariat.dev/definition-version"], "3");
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
