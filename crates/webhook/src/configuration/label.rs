//! The label of the objects that webhooks apply.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The label with the name of the webhooks.
pub(super) const LABEL: &str = "lariat.dev/webhooks";

/// The maximum length of a label value.
const LONGEST: usize = 63;

/// Returns the value of the label: the name of the webhooks, or the end of a long one.
pub(super) fn label(webhooks: &str) -> &str {
    let from = webhooks.len().saturating_sub(LONGEST);
    let end = webhooks.get(from..).unwrap_or(webhooks);
    // A label value must begin with a letter or a digit.
    end.trim_start_matches(['.', '-'])
}

/// Returns whether webhooks of this name have applied an object: it has their label, and a name of theirs.
///
/// The label of a long name is only its end, so other webhooks may have the same. The full name decides.
pub(super) fn is_own(webhooks: &str, object: &ObjectMeta) -> bool {
    let labels = object.labels.as_ref();
    let is_labelled = labels
        .and_then(|labels| labels.get(LABEL))
        .is_some_and(|value| value == label(webhooks));
    let name = object.name.as_deref().unwrap_or_default();
    is_labelled && (name == webhooks || name.ends_with(&format!(".{webhooks}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_webhooks_fits_in_a_label() {
        assert_eq!(label("widgets.demo.dev"), "widgets.demo.dev");
        let long = format!("{}.demo.dev", "a".repeat(100));
        assert_eq!(label(&long).len(), 63);
        let long = format!("a.{}", "b".repeat(62));
        assert_eq!(label(&long), "b".repeat(62));
    }
}
