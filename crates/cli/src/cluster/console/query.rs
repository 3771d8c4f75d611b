//! Queries as they may be shown.

/// The parameters of the Kubernetes API whose values are no secrets.
const SHOWN: [&str; 22] = [
    "allowWatchBookmarks",
    "dryRun",
    "exact",
    "exclude",
    "export",
    "fieldManager",
    "fieldSelector",
    "fieldValidation",
    "force",
    "gracePeriodSeconds",
    "includeObject",
    "labelSelector",
    "limit",
    "orphanDependents",
    "pretty",
    "propagationPolicy",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "verbose",
    "watch",
];

/// How many characters of a text from a client are shown.
const LONGEST: usize = 400;

/// Returns a path with what may be shown of its query.
///
/// Of parameters that the API does not know, and of those that carry opaque texts, there is a `…` alone: a client may
/// have put a credential there.
pub(super) fn shown(path: &str, query: &str) -> String {
    let mut text = path.to_owned();
    let parameters = form_urlencoded::parse(query.as_bytes());
    for (place, (name, value)) in parameters.enumerate() {
        text.push(if place == 0 { '?' } else { '&' });
        match &*name {
            // A page token is no secret, but it is long and says nothing.
            "continue" => text.push_str("continue=…"),
            name if SHOWN.contains(&name) => {
                text.push_str(name);
                text.push('=');
                text.push_str(&value);
            }
            _ => text.push('…'),
        }
    }
    shortened(text)
}

/// Cuts a text that is too long to be shown.
pub(super) fn shortened(mut text: String) -> String {
    // By characters, because `truncate` panics within one.
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: &str) {
        assert_eq!(
            shown("/api/v1/pods", query),
            format!("/api/v1/pods{expected}")
        );
    }

    #[test]
    fn only_values_that_are_no_secrets_are_shown() {
        check("", "");
        check(
            "watch=true&labelSelector=app%3Dweb&resourceVersion=7",
            "?watch=true&labelSelector=app=web&resourceVersion=7",
        );
        check("limit=5&continue=abc", "?limit=5&continue=…");
        check("access_token=hunter2&watch=1", "?…&watch=1");
        check("hunter2", "?…");
        check("Watch=hunter2", "?…");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let long = shortened("ä".repeat(LONGEST + 1));
        assert_eq!(long, format!("{}…", "ä".repeat(LONGEST)));
        assert_eq!(shortened("ä".repeat(LONGEST)), "ä".repeat(LONGEST));
    }
}
