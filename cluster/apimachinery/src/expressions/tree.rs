//! The tree of an expression, with positions.

use std::sync::Arc;

use std::rc::Rc;

/// An expression, or a part of one.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    /// Where it is in the text, in characters.
    pub(super) at: usize,
    pub(super) kind: Kind,
}

/// What an expression is.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Literal(Literal),
    Name(String),
    Select(Box<Select>),
    Call(Box<Call>),
    /// Elements, and whether each is optional.
    List(Vec<(bool, Tree)>),
    Map(Vec<Entry>),
    Struct(String, Vec<Setting>),
    Loop(Box<Loop>),
}

#[derive(Debug, Clone)]
pub(super) enum Literal {
    Null,
    Bool,
    /// The number; any one for what is too large.
    Int(i64),
    Uint,
    Double,
    /// A text; `None` if its escapes mean nothing.
    Text(Option<Arc<str>>),
    /// How many bytes.
    Bytes(usize),
}

/// A field of a value.
#[derive(Debug, Clone)]
pub(super) struct Select {
    pub(super) operand: Tree,
    pub(super) field: String,
    pub(super) mode: SelectMode,
}

/// How a field is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SelectMode {
    Plain,
    /// `has(…)`.
    Test,
    /// `.?`.
    Optional,
}

/// A call of a function or an operator.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) name: String,
    /// Shared, since a macro may write it twice.
    pub(super) target: Option<Rc<Tree>>,
    pub(super) arguments: Vec<Tree>,
}

/// An entry of a map.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) optional: bool,
    pub(super) key: Tree,
    pub(super) value: Tree,
}

/// A field of a struct that is made.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) at: usize,
    pub(super) optional: bool,
    pub(super) field: String,
    pub(super) value: Tree,
}

/// A macro, written out.
#[derive(Debug, Clone)]
pub(super) struct Loop {
    pub(super) range: Tree,
    pub(super) variables: Vec<String>,
    pub(super) result_name: String,
    pub(super) begin: Tree,
    pub(super) condition: Tree,
    pub(super) step: Tree,
    pub(super) result: Tree,
}

impl Tree {
    pub(super) fn new(at: usize, kind: Kind) -> Self {
        Self { at, kind }
    }

    pub(super) fn call(at: usize, name: &str, arguments: Vec<Self>) -> Self {
        Self::method(at, name, None, arguments)
    }

    pub(super) fn method(
        at: usize,
        name: &str,
        target: Option<Rc<Self>>,
        arguments: Vec<Self>,
    ) -> Self {
        let name = name.to_owned();
        let call = Call {
            name,
            target,
            arguments,
        };
        Self::new(at, Kind::Call(Box::new(call)))
    }

    pub(super) fn select(at: usize, operand: Self, field: String, mode: SelectMode) -> Self {
        let select = Select {
            operand,
            field,
            mode,
        };
        Self::new(at, Kind::Select(Box::new(select)))
    }

    /// Returns the name with dots that this is, such as `sets.contains`.
    pub(super) fn qualified(&self) -> Option<String> {
        let (mut parts, mut tree) = (Vec::new(), self);
        loop {
            match &tree.kind {
                Kind::Select(select) if select.mode == SelectMode::Plain => {
                    parts.push(select.field.as_str());
                    tree = &select.operand;
                }
                Kind::Name(name) => {
                    parts.push(name.as_str());
                    parts.reverse();
                    return Some(parts.join("."));
                }
                _ => return None,
            }
        }
    }
}
