//! The cost of the parts of an expression.

use std::collections::HashMap;
use std::ptr;

use super::Variables;
use super::invocation::Operand;
use super::path::Path;
use super::size::Size;
use crate::expressions::facts::Facts;
use crate::expressions::tree::{Entry, Kind, Literal, Select, SelectMode, Tree};
use crate::expressions::types::Type;

/// The cost of reading a variable or a field.
const READ: u64 = 1;
/// The cost of making a list, a map or a struct.
pub(super) const NEW_LIST: u64 = 10;
const NEW_MAP: u64 = 30;
pub(super) const NEW_STRUCT: u64 = 40;

/// Estimates one expression.
pub(super) struct Estimator<'t> {
    pub(super) facts: &'t Facts,
    variables: Variables<'t>,
    paths: HashMap<*const Tree, Path<'t>>,
    sizes: HashMap<*const Tree, Size>,
    entries: HashMap<*const Tree, EntrySize>,
    /// The variables of loops, the innermost one last.
    pub(super) locals: Vec<Local<'t>>,
}

/// A variable of a loop.
pub(super) struct Local<'t> {
    pub(super) name: &'t str,
    pub(super) path: Path<'t>,
    pub(super) size: Option<Size>,
    pub(super) entry: Option<EntrySize>,
}

/// The sizes of what is in a list or a map.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntrySize {
    pub(super) is_list: bool,
    pub(super) key: Size,
    pub(super) value: Size,
}

impl EntrySize {
    pub(super) fn union(self, other: Self) -> Self {
        Self {
            is_list: self.is_list,
            key: self.key.union(other.key),
            value: self.value.union(other.value),
        }
    }
}

impl<'t> Estimator<'t> {
    pub(super) fn new(facts: &'t Facts, variables: Variables<'t>) -> Self {
        Self {
            facts,
            variables,
            paths: HashMap::new(),
            sizes: HashMap::new(),
            entries: HashMap::new(),
            locals: Vec::new(),
        }
    }

    pub(super) fn cost(&mut self, tree: &'t Tree) -> u64 {
        match &tree.kind {
            Kind::Literal(_) => 0,
            Kind::Name(name) => self.name(tree, name.strip_prefix('.').unwrap_or(name)),
            Kind::Select(select) => match self.facts.variable(tree) {
                Some(name) => self.name(tree, name),
                None => self.select(tree, select),
            },
            Kind::Call(call) => self.call(tree, call),
            Kind::List(items) => self.list(tree, items),
            Kind::Map(entries) => self.map(tree, entries),
            Kind::Struct(_, settings) => {
                let values = settings.iter().map(|each| &each.value);
                values.fold(NEW_STRUCT, |sum, value| {
                    sum.saturating_add(self.cost(value))
                })
            }
            Kind::Loop(each) => self.each(tree, each),
        }
    }

    fn name(&mut self, tree: &'t Tree, name: &'t str) -> u64 {
        let path = match self.local(name) {
            Some(local) => local.path.clone(),
            None => Path::of(name),
        };
        self.set_path(tree, path);
        READ
    }

    fn select(&mut self, tree: &'t Tree, select: &'t Select) -> u64 {
        let operand = self.cost(&select.operand);
        match select.mode {
            // Testing a field costs nothing by itself: `PresenceTestHasCost(false)`.
            SelectMode::Test => operand,
            // A call of an operator, which has no path.
            SelectMode::Optional => {
                // Go sizes the arguments of a call before the call.
                self.size(&select.operand);
                let size = self.size(tree);
                self.set_size(tree, size);
                operand.saturating_add(1)
            }
            SelectMode::Plain => {
                let path = self.path(&select.operand).then(&select.field);
                self.set_path(tree, path);
                let kind = self.facts.type_of(&select.operand);
                let is_read = matches!(kind, Type::Map(_) | Type::Object(_));
                operand.saturating_add(if is_read { READ } else { 0 })
            }
        }
    }

    fn list(&mut self, tree: &'t Tree, items: &'t [(bool, Tree)]) -> u64 {
        let (mut cost, mut value) = (NEW_LIST, Size::NONE);
        for (_, item) in items {
            cost = cost.saturating_add(self.cost(item));
            value = value.union(self.size_or_unknown(item));
        }
        if items.is_empty() {
            value.least = 0;
        }
        let key = Size::fixed(1);
        let entry = EntrySize {
            is_list: true,
            key,
            value,
        };
        self.set_entry(tree, Some(entry));
        cost
    }

