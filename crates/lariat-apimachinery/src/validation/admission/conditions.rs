//! On which conditions a request is looked at.

use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;

const MOST: usize = 64;

pub(super) fn check(list: &Field<'_>, causes: &mut Causes) {
    causes.check_count(list, MOST);
    let mut seen = Vec::new();
    for condition in list.items() {
        let (name, expression) = (condition.get("name"), condition.get("expression"));
        check_expression(&expression, "", causes);
        causes.check_name(&name, formats::qualified_name);
        if !name.is_void() && seen.contains(&name.text()) {
            causes.duplicate(&name);
        }
        seen.push(name.text());
    }
}

/// Checks that an expression is there, and can be read.
pub(super) fn check_expression(at: &Field<'_>, detail: &str, causes: &mut Causes) {
    if at.text().trim().is_empty() {
        causes.required(at, detail);
    } else if let Err(error) = kube_cel::cel::Program::compile(at.text()) {
        causes.invalid(at, &format!("compilation failed: {error}"));
    }
}
