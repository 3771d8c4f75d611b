//! Dry runs: whether the options of a deletion request one.

use serde::Deserialize;

/// Returns whether the body of a deletion, its options, requests a dry run.
///
/// If a deletion has a body, the API server ignores the query. A body that is not valid options requests none.
///
/// ```
/// use lariat_core::is_dry_run;
///
/// assert!(is_dry_run(br#"{"dryRun": ["All"]}"#));
/// assert!(!is_dry_run(b"{}"));
/// ```
#[must_use]
pub fn is_dry_run(options: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Options {
        #[serde(default)]
        dry_run: Option<Vec<String>>,
    }
    let options = serde_json::from_slice::<Options>(options);
    options.is_ok_and(|options| options.dry_run.is_some_and(|stages| !stages.is_empty()))
}
