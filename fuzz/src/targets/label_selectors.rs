//! Label selectors, against a naive evaluation of their printed form.

use lariat_cluster_fuzz::input::split;
use lariat_core::{LabelSelector, Labels};

use crate::reference::selector::labels_match;

/// The first line is a selector, the second one labels: `a=b,c=d`.
pub(crate) fn run(data: &[u8]) {
    let (selector, labels) = split(data);
    let (Ok(selector), Ok(labels)) = (std::str::from_utf8(selector), std::str::from_utf8(labels))
    else {
        return;
    };
    let Ok(selector) = selector.parse::<LabelSelector>() else {
        return;
    };
    let printed = selector.to_string();
    let again: LabelSelector = printed.parse().expect("what is printed can be read");
    assert_eq!(again, selector, "{printed:?}");
    let mut pairs: Vec<(String, String)> = Vec::new();
    for (name, value) in labels.split(',').filter_map(|pair| pair.split_once('=')) {
        let is_new = pairs.iter().all(|(other, _)| other != name);
        if is_new && !name.contains('\0') && !value.contains('\0') {
            pairs.push((name.to_owned(), value.to_owned()));
        }
    }
    let labels: Labels = pairs.iter().map(|(name, value)| (name, value)).collect();
    let matches = selector.matches(&labels);
    assert_eq!(
        matches,
        labels_match(&printed, &pairs),
        "{printed:?} on {pairs:?}"
    );
    // An index finds at least what is selected.
    for (name, values) in selector.required() {
        let value = labels.get(name);
        let is_found = value.is_some_and(|value| values.iter().any(|each| each == value));
        assert!(!matches || is_found, "{name} in {values:?}");
    }
    assert_eq!(selector.is_empty(), printed.is_empty());
}
