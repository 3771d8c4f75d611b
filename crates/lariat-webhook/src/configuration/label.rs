//! The label of the objects that webhooks apply.

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
