//! Writing conditions, names and values as `read` reads them.

use super::read::{LABELS, Reader};
use crate::association::is_name;
use crate::query::filter::{AnyOf, Condition, Operator, Subject};

/// Writes conditions of which at least one must hold.
pub(super) fn any_of(any: &AnyOf) -> String {
    join(&any.0, condition)
}

/// Writes names of fields and labels to sort by.
pub(super) fn orders(orders: &[(Subject, bool)]) -> String {
    join(orders, |text, (subject, is_descending)| {
        if *is_descending {
            text.push('-');
        }
        name(text, subject);
    })
}

/// Writes names of fields and labels.
pub(super) fn names(names: &[Subject]) -> String {
    join(names, name)
}

/// Writes values, or the empty list.
pub(super) fn values(values: &[String]) -> String {
    if values.is_empty() {
        return "()".to_owned();
    }
    join(values, |text, each| value(text, each))
}

fn join<T>(items: &[T], mut write: impl FnMut(&mut String, &T)) -> String {
    let mut text = String::new();
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        write(&mut text, item);
    }
    text
}

fn condition(text: &mut String, condition: &Condition) {
    let Condition {
        subject,
        operator,
        values,
    } = condition;
    if *operator == Operator::Missing {
        text.push('!');
    }
    name(text, subject);
    let is_list = matches!(operator, Operator::In | Operator::NotIn);
    match operator {
        Operator::Exists | Operator::Missing if values.is_empty() => return,
        Operator::Exists | Operator::Missing => {}
        Operator::In | Operator::NotIn | Operator::Contains | Operator::NotContains => {
            text.push(' ');
            text.push_str(operator.symbol());
            text.push(' ');
        }
        _ => text.push_str(operator.symbol()),
    }
    match values.as_slice() {
        [one] if !is_list && !matches!(operator, Operator::Exists | Operator::Missing) => {
            value(text, one);
        }
        // Other operators do not take that many values, so this text fails when it is read.
        _ => {
            text.push('(');
            text.push_str(&join(values, |text, each| value(text, each)));
            text.push(')');
        }
    }
}

fn name(text: &mut String, subject: &Subject) {
    match subject {
        Subject::Label(key) => {
            text.push_str(LABELS);
            text.push('[');
            value(text, key);
            text.push(']');
        }
        Subject::Field(name) => {
            let read = Reader::new("", name).only_name();
            if read.as_ref() == Some(subject) {
                text.push_str(name);
            } else {
                quoted(text, name);
            }
        }
        Subject::Associated { association, of } => {
            if is_name(association) {
                text.push_str(association);
            } else {
                // No query can have such an association, and reading it fails too.
                quoted(text, association);
            }
            text.push(':');
            name(text, of);
        }
    }
}

/// Writes a value, in quotes if they may be needed.
fn value(text: &mut String, value: &str) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        text.push_str(value);
    } else {
        quoted(text, value);
    }
}

fn quoted(text: &mut String, content: &str) {
    text.push('\'');
    for c in content.chars() {
        if matches!(c, '\'' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('\'');
}
