//! Lists, which have a greatest length beyond which nothing in them is looked at.

use std::collections::HashSet;

use crate::go_text;
use crate::validation::causes::Causes;
use crate::validation::field::Field;

/// Checks the items of a list, unless there are too many; returns whether it did.
pub(super) fn check_list<'a>(
    list: &Field<'a>,
    most: usize,
    causes: &mut Causes,
    check: impl Fn(&Field<'a>, &mut Causes),
) -> bool {
    // `validateSlice` and `validateSet`: a list that is too long is not looked into, which bounds the work and the
    // answer.
    if list.list().len() > most {
        causes.too_many(list, most);
        return false;
    }
    list.items().for_each(|item| check(&item, causes));
    true
}

/// Checks the items of a list for duplicate keys, in the form of messages.
pub(super) fn check_set<'a>(
    list: &Field<'a>,
    most: usize,
    causes: &mut Causes,
    key: impl Fn(&Field<'a>) -> String,
    check: impl Fn(&Field<'a>, &mut Causes),
) {
    if !check_list(list, most, causes, check) {
        return;
    }
    let mut seen = HashSet::new();
    for item in list.items() {
        // The key is the form in which messages show the item, which is enough to find duplicates.
        let key = key(&item);
        if seen.contains(&key) {
            causes.duplicate_struct(&item, &key, "");
        } else {
            seen.insert(key);
        }
    }
}

/// The key of a text.
pub(super) fn text(item: &Field<'_>) -> String {
    go_text::quoted(item.text())
}

/// The key of a value with a name.
pub(super) fn name(item: &Field<'_>) -> String {
    go_text::quoted(item.text_of("name"))
}
