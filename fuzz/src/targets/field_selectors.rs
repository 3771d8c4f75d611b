//! Field selectors, against a naive evaluation of their printed form.

use lariat_cluster_fuzz::input::split;
use lariat_core::FieldSelector;

use crate::reference::selector::fields_match;

/// The first line is a selector, the second one the value of every field.
pub(crate) fn run(data: &[u8]) {
    let (selector, value) = split(data);
    let (Ok(selector), Ok(value)) = (std::str::from_utf8(selector), std::str::from_utf8(value))
    else {
        return;
    };
    let Ok(selector) = selector.parse::<FieldSelector>() else {
        return;
    };
    let printed = selector.to_string();
    let again: FieldSelector = printed.parse().expect("what is printed can be read");
    assert_eq!(again, selector, "{printed:?}");
    let matches = selector.matches(|_| value);
    let expected = fields_match(&printed, |_| value.to_owned());
    assert_eq!(matches, expected, "{printed:?} on {value:?}");
    for path in selector.paths() {
        let required = selector.required(path);
        assert!(!matches || required.is_none_or(|required| required == value));
    }
    assert_eq!(selector.is_empty(), printed.is_empty());
}
