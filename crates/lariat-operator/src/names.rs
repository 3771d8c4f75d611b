//! What Kubernetes takes for names.

const LONGEST_DOMAIN: usize = 253;
const LONGEST_MANAGER: usize = 128;

/// Returns why a text cannot be a field manager, if it cannot.
pub(crate) fn not_a_manager(text: &str) -> Option<&'static str> {
    let is_shown = |c: char| c == ' ' || !(c.is_control() || c.is_whitespace());
    match text {
        "" => Some("is empty"),
        text if text.len() > LONGEST_MANAGER => Some("is longer than 128 bytes"),
        text if !text.chars().all(is_shown) => Some("has characters that cannot be printed"),
        _ => None,
    }
}

/// Returns whether a text is a domain in lower case, as before the slash of a qualified name.
pub(crate) fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        let taken = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty()
            && label.bytes().all(taken)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= LONGEST_DOMAIN && text.split('.').all(is_label)
}

/// Returns whether a text is letters and digits, with `-`, `_` and `.` inside, as after the slash of a qualified name.
pub(crate) fn is_word(text: &str) -> bool {
    let ends_well = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let taken = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    ends_well(text.bytes().next()) && ends_well(text.bytes().next_back()) && text.bytes().all(taken)
}
