//! The cost of macros over lists and maps.

use super::estimator::{Estimator, Local};
use super::path::Path;
use super::size::Size;
use crate::expressions::macros::RESULT;
use crate::expressions::tree::{Kind, Literal, Loop, Tree};
use crate::expressions::types::Type;

impl<'t> Estimator<'t> {
    pub(super) fn each(&mut self, tree: &'t Tree, each: &'t Loop) -> u64 {
        if is_binding(each) {
            return self.binding(tree, each);
        }
        let mut sum = self.cost(&each.range);
        sum = sum.saturating_add(self.cost(&each.begin));
        let outer = self.locals.len();
        self.bind(&each.result_name, &each.begin);
        let inner = self.locals.len();
        match each.variables.as_slice() {
            [key, value] => {
                self.iterate(key, &each.range, Side::Key);
                self.iterate(value, &each.range, Side::Value);
            }
            [only, ..] => self.iterate(only, &each.range, Side::Only),
            [] => {}
        }
        let condition = self.cost(&each.condition);
        let step = self.cost(&each.step);
        self.locals.truncate(inner);
        sum = sum.saturating_add(self.cost(&each.result));
        self.locals.truncate(outer);
        let count = self.size_or_unknown(&each.range);
        let of_all = count.most.saturating_mul(step.saturating_add(condition));
        self.set_result(tree, each, count);
        sum.saturating_add(of_all)
    }

    fn set_result(&mut self, tree: &'t Tree, each: &'t Loop, count: Size) {
        match &each.begin.kind {
            Kind::Literal(_) => {
                let size = self.size(&each.begin);
                self.set_size(tree, size);
            }
            Kind::List(_) | Kind::Map(_) => {
                self.set_size(tree, Some(count));
                self.set_entry(tree, self.entry(&each.step));
            }
            _ => {}
        }
    }

    fn binding(&mut self, tree: &'t Tree, each: &'t Loop) -> u64 {
        let mut sum = self.cost(&each.range);
        sum = sum.saturating_add(self.cost(&each.begin));
        let outer = self.locals.len();
        self.bind(&each.result_name, &each.begin);
        sum = sum.saturating_add(self.cost(&each.result));
        self.locals.truncate(outer);
        self.copy_sizes(tree, &each.result);
        sum
    }

    /// Adds a variable that has the value of a part.
    fn bind(&mut self, name: &'t str, value: &'t Tree) {
        let local = Local {
            name,
            path: self.path(value),
            entry: self.entry(value),
            size: self.size(value),
        };
        self.locals.push(local);
    }

    /// Adds a variable that has the elements of a range.
    fn iterate(&mut self, name: &'t str, range: &'t Tree, side: Side) {
        let entry = self.entry(range);
        let is_list = match entry {
            Some(entry) => entry.is_list,
            None => matches!(self.facts.type_of(range), Type::List(_)),
        };
        let is_key = match side {
            Side::Key => true,
            Side::Value => false,
            Side::Only => !is_list,
        };
        let step = match (is_key, is_list) {
            (true, true) => "@indices",
            (true, false) => "@keys",
            (false, true) => "@items",
            (false, false) => "@values",
        };
        let path: Path<'t> = self.path(range).then(step);
        let size = entry.map(|entry| if is_key { entry.key } else { entry.value });
        let entry = None;
        self.locals.push(Local {
            name,
            path,
            size,
            entry,
        });
    }
}

/// What a variable of a loop is.
#[derive(Clone, Copy)]
enum Side {
    /// The index or key.
    Key,
    Value,
    /// The only variable: an element of a list, or a key of a map.
    Only,
}

/// Returns whether a loop gives a name to a value: it iterates over nothing.
// `isBind`.
fn is_binding(each: &Loop) -> bool {
    matches!(&each.range.kind, Kind::List(items) if items.is_empty())
        && matches!(each.condition.kind, Kind::Literal(Literal::Bool))
        && each.result_name != RESULT
}