    fn map(&mut self, tree: &'t Tree, entries: &'t [Entry]) -> u64 {
        let mut cost = NEW_MAP;
        let (mut key, mut value) = (Size::NONE, Size::NONE);
        if entries.is_empty() {
            key.least = 0;
            value.least = 0;
        }
        for entry in entries {
            cost = cost.saturating_add(self.cost(&entry.key));
            cost = cost.saturating_add(self.cost(&entry.value));
            key = key.union(self.size_or_unknown(&entry.key));
            value = value.union(self.size_or_unknown(&entry.value));
        }
        let entry = EntrySize {
            is_list: false,
            key,
            value,
        };
        self.set_entry(tree, Some(entry));
        cost
    }

    pub(super) fn local(&self, name: &str) -> Option<&Local<'t>> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    /// Returns the path of a part; empty if it has none.
    pub(super) fn path(&self, tree: &'t Tree) -> Path<'t> {
        if let Some(local) = self.local_of(tree) {
            return local.path.clone();
        }
        let path = self.paths.get(&ptr::from_ref(tree));
        path.cloned().unwrap_or_default()
    }

    pub(super) fn set_path(&mut self, tree: &Tree, path: Path<'t>) {
        self.paths.insert(tree, path);
    }

    fn local_of(&self, tree: &Tree) -> Option<&Local<'t>> {
        match &tree.kind {
            Kind::Name(name) => self.local(name),
            _ => None,
        }
    }

    pub(super) fn set_size(&mut self, tree: &Tree, size: Option<Size>) {
        if let Some(size) = size {
            self.sizes.insert(tree, size);
        }
    }

    pub(super) fn set_entry(&mut self, tree: &Tree, entry: Option<EntrySize>) {
        if let Some(entry) = entry {
            self.entries.insert(tree, entry);
        }
    }

    pub(super) fn copy_sizes(&mut self, to: &'t Tree, from: &'t Tree) {
        let size = self.size(from);
        self.set_size(to, size);
        self.set_entry(to, self.entry(from));
    }

    /// Returns the size of a part, if anything is known of it.
    // `computeSize`.
    pub(super) fn size(&mut self, tree: &'t Tree) -> Option<Size> {
        if let Some(size) = self.sizes.get(&ptr::from_ref(tree)) {
            return Some(*size);
        }
        if let Some(size) = written_size(tree) {
            return Some(size);
        }
        if let Some(size) = self.size_at(&self.path(tree)) {
            self.set_size(tree, Some(size));
            return Some(size);
        }
        if is_scalar(self.facts.type_of(tree)) {
            return Some(Size::fixed(1));
        }
        self.local_of(tree).and_then(|local| local.size)
    }

    /// Returns what the schema says of the size at a path.
    pub(super) fn size_at(&self, path: &Path<'t>) -> Option<Size> {
        let steps = path.steps();
        let (variable, steps) = steps.split_first()?;
        if self.variables.only.is_some_and(|only| only != *variable) {
            return None;
        }
        let most = self.variables.dimensions.most_at(steps)?;
        Some(Size::up_to(0, most))
    }

    pub(super) fn size_or_unknown(&mut self, tree: &'t Tree) -> Size {
        self.size(tree).unwrap_or(Size::UNKNOWN)
    }

    /// Returns the sizes of what is in a list or map.
    pub(super) fn entry(&self, tree: &Tree) -> Option<EntrySize> {
        let entry = self.entries.get(&ptr::from_ref(tree)).copied();
        entry.or_else(|| self.local_of(tree).and_then(|local| local.entry))
    }

    /// Joins the sizes of what is in two lists or maps.
    pub(super) fn joined_entry(
        &self,
        first: &Operand<'t>,
        second: &Operand<'t>,
    ) -> Option<EntrySize> {
        let entry = |operand: &Operand<'t>| self.entry(operand.tree?);
        Some(entry(first)?.union(entry(second)?))
    }

    /// Returns the size of an operand.
    pub(super) fn size_of(&self, operand: &Operand<'t>) -> Size {
        let size = operand.size.or_else(|| self.size_at(&operand.path));
        size.unwrap_or(Size::UNKNOWN)
    }
}

/// Returns the size of what is written in the expression itself.
// `computeExprSize`.
fn written_size(tree: &Tree) -> Option<Size> {
    let size = match &tree.kind {
        Kind::Literal(Literal::Text(text)) => text.as_ref()?.chars().count(),
        Kind::Literal(Literal::Bytes(length)) => *length,
        Kind::Literal(_) => 1,
        Kind::List(items) => items.len(),
        Kind::Map(entries) => entries.len(),
        _ => return None,
    };
    Some(Size::fixed(size as u64))
}

fn is_scalar(kind: &Type) -> bool {
    match kind {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        Type::Optional(value) => is_scalar(value),
        _ => false,
    }
}
