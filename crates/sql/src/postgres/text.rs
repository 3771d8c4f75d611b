//! Texts in a form that PostgreSQL accepts.
//!
//! PostgreSQL does not accept texts with a NUL. Each of the characters 0 to 3 is therefore written as three characters
//! of 1 to 3; other texts are not changed. Written texts compare by their bytes as the originals do, and one contains
//! another if and only if the originals do.

use std::borrow::Cow;

/// The character that begins an escape, and the characters for its bits.
const BEGIN: char = '\u{1}';
const BITS: [char; 2] = ['\u{2}', '\u{3}'];

/// Returns the form of a text in the database.
pub(super) fn write(text: &str) -> Cow<'_, str> {
    // Nearly all texts are unchanged and not copied.
    if !text.bytes().any(|byte| byte < 4) {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        // PostgreSQL refuses U+0000 in text. The three characters of the escape are escaped too, so each text reads
        // back as it was.
        match u32::from(c) {
            number @ 0..4 => {
                written.push(BEGIN);
                written.push(BITS[usize::from(number & 2 != 0)]);
                written.push(BITS[usize::from(number & 1 != 0)]);
            }
            _ => written.push(c),
        }
    }
    Cow::Owned(written)
}

/// Returns the text of a form.
pub(super) fn read(written: &str) -> String {
    if !written.contains(BEGIN) {
        return written.to_owned();
    }
    let mut text = String::with_capacity(written.len());
    let mut chars = written.chars();
    while let Some(c) = chars.next() {
        if c != BEGIN {
            text.push(c);
            continue;
        }
        let mut bit = || u32::from(chars.next() == Some(BITS[1]));
        let number = 2 * bit() + bit();
        text.extend(char::from_u32(number));
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = String> {
        let chars = prop::sample::select(vec!['\0', '\u{1}', '\u{2}', '\u{3}', '\u{4}', 'a', 'é']);
        prop::collection::vec(chars, 0..6).prop_map(|chars| chars.into_iter().collect())
    }

    proptest! {
        #[test]
        fn texts_come_back_and_keep_their_order_and_their_parts(one in text(), other in text()) {
            let (written, of_other) = (write(&one), write(&other));
            prop_assert!(!written.contains('\0'));
            prop_assert_eq!(&read(&written), &one);
            prop_assert_eq!(written.cmp(&of_other), one.cmp(&other));
            prop_assert_eq!(written.contains(&*of_other), one.contains(&other));
        }
    }
}
