//! Rules about single members, as tables.

use super::causes::Causes;
use super::field::Field;
use super::formats::Format;

/// A rule about one value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// It is there and not empty.
    Given,
    /// A text that is there, of a form.
    Name(Format),
    /// A text of a form, if there is one that is not empty.
    Text(Format),
    /// A text that is there, and one of these.
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
    Between(i64, i64),
    /// A number within bounds, if there is one.
    MaybeBetween(i64, i64),
}

/// Rules by member; several members of one rule are separated by spaces.
pub(crate) type Rules = &'static [(&'static str, Rule)];

/// The numbers of ports.
pub(crate) const PORT: Rule = Rule::Between(1, 65535);

/// Checks members by their rules.
pub(crate) fn check(within: &Field<'_>, rules: Rules, causes: &mut Causes) {
    for (names, rule) in rules {
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
