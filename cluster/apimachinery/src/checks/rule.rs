//! Rules about single members, as tables.

use super::causes::Causes;
use super::field::Field;
use super::formats::Format;

/// A rule about one value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// It is there and not empty.
    // Go's functions test for a length of zero: an empty text, list or map counts as missing.
    Given,
    /// A text that is there, of a form.
    Name(Format),
    /// A text of a form, if there is one that is not empty.
    Text(Format),
    /// A text that is there, and one of these.
    // The four rules with a list differ in what a missing or empty text gets: "required", "unsupported", or nothing.
    // Go's code has all of them; which one is right is seen only in the function that is followed.
    OneOf(&'static [&'static str]),
    /// One of these, which an empty text is not.
    Supported(&'static [&'static str]),
    /// One of these, if there is a text, which may not be empty.
    SupportedIfSet(&'static [&'static str]),
    /// One of these, if there is a text that is not empty.
    MaybeOneOf(&'static [&'static str]),
    /// A number that is not below zero, if there is one.
    NotNegative,
    /// A number above zero, if there is one.
    Positive,
    /// A number within bounds; a missing one counts as zero.
    // For plain integers in Go, where missing and zero are the same.
    Between(i64, i64),
    /// A number within bounds, if there is one.
    // For pointers in Go, where a missing number is not checked but a given zero is.
    MaybeBetween(i64, i64),
}

/// Rules by member; several members of one rule are separated by spaces.
pub(crate) type Rules = &'static [(&'static str, Rule)];

/// The numbers of ports.
pub(crate) const PORT: Rule = Rule::Between(1, 65535);

/// Checks members by their rules.
pub(crate) fn check(within: &Field<'_>, rules: Rules, causes: &mut Causes) {
    for (names, rule) in rules {
        // The order of the table is the order of causes, which clients see when several members are wrong.
        for name in names.split(' ') {
            rule.check(&within.get(name), causes);
        }
    }
}

impl Rule {
    fn check(self, at: &Field<'_>, causes: &mut Causes) {
        match self {
            Self::Given => {
                causes.check_given(at, "");
            }
            Self::Name(format) => causes.check_name(at, format),
            Self::Text(format) if !at.is_void() => causes.check_format(at, format),
            Self::OneOf(supported) => causes.check_one_of(at, supported),
            Self::MaybeOneOf(supported) if !at.is_void() => causes.check_supported(at, supported),
            Self::Supported(supported) => causes.check_supported(at, supported),
            Self::SupportedIfSet(supported) if at.is_set() => {
                causes.check_supported(at, supported);
            }
            Self::NotNegative => causes.check_not_negative(at),
            Self::Positive => causes.check_positive(at),
            Self::Between(least, most) => causes.check_between(at, least, most),
            Self::MaybeBetween(least, most) if at.is_set() => {
                causes.check_between(at, least, most);
            }
            Self::Text(_)
            | Self::MaybeOneOf(_)
            | Self::SupportedIfSet(_)
            | Self::MaybeBetween(..) => {}
        }
    }
}
