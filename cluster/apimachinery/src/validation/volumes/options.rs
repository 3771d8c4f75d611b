//! Options of the validation of volumes.

/// The strictness of checks of volumes: ratcheting, and rules for Pods only.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::validation) struct Options {
    /// Whether the volumes are those of a Pod, and not of a template.
    // `ResourceIsPod` in Go's `PodValidationOptions`.
    pub(in crate::validation) is_pod: bool,
    /// Whether the path of a projected token may lead anywhere.
    // `AllowNonLocalProjectedTokenPath`: ratcheting, set if the old object has such a path.
    pub(in crate::validation) any_token_path: bool,
}
